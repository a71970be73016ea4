"""Evaluators for LangSmith: plain callables, as its `evaluate`, `aevaluate` and `evaluate_comparative` take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable

from geval_adapters import InputError, Sample
from geval_adapters.samples import ALIASES, to_sample

from .evaluators import GEvalEvaluator, PairwiseGEvalEvaluator, Result
from .inputs import CriteriaLike, ModelLike, as_passages, as_told, named_by_environment

if TYPE_CHECKING:
    from langsmith.schemas import Example, Run

KNOWN = {
    "output": ("output", "prediction", "answer", "response"),
    "source": ("input", "source", "question"),
    "reference": ("reference", "output", "answer", "expected"),
    "context": ("context",),
    "rubric": ALIASES["rubric"],
}
"""Which entry of a dataset's mappings is taken for a field, first match first, where there is more than one."""

Feedback = dict[str, Any]
"""What LangSmith and openevals expect of an evaluator: `key`, `score`, `comment` and `metadata`."""


class _SmithEvaluator:
    """Finds the fields of a sample in what LangSmith hands over."""

    def __init__(self, name: str, columns: Mapping[str, str] | None) -> None:
        self.__name__ = name  # LangSmith calls its run so
        self.columns = dict(columns or {})
        if unknown := set(self.columns) - set(KNOWN):
            raise InputError(f"unknown field {', '.join(sorted(unknown))}; a sample has {', '.join(KNOWN)}")

    def _output(self, outputs: object) -> Any:
        text = self._pick("output", outputs, whole=False)
        if text is None:
            keys = ", ".join(map(repr, outputs)) if isinstance(outputs, Mapping) else repr(outputs)
            raise InputError(f'which of the outputs {keys} is to be rated? Say so: columns={{"output": "…"}}')
        return text

    def _sample(self, inputs: object, outputs: object, reference_outputs: object, context: object) -> Sample:
        return to_sample(self._fields(inputs, outputs, reference_outputs, context))

    def _fields(self, inputs: object, outputs: object, reference_outputs: object, context: object) -> dict[str, Any]:
        rubric = None
        for given in (inputs, outputs, reference_outputs):
            if context is None and isinstance(given, Mapping):
                context = given.get(self.columns.get("context", "context"))
            if rubric is None and given is not outputs and isinstance(given, Mapping):  # no run brings its own
                rubric = given.get(self._named_rubric(given))
        return {
            "output": self._output(outputs),
            "source": self._pick("source", inputs, whole=True),
            "reference": self._pick("reference", reference_outputs, whole=True),
            "context": as_passages(context),
            "rubric": rubric,
        }

    def _named_rubric(self, given: object) -> str:
        """The entry that holds a sample's own rubric, wherever the dataset has it; what is no list is none."""
        names = (self.columns["rubric"],) if "rubric" in self.columns else ALIASES["rubric"]
        return next((name for name in names if isinstance(given, Mapping) and isinstance(given.get(name), list)), "")

    def _pick(self, field: str, given: object, whole: bool) -> Any:
        """The field's text or messages: the entry that is named for it, the only one, one with a known name, or all."""
        if not isinstance(given, Mapping):
            return as_told(given)
        if field in self.columns:
            return as_told(given.get(self.columns[field]))
        context = self.columns.get("context", "context")
        rest = {name: value for name, value in given.items() if name not in (context, self._named_rubric(given))}
        known = next((rest[name] for name in KNOWN[field] if name in rest), None)
        if known is None and rest and (whole or len(rest) == 1 or "messages" in rest):
            known = rest
        return as_told(known)


class SmithEvaluator(_SmithEvaluator):
    """Rates a run's output; see `geval_evaluator`."""

    def __init__(self, evaluator: GEvalEvaluator, columns: Mapping[str, str] | None) -> None:
        super().__init__(f"geval {evaluator.evaluation_name}", columns)
        self.evaluator = evaluator

    def __call__(
        self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, context: Any = None
    ) -> Feedback | list[Feedback]:
        """One feedback, or one for each of several criteria."""
        sample = self._sample(inputs, outputs, reference_outputs, context)
        with _kept_local():
            result = self.evaluator.evaluate(sample)
        feedback = [_feedback(row) for row in result.get("ratings", {"": result}).values()]
        return feedback[0] if len(feedback) == 1 else feedback


