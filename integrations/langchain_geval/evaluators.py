"""The evaluators: LangChain's interfaces, and runnables, around the core's judge."""

from __future__ import annotations

import asyncio
import warnings
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any
from uuid import uuid4

from langchain_classic.evaluation.schema import PairwiseStringEvaluator, StringEvaluator
from langchain_classic.schema import RUN_KEY
from langchain_core.outputs import RunInfo
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import CONFIG_KEYS, get_config_list, patch_config

from geval_adapters import Comparer, Comparison, Criterion, GEval, GEvalError, InputError, Judge, Rating, Sample, Usage
from geval_adapters.judge import run
from geval_adapters.judged import SEVERAL, judged
from geval_adapters.jury import Jury, JuryRating

from .inputs import CriteriaLike, ModelLike, as_criteria, as_judge, as_judges, as_sample, split_options

Result = dict[str, Any]
"""What an evaluator returns: `score`, `value`, `reasoning`, and the rest of the rating, ready for JSON."""


class RatingError(GEvalError):
    """A rating that came to no score. Its text is the reason; `result` holds all the rest of the rating."""

    def __init__(self, result: Result) -> None:
        super().__init__(result["error"])
        self.result = result

    def __reduce__(self) -> tuple[type[RatingError], tuple[Result]]:
        return RatingError, (self.result,)


