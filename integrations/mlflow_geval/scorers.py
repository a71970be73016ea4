"""MLflow's scorer: a rating as its `Feedback`, failures as its errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Any, Literal

from mlflow.entities import AssessmentError, AssessmentSource, AssessmentSourceType, Feedback, Trace
from mlflow.genai.scorers import Scorer
from mlflow.tracing.constant import AssessmentMetadataKey
from pydantic import PrivateAttr

from geval_adapters import Criterion, GEval, Judge, Rating

from .fields import as_sample

SHOWN = ("id", "doc_id", "system_id", "score", "criterion", "rationale", "error", "human", "output", "reference")
"""What a row of ours says that stands elsewhere in a feedback or its trace."""


def rated(values: Sequence[float]) -> float:
    """How many outputs have a score: those without are in no other figure of the run."""
    return float(len(values))


def std_error(values: Sequence[float]) -> float:
    """Standard error of the mean, `s / √n`, as if outputs were independent; NaN for fewer than two."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


class GEvalScorer(Scorer):
    """Rates by one criterion; see `geval`."""

    _geval: GEval = PrivateAttr()
    _value: str = PrivateAttr()

    def __call__(
        self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Trace | None = None
    ) -> Feedback:
        """The rating as a feedback; one that came to no score has an error instead of a value.

        Raises:
            InputError: there are no outputs.
            JudgeError: the judge cannot be asked at all, which MLflow notes as the feedback's error.
        """
        sample = as_sample(inputs, outputs, expectations, trace, id=trace.info.trace_id if trace else "")
        (rating,) = self._geval.rate_many([sample])
        return as_feedback(rating, self.name, getattr(rating, self._value), self._geval.judge.name)


def geval(
    criterion: str | Criterion | Mapping[str, Any],
    model: str | Judge | None = None,
    *,
    name: str | None = None,
    value: Literal["score", "normalized"] = "score",
    **options: Any,
) -> GEvalScorer:
    """A scorer for `mlflow.genai.evaluate`; for several criteria, several scorers.

    The feedback's rationale is the judge's (with `explain=True`); its metadata hold all the rest of the rating: method,
    coverage, bounds, standard error, failed replies, usage, signature, each as JSON. The run's metrics are the mean,
    its standard error, and how many outputs have a score.

    Args:
        criterion, model: as for `GEval`.
        name: what MLflow calls the feedback; by default the criterion.
        value: on the criterion's scale, or from 0 to 1.
        options: as for `GEval`.

    Raises:
        InputError: as for `GEval`.

    >>> geval("summeval/coherence", "openai/gpt-4o-mini").name
    'summeval/coherence'
    """
    asks = GEval(criterion, model, **options)
    scorer = GEvalScorer(name=name or asks.criterion.name, aggregations=["mean", std_error, rated])
    scorer._geval, scorer._value = asks, value
    return scorer


def as_feedback(rating: Rating, name: str, value: float | None, judge: str) -> Feedback:
    """A rating as MLflow's feedback."""
    row = {each: told for each, told in rating.to_dict().items() if each not in SHOWN}
    usage = {
        AssessmentMetadataKey.JUDGE_COST: rating.usage.cost,
        AssessmentMetadataKey.JUDGE_INPUT_TOKENS: rating.usage.prompt_tokens,
        AssessmentMetadataKey.JUDGE_OUTPUT_TOKENS: rating.usage.completion_tokens,
    }
    known = {each: told for each, told in (row | usage).items() if told is not None}
    return Feedback(
        name=name,
        value=value,
        rationale=rating.rationale,
        error=None if value is not None else AssessmentError("UNRATED", rating.error),
        source=AssessmentSource(AssessmentSourceType.LLM_JUDGE, judge),
        metadata={each: told if isinstance(told, str) else json.dumps(told) for each, told in known.items()},
    )
