"""A judge for what the model under evaluation writes: the metric `geval`, and the filter of the same name.

The metric knows a document's target and what the model wrote. Where the judge must also see other columns, the filter
comes first and does the judging. Either way all documents of a task are judged together, as many at once as the judge
takes.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean
from types import FrameType
from typing import Any

from . import harness

harness.check()

import lm_eval.api.metrics  # noqa: F401  # the harness registers its own only into an empty registry
from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_aggregation, register_metric
from lm_eval.utils import apply_template

from geval_adapters import GEval, InputError, LiteLLMJudge, Rating, Sample
from geval_adapters.content import messages_in
from geval_adapters.criteria import FIELDS, NEEDS
from geval_adapters.judged import SEVERAL
from geval_adapters.jury import Jury
from geval_adapters.samples import ALIASES, to_sample

Doc = Mapping[str, Any]
Result = dict[str, Any]

log = logging.getLogger("lm_eval.geval")

EMBEDDED = "local/smollm2"

SETTINGS = {"criterion": "GEVAL_CRITERION", "judge": "GEVAL_MODEL", "recipe": "GEVAL_RECIPE"}
"""What a judge is set by, and the environment variables for what is told nowhere else."""


def judge(samples: Sequence[Sample], settings: Mapping[str, Any]) -> list[Result]:
    """Rate samples together, in their order.

    Args:
        samples: what is rated.
        settings: `criterion`, `judge` (a LiteLLM model or `local/…`; a list of them is a jury, whose panel's ratings
            these are) and `recipe`; what is not told is looked up in the environment.

    Raises:
        InputError: no criterion, or a sample lacks a field that the criterion needs.
        JudgeError: the judge cannot be asked at all.
    """
    chosen = {name: settings.get(name) or os.environ.get(variable) for name, variable in SETTINGS.items()}
    with harness.brief_errors():
        if not chosen["criterion"]:
            raise InputError(
                """geval: no criterion: name it in the task's YAML (criterion: coherence), with --metadata"""
                """ '{"criterion": "coherence"}', or as $GEVAL_CRITERION"""
            )
        models = chosen["judge"] if isinstance(chosen["judge"], list | tuple) else [chosen["judge"]]
        geval, *others = [GEval(chosen["criterion"], _judge(model), recipe=chosen["recipe"]) for model in models]
        if geval.criterion.judges in SEVERAL:
            raise InputError(f"geval: {geval.criterion.name} judges each part of a document, which has one rating here")
        if others:
            rated = Jury([geval, *others]).rate_many(samples)
            for name, why in rated.down.items():
                log.warning("geval: the judge %s could not go on, and is in the panel as far as it came: %s", name, why)
            return [_result(each.panel) for each in rated]
        return [_result(rating) for rating in geval.rate_many(samples)]


@cache
def _judge(model: str | None) -> LiteLLMJudge:
    """One judge for all criteria: it remembers what its model turned out not to support."""
    judge = LiteLLMJudge(model)
    if judge.name == EMBEDDED:
        log.warning(
            "the judge is the embedded %s, which is there to try things out and not to rely on; another one is named"
            """ with --metadata '{"judge": "openai/gpt-4o-mini"}' or $GEVAL_MODEL""",
            EMBEDDED,
        )
    return judge


def _result(rating: Rating) -> Result:
    row = rating.to_dict()
    shown = ("criterion", "score", "normalized", "coverage", "method", "n_valid", "n_failed", "error", "signature")
    return {name: row[name] for name in shown} | ({"items": row["items"]} if row["items"] else {})


class JudgeFilter(Filter):  # type: ignore[misc]
    """Replaces each reply by its ratings, a list with one for each criterion.

    Args:
        criterion: one or several names, files or texts, as for `GEval`.
        judge, recipe: as for `judge`.
        source, context, reference, rubric: the column that holds it, or a Jinja template over the columns; by default
            the columns that a file of samples may call so.
        output: the same for the text to be rated, which otherwise is the reply.

    What `--metadata` says goes before all that, in tasks whose data set is loaded by `dataset`.
    """

    def __init__(
        self,
        criterion: str | Sequence[str] | None = None,
        judge: str | list[str] | None = None,
        recipe: str | None = None,
        **columns: str,
    ) -> None:
        if unknown := set(columns) - {*NEEDS, "output"}:
            raise InputError(f"geval: unknown option {', '.join(sorted(unknown))} of the filter")
        self.settings = {"criterion": criterion, "judge": judge, "recipe": recipe}
        self.columns = columns

    def apply(self, resps: Iterable[Any], docs: Sequence[Doc]) -> list[list[Result]]:
        """Judge all replies of a task, criterion by criterion."""
        replies = [resp[0] if isinstance(resp, list) else resp for resp in resps]
        samples = [self._sample(reply or "", doc) for reply, doc in zip(replies, docs, strict=True)]
        settings = self.settings | {name: docs[0][f"geval_{name}"] for name in SETTINGS if docs[0].get(f"geval_{name}")}
        wanted = settings.pop("criterion")
        names = [wanted] if wanted is None or isinstance(wanted, str) else list(wanted)
        by_criterion = [judge(samples, settings | {"criterion": name}) for name in names]
        return [list(ratings) for ratings in zip(*by_criterion, strict=True)]

    def _sample(self, reply: str, doc: Doc) -> Sample:
        output = reply if "output" not in self.columns else _column(doc, self.columns["output"])
        return to_sample({"output": output or "", **{name: self._field(doc, name) for name in NEEDS}})

    def _field(self, doc: Doc, name: str) -> Any:
        if self.columns.get(name) in doc:
            return _value(doc[self.columns[name]], name)
        if name in self.columns:
            return _column(doc, self.columns[name])
        aliases = (*ALIASES[name], *(ALIASES["messages"] if name == "source" else ()))
        return next((_value(doc[alias], name) for alias in aliases if doc.get(alias) is not None), None)