class SmithComparer(_SmithEvaluator):
    """Compares the runs of one example; see `pairwise_geval_evaluator`."""

    def __init__(self, evaluator: PairwiseGEvalEvaluator, columns: Mapping[str, str] | None) -> None:
        super().__init__(f"pairwise_geval {evaluator.evaluation_name}", columns)
        self.evaluator = evaluator

    def __call__(self, runs: Sequence[Run], example: Example | None) -> Feedback:
        """The runs' scores, and for each how the comparisons went."""
        inputs, references = (example.inputs, example.outputs) if example else (None, None)
        p: dict[Any, list[float | None]] = {run.id: [] for run in runs}
        comments: dict[Any, list[str]] = {run.id: [] for run in runs}
        for a, b in combinations(runs, 2):
            fields = self._fields(inputs, a.outputs, references, None)
            pair = {**fields, "prediction": fields.pop("output"), "prediction_b": self._output(b.outputs)}
            with _kept_local():
                result = self.evaluator.evaluate(pair)
            score = result["score"]
            for run, its_score in ((a, score), (b, None if score is None else 1 - score)):
                p[run.id].append(its_score)
                comments[run.id].append(result["error"] or result["reasoning"])
        return {
            "key": f"pairwise {self.evaluator.evaluation_name}",
            "scores": {run: _mean(scores) for run, scores in p.items()},
            "comment": {str(run): "\n".join(lines) for run, lines in comments.items()},
        }


@contextmanager
def _kept_local() -> Iterator[None]:
    """Do not trace where LangSmith was told to upload nothing: LangChain's tracer takes "local" for a plain yes."""
    from langsmith.run_helpers import get_tracing_context, tracing_context

    if get_tracing_context()["enabled"] != "local":
        yield
        return
    with tracing_context(enabled=False):
        yield


def _mean(scores: Sequence[float | None]) -> float | None:
    """The mean; None where one is missing."""
    given = [score for score in scores if score is not None]
    return fmean(given) if given and len(given) == len(scores) else None


def geval_evaluator(
    criteria: CriteriaLike,
    *,
    model: ModelLike | None = None,
    llm: Runnable[Any, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> SmithEvaluator:
    """An evaluator for `langsmith.evaluate` and `aevaluate`, and for whatever calls evaluators as openevals does.

    It takes `(inputs, outputs, reference_outputs)` and returns `{"key", "score", "comment", "metadata"}`, or with
    several criteria a list of these. The key is the criterion's name, the comment the judge's rationale (with
    `explain=True`) or the reason why there is no score; the rest of the rating is in the metadata.

    Args:
        criteria, model, llm, options: as for `GEvalEvaluator`.
        columns: field (output, source, reference, context) to the entry that holds it, where a dataset's mappings
            have several entries and none goes by a usual name.

    Raises:
        InputError: as for `GEvalEvaluator`; from a call, where the output cannot be told among several entries.
    """
    model = named_by_environment(model, llm)
    return SmithEvaluator(GEvalEvaluator(criteria, model=model, llm=llm, **options), columns)


def pairwise_geval_evaluator(
    criteria: CriteriaLike,
    *,
    model: ModelLike | None = None,
    llm: Runnable[Any, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> SmithComparer:
    """An evaluator for `langsmith.evaluate_comparative`.

    A run's score is P(it is better), each pair asked in both orders; the mean over the others where there are more
    than two. The key is `pairwise` and the criterion's name.

    Args:
        criteria, model, llm, options: as for `PairwiseGEvalEvaluator`.
        columns: as for `geval_evaluator`.
    """
    return SmithComparer(
        PairwiseGEvalEvaluator(criteria, model=named_by_environment(model, llm), llm=llm, **options), columns
    )


def _feedback(row: Result) -> Feedback:
    shown = ("score", "value", "reasoning", "rationale", "criterion", "id", "doc_id", "system_id", "human")
    return {
        "key": row["criterion"],
        "score": row["score"],
        "comment": row["error"] or row["reasoning"],
        "metadata": {name: value for name, value in row.items() if name not in shown},
    }