class Evaluator(Runnable[Any, Result]):
    """What the evaluators share: they are runnables, and show up in traces as such.

    As a runnable, a rating without a score is an exception (`RatingError`); `evaluate` and the methods of LangChain's
    evaluators return it with its reason under `error`.
    """

    name: str
    criteria: list[Criterion]
    judge: Judge
    _own_prompt: bool = False  # a prompt file decides by itself what it shows

    @abstractmethod
    async def _result(self, value: Any, **fields: Any) -> Result:
        """Judge one input."""

    @property
    def evaluation_name(self) -> str:
        """The criteria's names."""
        return ", ".join(criterion.name for criterion in self.criteria)

    @property
    def requires_input(self) -> bool:
        """Whether a criterion needs the input."""
        return any("source" in criterion.needs for criterion in self.criteria)

    @property
    def requires_reference(self) -> bool:
        """Whether a criterion needs a reference."""
        return any("reference" in criterion.needs for criterion in self.criteria)

    def _check_evaluation_args(self, reference: str | None = None, input_: str | None = None) -> None:
        """Refuse what is missing, and warn of what no criterion shows to the judge."""
        for field, name, value in (("source", "an input", input_), ("reference", "a reference", reference)):
            if value is None and any(field in criterion.needs for criterion in self.criteria):
                raise InputError(f"{self.evaluation_name} requires {name} string.")
            shown = any(field in (*criterion.needs, *criterion.optional) for criterion in self.criteria)
            if value is not None and not shown and not self._own_prompt:
                warnings.warn(f"{self.evaluation_name} does not show the judge {name}", stacklevel=4)

    # --- as a runnable -----------------------------------------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Result:
        """Judge one prediction, or a mapping with `prediction` and what belongs to it.

        Raises:
            RatingError: the judge gave no score.
            InputError: no prediction, or a field is missing that a criterion needs.
            JudgeError: the judge cannot be asked at all.
        """
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Result:
        """Judge one prediction; see `invoke`."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Judge many; see `abatch`."""
        return run(self.abatch(inputs, config, return_exceptions=return_exceptions, **kwargs))

    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Judge many, `max_concurrency` at a time: by default as many as the judge takes at once.

        A chat model gets no more than that many requests, either; for a model string, `concurrency` bounds them.
        With `return_exceptions`, what came to no score is a `RatingError` in its place.
        """
        width = self.judge.concurrency
        configs = [
            patch_config(each, max_concurrency=each.get("max_concurrency") or width)
            for each in get_config_list(config, len(inputs))
        ]
        return await super().abatch(inputs, configs, return_exceptions=return_exceptions, **kwargs)

    def evaluate(self, value: Any, config: RunnableConfig | None = None, **fields: Any) -> Result:
        """As `invoke`, but a rating without a score is a result, with its reason under `error`."""
        return self._call_with_config(self._evaluate, value, config, **fields)

    async def aevaluate(self, value: Any, config: RunnableConfig | None = None, **fields: Any) -> Result:
        """As `ainvoke`, but a rating without a score is a result, with its reason under `error`."""
        return await self._acall_with_config(self._result, value, config, **fields)

    def _invoke(self, value: Any, **fields: Any) -> Result:
        return run(self._ainvoke(value, **fields))

    async def _ainvoke(self, value: Any, **fields: Any) -> Result:
        result = await self._result(value, **fields)
        if result["error"]:
            raise RatingError(result)
        return result

    def _evaluate(self, value: Any, **fields: Any) -> Result:
        return run(self._result(value, **fields))

    # --- as an evaluator ---------------------------------------------------------------------------------------------

    def _evaluate_fields(self, include_run_info: bool = False, **given: Any) -> Result:
        fields, config, info = _call(include_run_info, given)
        return self.evaluate(fields, config) | info

    async def _aevaluate_fields(self, include_run_info: bool = False, **given: Any) -> Result:
        fields, config, info = _call(include_run_info, given)
        return await self.aevaluate(fields, config) | info


def _call(include_run_info: bool, given: dict[str, Any]) -> tuple[dict[str, Any], RunnableConfig, Result]:
    """What the methods of LangChain's evaluators are given: the fields, the run's config, and what names the run."""
    config = RunnableConfig(**{key: given.pop(key) for key in CONFIG_KEYS if key in given})  # type: ignore[typeddict-item]
    fields = {name: value for name, value in given.items() if value is not None}
    if not include_run_info:
        return fields, config, {}
    run_id = config.setdefault("run_id", None) or uuid4()
    config["run_id"] = run_id
    return fields, config, {RUN_KEY: RunInfo(run_id=run_id)}


class GEvalEvaluator(Evaluator, StringEvaluator):
    """Rates a text by one criterion or several.

    `score` is the score on the criterion's scale, `value` its most probable step, `reasoning` the judge's rationale;
    with several criteria `score` is the mean of the scores, or of the normalized ones where the scales differ (None if
    one is missing), and `ratings` holds each.

    Args:
        criteria: a registered name, free text, a `Criterion`, several of these, or name to description.
        model: a LiteLLM string, `local/smollm2`, or a judge; or a list of them, a jury: `score` is then the mean of the
            judges', `std_error` the one between them, and `judges` holds each. There is no default.
        llm: a LangChain chat model, or several, instead of `model`.
        options: those of `GEval` (scale, form, n, readout, explain, …), and with a model string those of
            `LiteLLMJudge` (api_base, concurrency, …).

    Raises:
        InputError: no judge or two, an unknown criterion, or an option that does not exist.

    >>> GEvalEvaluator("correctness", model="openai/gpt-4o-mini").requires_reference
    True
    """

    def __init__(
        self,
        criteria: CriteriaLike = (),
        *,
        model: ModelLike | Sequence[ModelLike] | None = None,
        llm: Runnable[Any, Any] | Sequence[Runnable[Any, Any]] | None = None,
        **options: Any,
    ) -> None:
        own, for_judge = split_options(options, GEval)
        self.name = "geval"
        judges = as_judges(model, llm, for_judge)
        self.judge = judges[0]
        self.gevals: list[GEval | Jury] = []
        for each in as_criteria(criteria):
            asked = [GEval(each, judge, **own) for judge in judges]
            self.gevals.append(Jury(asked) if len(asked) > 1 else asked[0])
        self.criteria = [geval.criterion for geval in self.gevals]
        self._own_prompt = "prompt_file" in own

    async def _result(self, value: Any, **fields: Any) -> Result:
        sample = as_sample(value, **fields)
        rows = await asyncio.gather(*(self._by_one(geval, sample) for geval in self.gevals))
        return together(rows, "ratings", {str(criterion.scale) for criterion in self.criteria})

    async def _by_one(self, geval: GEval | Jury, sample: Sample) -> Result:
        """The result by one criterion; where that judges each turn or context, the mean, and each in `parts`."""
        parts = judged(sample, geval.criterion)
        ratings: list[Rating | JuryRating] = await asyncio.gather(*(geval.arate(part) for part in parts))
        rows = [_rated(rating, geval.criterion) for rating in ratings]
        if geval.criterion.judges not in SEVERAL:
            return rows[0]
        usage = sum((Usage(**row["usage"]) for row in rows), Usage())
        named = {"criterion": geval.criterion.name, "usage": vars(usage), "signature": rows[0]["signature"]}
        result = together(rows, "parts", {str(geval.criterion.scale)}, by="id") if len(rows) > 1 else rows[0]
        return result | named | {"parts": {row["id"]: row for row in rows}}

    def _evaluate_strings(self, **given: Any) -> Result:
        return self._evaluate_fields(**given)

    async def _aevaluate_strings(self, **given: Any) -> Result:
        return await self._aevaluate_fields(**given)


class PairwiseGEvalEvaluator(Evaluator, PairwiseStringEvaluator):
    """Tells which of two texts is better, asked in both orders.

    `score` is P(A is better), the mean over both orders, where A is `prediction` and B `prediction_b`; `value` is
    "A", "B" or "tie", and `flipped` says whether the verdict changes with the order. With several criteria `score` is
    the mean, and `comparisons` holds each.

    Args:
        criteria, model, llm: as for `GEvalEvaluator`.
        options: those of `Comparer` (kind, ties, n, …), and with a model string those of `LiteLLMJudge`.

    Raises:
        InputError: no judge or two, an unknown criterion, or an option that does not exist.
    """

    def __init__(
        self,
        criteria: CriteriaLike = (),
        *,
        model: ModelLike | None = None,
        llm: Runnable[Any, Any] | None = None,
        **options: Any,
    ) -> None:
        own, for_judge = split_options(options, Comparer)
        self.name = "pairwise_geval"
        self.judge = as_judge(model, llm, for_judge)
        self.comparers = [Comparer(each, self.judge, **own) for each in as_criteria(criteria)]
        self.criteria = [comparer.criterion for comparer in self.comparers]

    async def _result(self, value: Any, **fields: Any) -> Result:
        if not isinstance(value, Mapping) or value.get("prediction_b") is None:
            raise InputError("a comparison takes a mapping with prediction and prediction_b")
        first = as_sample(value, **fields)
        second = as_sample({**value, "prediction": value["prediction_b"]}, **fields)
        compared = await asyncio.gather(*(comparer.acompare(first, second) for comparer in self.comparers))
        rows = [_compared(*pair) for pair in zip(compared, self.criteria, strict=True)]
        result = together(rows, "comparisons")
        return result | {"value": side(result["score"])}

    def _evaluate_string_pairs(self, **given: Any) -> Result:
        return self._evaluate_fields(**given)

    async def _aevaluate_string_pairs(self, **given: Any) -> Result:
        return await self._aevaluate_fields(**given)


def _rated(given: Rating | JuryRating, criterion: Criterion) -> Result:
    value = None
    rating = given if isinstance(given, Rating) else given.panel
    if rating.distribution and rating.score is not None:
        top = max(rating.distribution, key=rating.distribution.__getitem__)
        words = [word for word, score in criterion.scale.words.items() if score == top and criterion.scale.worded]
        value = words[0] if words else f"{top:g}"
    return {"score": rating.score, "value": value, "reasoning": rating.rationale} | given.to_dict()


def _compared(comparison: Comparison, criterion: Criterion) -> Result:
    there, back = comparison.there, comparison.back
    p = comparison.p_first
    reasoning = None
    if p is not None:
        shown_first, shown_second = comparison.p_orders
        reasoning = f"P(A is better) is {shown_first:.2f} where A is shown first, {shown_second:.2f} where second"
        reasoning += ": the verdict changes with the order" if comparison.flipped else ""
    return {
        "score": p,
        "value": None,
        "reasoning": reasoning,
        "criterion": criterion.name,
        "flipped": comparison.flipped,
        "p_orders": list(comparison.p_orders),
        "coverage": (there.coverage + back.coverage) / 2,
        "method": there.method,
        "n_valid": there.n_valid + back.n_valid,
        "n_failed": there.n_failed + back.n_failed,
        "error": comparison.error,
        "usage": vars(comparison.usage),
        "signature": str(there.signature),
    }


def side(p_first: float | None) -> str | None:
    """Who is better: A, B, or neither.

    >>> side(0.7), side(0.5), side(None)
    ('A', 'tie', None)
    """
    if p_first is None:
        return None
    return "tie" if abs(p_first - 0.5) < 1e-9 else "A" if p_first > 0.5 else "B"


def together(rows: Sequence[Result], name: str, scales: Collection[str] = (), by: str = "criterion") -> Result:
    """The result for one criterion, or that for several.

    That is the mean of the scores where all have one scale, so that a dict of one criterion and one of two give alike
    figures; where scales differ it is the mean of the normalized scores. None where one is missing.
    """
    if len(rows) == 1:
        return rows[0]
    errors = [f"{row[by]}: {row['error']}" for row in rows if row["error"]]
    reasons = [f"{row[by]}: {row['reasoning']}" for row in rows if row["reasoning"]]

    def mean(figure: str) -> float | None:
        return None if errors else fmean(row[figure] for row in rows)

    normalized = {"normalized": mean("normalized")} if scales else {}
    return {
        "score": mean("score" if len(scales) < 2 else "normalized"),
        **normalized,
        "value": None,
        "reasoning": "\n".join(reasons) or None,
        "error": "\n".join(errors) or None,
        name: {row[by]: row for row in rows},
    }