def _column(doc: Doc, spec: str) -> str | None:
    if spec in doc:
        return None if doc[spec] is None else str(doc[spec])
    return str(apply_template(spec, doc))


def _value(value: Any, name: str) -> Any:
    """A column's value: messages and lists of contexts or items as they are, anything else as text."""
    listed = name in ("context", "rubric") and isinstance(value, list)
    kept = value is None or listed or messages_in(value) is not None
    return value if kept else str(value)


@register_aggregation("geval")  # type: ignore[untyped-decorator]
def geval_figure(items: Sequence[Mapping[str, Result]]) -> float:
    """The mean score of what was rated, or the share of what was not; judges what is not judged yet.

    Without a single rating the mean is NaN: a failure is no score.
    """
    (figure,) = items[0]
    results = [item[figure] for item in items]
    _judge_pending([result for result in results if "score" not in result])
    return mean_score(results) if figure == "score_of" else unrated(results)


@register_metric(metric="geval", higher_is_better=True, aggregation="geval")  # type: ignore[untyped-decorator]
def geval(
    references: Sequence[Any],
    predictions: Sequence[Any],
    *,
    criterion: str | None = None,
    judge: str | list[str] | None = None,
    recipe: str | None = None,
    target: str = "source",
) -> dict[str, dict[str, Result]]:
    """A metric for any task that generates: `geval`, the mean score, and `geval_unrated`, the share without one.

    Nothing is asked here: the harness calls a metric for one document after the other. It calls the aggregation for
    all of them, and there they are judged; the results are filled in, so that `--log_samples` shows them.

    Args:
        references: the document's target.
        predictions: what the model wrote, or the ratings that `JudgeFilter` made of it.
        criterion, judge, recipe: as for `judge`.
        target: what the target is to the judge: the `source`, `context` or `reference`.
    """
    prediction = predictions[0]
    if isinstance(prediction, list):
        result: Result = prediction[0]
    else:
        settings = {"criterion": criterion, "judge": judge, "recipe": recipe}
        result = {"output": str(prediction), target: str(references[0]), "settings": settings}
    _fewer_is_better("geval_unrated", inspect.currentframe())
    return {"geval": {"score_of": result}, "geval_unrated": {"unrated": result}}


def _fewer_is_better(figure: str, frame: FrameType | None) -> None:
    """Give a figure its own arrow in the harness's table.

    The harness gives all figures of a metric the metric's, and hands a metric nothing by which to say otherwise: so
    the task that calls it is looked up.
    """
    task = frame.f_back.f_locals.get("self") if frame and frame.f_back else None
    directions = getattr(task, "_higher_is_better", None)
    if isinstance(directions, dict):
        directions[figure] = False


def _judge_pending(pending: Sequence[Result]) -> None:
    if not pending:
        return
    settings = pending[0]["settings"]  # the same for all: they are those of the task's YAML
    texts = [{name: result[name] for name in (*FIELDS, "output") if name in result} for result in pending]
    for result, rating in zip(pending, judge([Sample(**each) for each in texts], settings), strict=True):
        result.clear()
        result.update(rating)


def judged(doc: Doc, results: Sequence[list[Result]]) -> dict[str, Any]:
    """`process_results` behind a `JudgeFilter` with several criteria: a metric for each, and `unrated` over all."""
    by_criterion = {rating["criterion"].rpartition("/")[2]: rating for rating in results[0]}
    return {**by_criterion, "unrated": results[0]}


def mean_score(results: Iterable[Result]) -> float:
    """The mean of the scores that there are, on the criterion's scale; NaN where there is none."""
    scores = [result["score"] for result in results if result["score"] is not None]
    return fmean(scores) if scores else math.nan


def unrated(results: Iterable[Result | list[Result]]) -> float:
    """The share of ratings that have no score, in [0, 1]."""
    flat = [rating for result in results for rating in (result if isinstance(result, list) else [result])]
    return sum(rating["score"] is None for rating in flat) / len(flat)
