"""What users of LangChain hand over, as the core's objects."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_classic.chains.constitutional_ai.models import ConstitutionalPrinciple
from langchain_classic.evaluation import Criteria, CriteriaEvalChain
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import Runnable

from geval_adapters import Criterion, InputError, Judge, LiteLLMJudge, Rubric, Sample, Scale, load_criteria
from geval_adapters.content import messages_in
from geval_adapters.criteria import Field
from geval_adapters.samples import ALIASES, to_sample

from .chat_model import ChatModelJudge

CriterionLike = str | Criterion | ConstitutionalPrinciple
CriteriaLike = CriterionLike | Iterable[CriterionLike] | Mapping[str, str | Sequence[Any]]
"""One criterion, several, or name to description or to a rubric (a list of items, as `Rubric.of` takes it); also
LangChain's own `Criteria` and constitutional principles."""

ModelLike = str | Judge | Runnable[Any, Any]

NAMES: dict[str, tuple[str, ...]] = {
    "output": ("prediction", "output"),
    "source": ("input", "source"),
    "reference": ("reference",),
    "context": ("context",),
}
"""Under which names LangChain's evaluators and the core know a sample's fields, first match first."""

UPSTREAM = frozenset(each.value for each in Criteria)
"""The names of LangChain's own criteria."""

JUDGE_OPTIONS = frozenset(inspect.signature(LiteLLMJudge).parameters) - {"model"}


def as_criteria(spec: CriteriaLike) -> list[str | Criterion]:
    """The criteria as the core takes them. A description is rated on 1-5, and the input is shown where there is one.

    LangChain's `Criteria` mean what they mean there: harmfulness is high for a text that is harmful. So do their names,
    as far as none of ours is called so.

    Raises:
        InputError: there are none.

    >>> [criterion.label for criterion in as_criteria({"politeness": "Is the reply polite?"})]
    ['Politeness']
    >>> as_criteria("harmfulness")[0].definition
    'Is the submission harmful, offensive, or inappropriate? The more it is so, the higher the score.'
    """
    if isinstance(spec, Mapping):
        found: list[str | Criterion] = [_described(name, text) for name, text in spec.items()]
    else:
        several = [spec] if isinstance(spec, str | Criterion | ConstitutionalPrinciple) else list(spec or ())
        found = [_as_criterion(each) for each in several]
    if not found:
        raise InputError('no criteria: pass criteria="coherence", several names, free text, or name to description')
    return found


def _as_criterion(spec: CriterionLike) -> str | Criterion:
    if isinstance(spec, ConstitutionalPrinciple):
        return _described(spec.name, spec.critique_request)
    if isinstance(spec, str) and (isinstance(spec, Criteria) or (spec in UPSTREAM and spec not in load_criteria())):
        return _of_upstream(Criteria(spec))
    return spec


def _of_upstream(criterion: Criteria) -> Criterion:
    """LangChain's own criterion, by its own question, which it has answered with Y or N."""
    ((name, question),) = CriteriaEvalChain.resolve_criteria(criterion).items()
    asked = re.sub(r"\s*If so, respond Y\. If not, respond N\.$", "", question)
    described = _described(name, f"{asked} The more it is so, the higher the score.")
    return replace(described, needs=("reference",)) if criterion is Criteria.CORRECTNESS else described


def _described(name: str, definition: str | Sequence[Any]) -> Criterion:
    if not isinstance(definition, str):
        shown: tuple[Field, ...] = ("source", "context")
        return Criterion(name, "", Scale.of("0-1"), optional=shown, rubric=Rubric.of(definition))
    return Criterion(name, definition, Scale.of("1-5"), optional=("source",))


def as_judges(
    model: ModelLike | Sequence[ModelLike] | None,
    llm: Runnable[Any, Any] | Sequence[Runnable[Any, Any]] | None,
    options: Mapping[str, Any],
) -> list[Judge]:
    """The judges that the user named: one, or a list of them for a jury; see `as_judge`."""
    models: list[Any] = list(model) if isinstance(model, list | tuple) else [model]
    llms: list[Any] = list(llm) if isinstance(llm, list | tuple) else [llm]
    if len(models) > 1 or len(llms) > 1:
        return [as_judge(each, None, options) for each in models if each] + [
            as_judge(None, each, options) for each in llms if each
        ]
    return [as_judge(models[0] if models else None, llms[0] if llms else None, options)]


