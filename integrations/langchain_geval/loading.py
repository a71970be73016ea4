"""How evaluators are loaded by name: our front door, and LangChain's own."""

from __future__ import annotations

from collections.abc import MutableMapping
from enum import Enum
from typing import Any, cast

from langchain_classic.evaluation import loading as upstream
from langchain_classic.evaluation.schema import EvaluatorType

from .evaluators import GEvalEvaluator, PairwiseGEvalEvaluator
from .inputs import named_by_environment


class GEvalType(str, Enum):
    """The evaluators' names, to stand where LangChain's `EvaluatorType` stands."""

    GEVAL = "geval"
    PAIRWISE_GEVAL = "pairwise_geval"


EVALUATORS: dict[str, type[GEvalEvaluator] | type[PairwiseGEvalEvaluator]] = {
    GEvalType.GEVAL.value: GEvalEvaluator,
    GEvalType.PAIRWISE_GEVAL.value: PairwiseGEvalEvaluator,
}


def load_evaluator(evaluator: str, *, llm: Any = None, **options: Any) -> Any:
    """An evaluator by name: `geval`, `pairwise_geval`, or any that LangChain knows.

    LangChain's own function of this name hands `llm` only to its own kind of chains; this one also to ours. Where
    neither `model` nor `llm` is given, ours take the judge from `$GEVAL_MODEL`.

    Raises:
        InputError: from ours: no judge or two, an unknown criterion or option.
        ValueError: from LangChain: no evaluator of this name.

    >>> evaluator = load_evaluator("geval", criteria="coherence", model="openai/gpt-4o-mini")
    >>> evaluator.evaluation_name, evaluator.requires_input
    ('coherence', False)
    >>> load_evaluator("exact_match").evaluate_strings(prediction="Paris", reference="Paris")
    {'score': 1}
    """
    if evaluator in EVALUATORS:
        model = named_by_environment(options.pop("model", None), llm)
        return EVALUATORS[evaluator](llm=llm, model=model, **options)
    return upstream.load_evaluator(cast(EvaluatorType, evaluator), llm=llm, **options)


def register() -> None:
    """Make LangChain's own `load_evaluator` and `load_evaluators` know the names, too.

    There is no public way to do so. The names are strings, which look up and compare like `EvaluatorType`.
    """
    cast("MutableMapping[str, Any]", upstream._EVALUATOR_MAP).update(EVALUATORS)
