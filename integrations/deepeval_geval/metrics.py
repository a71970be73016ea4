"""The metrics: what DeepEval measures with, around the core's judge.

DeepEval makes copies of a metric from those attributes that its constructor takes, so what rates is one of them, and
copies share the judge. An error that is raised is what it counts as an errored metric; `error` is where it shows it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from statistics import fmean
from typing import Any

from deepeval.errors import MissingTestCaseParamsError
from deepeval.metrics import BaseConversationalMetric, BaseMetric
from deepeval.test_case import ConversationalTestCase, LLMTestCase

from geval_adapters import Criterion, GEval, GEvalError, InputError, Judge, Rating, Sample, Usage
from geval_adapters.judge import run
from geval_adapters.judged import judged
from geval_adapters.report import plain_lines

from .cases import sample_of_case, sample_of_conversation

NAMES = {"source": "input", "output": "actual_output", "reference": "expected_output", "context": "retrieval_context"}
"""What DeepEval calls a sample's fields."""


class _Rates:
    """What both metrics share; the names are DeepEval's."""

    score: float | None
    reason: str | None
    success: bool | None
    error: str | None
    score_breakdown: dict[str, float | None] | None
    verbose_logs: str | None
    is_successful: Callable[[], bool | None]
    ratings: tuple[Rating, ...]

    def __init__(
        self,
        criterion: str | Criterion | Mapping[str, Any],
        *,
        threshold: float | None = 0.5,
        model: str | Judge | None = None,
        name: str | None = None,
        geval: GEval | None = None,
        **settings: Any,
    ) -> None:
        self.criterion = criterion
        self.threshold = threshold
        self.geval = geval or GEval(criterion, model, **{"explain": True, **settings})
        self.name = name or self.geval.criterion.name
        self.evaluation_model = self.geval.judge.name
        self.ratings = ()
        # DeepEval's cache takes two metrics of one name for the same unless these differ.
        told = self.geval.way.expected()
        self.criteria = "|".join(f"{name}:{'/'.join(sorted(values))}" for name, values in told.items())

    @property
    def __name__(self) -> str:
        return self.name

    async def _measured(self, sample: Sample) -> float:
        """Rate a sample, by its parts where the criterion judges those, and keep what came of it."""
        criterion = self.geval.criterion
        if absent := [NAMES.get(name, name) for name in sample.missing(criterion.needs)]:
            raise MissingTestCaseParamsError(f"{', '.join(absent)} must be there for the metric {self.name}")
        try:
            parts = judged(sample, criterion)
        except InputError as error:
            raise MissingTestCaseParamsError(str(error)) from None
        self.ratings = tuple(await asyncio.gather(*map(self.geval.arate, parts)))
        usage = sum((rating.usage for rating in self.ratings), Usage())
        self.evaluation_cost = usage.cost
        self.input_tokens, self.output_tokens = usage.prompt_tokens, usage.completion_tokens
        self.verbose_logs = json.dumps([rating.to_dict() for rating in self.ratings], indent=1)
        if unrated := [f"not rated: {rating.error}" for rating in self.ratings if rating.error]:
            several = f" ({len(unrated)} of {len(self.ratings)})" if len(self.ratings) > 1 else ""
            raise GEvalError(f"{unrated[0]}{several}")
        return fmean(rating.normalized for rating in self.ratings if rating.normalized is not None)

    async def _kept(self, measured: Coroutine[Any, Any, float]) -> float:
        """The score that a coroutine comes to, or its error, on the metric."""
        self.score, self.reason, self.success, self.error = None, None, None, None
        self.score_breakdown, self.verbose_logs, self.ratings = None, None, tuple[Rating, ...]()
        try:
            score = self.score = await measured
        except Exception as error:
            self.error, self.success = str(error), False
            raise
        self.reason = "\n".join(_reason(rating) for rating in self.ratings)
        self.score_breakdown = {rating.sample.id or rating.criterion: rating.score for rating in self.ratings}
        self.is_successful()
        return score


class GEvalMetric(_Rates, BaseMetric):  # type: ignore[misc]
    """Rates the actual output of an `LLMTestCase`.

    `score` runs from 0 to 1, as DeepEval has it; on the criterion's scale it is in `score_breakdown`, and the whole of
    each rating in `ratings` and, as JSON, in `verbose_logs`. What is not rated has no score: `error` says why, and the
    same is raised, so that DeepEval counts an error.

    Args:
        criterion: as for `GEval`.
        threshold: what `score` must reach, from 0 to 1; None for a metric that only measures.
        model: a LiteLLM model string, or a judge; the default is `$GEVAL_MODEL`.
        name: what DeepEval calls it; the default is the criterion's name.
        geval: what rates, where it is there already; DeepEval's copies of a metric share it.
        settings: further keywords of `GEval` (`n`, `recipe`, `api_base` …); the rationale is asked for by default.

    Raises:
        InputError: an unknown criterion or option value.
    """

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """The score of a test case; see `a_measure`."""
        return run(self.a_measure(test_case))

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """The score of a test case.

        Raises:
            MissingTestCaseParamsError: it lacks what the criterion needs.
            GEvalError: it was not rated.
            JudgeError: the judge cannot be asked at all.
        """
        return await self._kept(self._measure_case(test_case))

    async def _measure_case(self, test_case: LLMTestCase) -> float:
        if test_case.actual_output is None:
            raise MissingTestCaseParamsError(f"actual_output must be there for the metric {self.name}")
        return await self._measured(sample_of_case(test_case))


class ConversationalGEvalMetric(_Rates, BaseConversationalMetric):  # type: ignore[misc]
    """Rates a `ConversationalTestCase`: its last turn, each turn, or all of it, as the criterion says.

    Where each turn is rated, the score is their mean, and `score_breakdown` has each.

    Args:
        criterion, threshold, model, name, geval, settings: as for `GEvalMetric`.

    Raises:
        InputError: an unknown criterion or option value.
    """

    def measure(self, test_case: ConversationalTestCase, *_: Any, **__: Any) -> float:
        """The score of a conversation; see `GEvalMetric.a_measure`."""
        return run(self.a_measure(test_case))

    async def a_measure(self, test_case: ConversationalTestCase, *_: Any, **__: Any) -> float:
        """The score of a conversation; see `GEvalMetric.a_measure`."""
        return await self._kept(self._measure_case(test_case))

    async def _measure_case(self, test_case: ConversationalTestCase) -> float:
        return await self._measured(sample_of_conversation(test_case))


def _reason(rating: Rating) -> str:
    return f"{rating}: {plain_lines(rating.rationale)}" if rating.rationale else str(rating)