def as_judge(model: ModelLike | None, llm: Runnable[Any, Any] | None, options: Mapping[str, Any]) -> Judge:
    """The judge that the user named, by a string or as a chat model; there is no other.

    Raises:
        InputError: none or two were named, it is no chat model, or options that only a model string takes.
    """
    named = [each for each in (model, llm) if each is not None and each != ""]
    if not named:
        raise InputError(
            'no judge was named: pass model="openai/gpt-4o-mini" (any LiteLLM string, or local/smollm2), or set'
            " $GEVAL_MODEL. For llm=, load with langchain_geval.load_evaluator (from langchain_geval import"
            " load_evaluator): LangChain's own load_evaluator does not hand llm on"
        )
    if len(named) > 1:
        raise InputError("two judges were named: pass model= or llm=, not both")
    judge = named[0]
    if isinstance(judge, str):
        return LiteLLMJudge(judge, **options)
    if options:
        raise InputError(f"{', '.join(options)}: belongs to a model string; set it on the chat model instead")
    return ChatModelJudge(judge) if isinstance(judge, Runnable) else judge


def named_by_environment(model: ModelLike | None, llm: Runnable[Any, Any] | None) -> ModelLike | None:
    """`model`, or `$GEVAL_MODEL` where neither judge was named."""
    return model or (None if llm else os.environ.get("GEVAL_MODEL"))


def split_options(options: Mapping[str, Any], taker: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `taker` takes by name, and what belongs to the judge.

    Raises:
        InputError: an option that nobody takes.
    """
    own = {name for name, each in inspect.signature(taker).parameters.items() if each.kind == each.KEYWORD_ONLY}
    if unknown := set(options) - own - JUDGE_OPTIONS:
        raise InputError(
            f"unknown option {', '.join(sorted(unknown))}; known: {', '.join(sorted(own | JUDGE_OPTIONS))}"
        )
    taken = {name: value for name, value in options.items() if name in own}
    return taken, {name: value for name, value in options.items() if name not in own}


def as_text(value: object) -> str | None:
    """A value of a chain as text: a message's text, the only entry of a mapping, anything else as JSON.

    >>> as_text({"answer": "Paris."})
    'Paris.'
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, PromptValue):
        return value.to_string()
    if isinstance(value, Mapping) and len(value) == 1:
        return as_text(next(iter(value.values())))
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    return str(value.text if isinstance(value, BaseMessage) else value)


def as_sample(value: object, **more: object) -> Sample:
    """A sample from a prediction, or from a mapping with `prediction` and what belongs to it.

    Messages, as of a run of an agent or of a conversation, may be the prediction, the input, or `messages`.

    Raises:
        InputError: no prediction in a mapping.

    >>> as_sample({"prediction": "Paris.", "input": "Capital of France?"}).source
    'Capital of France?'
    """
    if isinstance(value, Sample):
        return value
    everything = {**(value if isinstance(value, Mapping) else {"prediction": value}), **more}
    given = {name: each for name, each in everything.items() if each is not None}
    found = {field: next((given[name] for name in names if name in given), None) for field, names in NAMES.items()}
    fields = {field: as_passages(each) if field == "context" else as_told(each) for field, each in found.items()}
    if fields["output"] is None and "messages" not in given:
        raise InputError(f"no prediction among {', '.join(map(repr, given)) or 'nothing'}; name it 'prediction'")
    rubric = next((given[name] for name in ALIASES["rubric"] if name in given), None)
    return to_sample({**fields, "messages": given.get("messages"), "rubric": rubric})


def as_told(value: object) -> Any:
    """A value of a chain as a sample takes it: messages and content parts as they are, anything else as text.

    A single message that only says something is its text.

    >>> from langchain_core.messages import AIMessage
    >>> as_told([AIMessage("Hello.")])[0].content, as_told(AIMessage("Hello."))
    ('Hello.', 'Hello.')
    """
    if isinstance(value, BaseMessage):
        plain = isinstance(value.content, str) and not getattr(value, "tool_calls", None)
        return as_text(value) if plain else [value]
    if isinstance(value, ChatPromptValue) and len(value.messages) > 1:
        return value.messages
    return value if messages_in(value) is not None or has_parts(value) else as_text(value)


def as_passages(value: object) -> Any:
    """A context as a sample takes it: a list, as of a retriever's documents, stays one; anything else is text."""
    return value if isinstance(value, list) else as_text(value)


def has_parts(value: object) -> bool:
    """Whether a value is a content of several parts, as of text and images."""
    return isinstance(value, list) and any(isinstance(each, Mapping) and "type" in each for each in value)
