"""A LangChain chat model as the judge."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.fallbacks import RunnableWithFallbacks

from geval_adapters import Answer, InputError, Judge, JudgeError, Reply, Usage
from geval_adapters.judge import (
    TOP_LOGPROBS,
    Access,
    Fault,
    Parameters,
    cost_of,
    facts,
    redact,
    reply_of,
    sees,
    served_by,
    without_echoes,
)

PROVIDERS = {
    "amazon_bedrock": "bedrock",
    "fireworks": "fireworks_ai",
    "google_genai": "gemini",
    "google_vertexai": "vertex_ai",
    "mistralai": "mistral",
    "together": "together_ai",
}
"""LangChain's names of providers that LiteLLM calls otherwise."""


class ChatModelJudge(Judge):
    """A LangChain chat model as the core's `Judge`.

    Log-probabilities are read where the model returns them under `response_metadata["logprobs"]`; a parameter that it
    turns out not to take is not sent again. Callbacks, tags and metadata come from the run that asks.

    Args:
        model: any chat model, or one with bound arguments, a retry, fallbacks or a config. A bound temperature is kept.
        name: what signatures call it; by default as LiteLLM calls the same model (`openai/gpt-4o-mini`), so that
            ratings of both routes compare.
        concurrency: requests under way at once; a run's `max_concurrency` stands above it.

    Raises:
        InputError: this is no chat model.
        JudgeError: from `ask`: the provider refuses the credentials, or has no such model.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> ChatModelJudge(FakeListChatModel(responses=["Rating: 4"])).name
    'fakelistchatmodel'
    """

    def __init__(self, model: Runnable[Any, Any], *, name: str | None = None, concurrency: int = 16) -> None:
        self.model = model
        self.name = name or " or ".join(litellm_name(each) for each in chat_models(model))
        self.concurrency = concurrency
        self.parameters = Parameters(self.name)
        self._access = Access()
        self._gates = _gates()

    def sees(self) -> bool | None:
        """Whether it can be shown images, as far as LiteLLM knows the model."""
        return sees(self.name)

    async def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        n: int = 1,
        temperature: float | None = None,
        max_tokens: int | None = None,
        logprobs: bool = False,
        stop: str | None = None,
        start: str = "",
        shared: int = 0,
        about: str = "",
        now: bool = False,
        schema: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return `n` replies, each from a request of its own. A request that fails is a reply with an error.

        Chat models take a schema in as many ways as there are providers, so none is told: `without` says so.
        """
        sent_messages: list[Any] = list(messages)
        if start and self.name.startswith("anthropic/") and facts(self.name).get("supports_assistant_prefill"):
            sent_messages.append(AIMessage(start))  # as LiteLLM does for the same model
        options = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "stop": None if stop is None else [stop],
            "logprobs": True if logprobs else None,
            "top_logprobs": TOP_LOGPROBS if logprobs else None,
        }
        kept = {"temperature"} & bound_options(self.model) if temperature is not None else set()
        sent = {name: value for name, value in options.items() if value is not None and name not in kept}
        model = self.model if n == 1 else without_cache(self.model)
        answers = await asyncio.gather(*(self._ask_once(model, {"messages": sent_messages, **sent}) for _ in range(n)))
        untold = {"response_format"} if schema else set()
        without = frozenset(kept | untold).union(*(each.without for each in answers))
        replies = [reply for each in answers for reply in each.replies]
        return Answer(replies, sum((each.usage for each in answers), Usage()), without=without)

    async def _ask_once(self, model: Runnable[Any, Any], body: dict[str, Any]) -> Answer:
        try:
            message, without = await self.parameters.send(body, partial(self._invoke, model))
        except Fault as fault:
            if self._access.ends(fault):
                raise JudgeError(f"{self.name}: {fault.message}") from None
            return Answer([Reply("", error=fault.message)], Usage(requests=1, cost=None))
        self._access.granted()
        return Answer([as_reply(message)], self._usage(message), without=without)

    async def _invoke(self, model: Runnable[Any, Any], body: dict[str, Any]) -> Any:
        """One request. Raises Fault, whatever the model raises."""
        options = {name: value for name, value in body.items() if name != "messages"}
        try:
            async with self._gate():
                return await model.ainvoke(body["messages"], **options)
        except Exception as error:
            message = redact(f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}")
            status, parameter = getattr(error, "status_code", None), getattr(error, "param", None)
            raise Fault(status if isinstance(status, int) else 400, message, parameter=parameter) from None

    def _gate(self) -> asyncio.Semaphore:
        """What lets requests through: one for all that is asked in an event loop under the same limit."""
        limit = ensure_config().get("max_concurrency") or self.concurrency
        gates = self._gates.setdefault(asyncio.get_running_loop(), {})
        return gates.setdefault(limit, asyncio.Semaphore(limit))

    def _usage(self, message: object) -> Usage:
        counts = getattr(message, "usage_metadata", None) or {}
        prompt, completion = int(counts.get("input_tokens") or 0), int(counts.get("output_tokens") or 0)
        cached = int((counts.get("input_token_details") or {}).get("cache_read") or 0)
        cost = cost_of(self.name, prompt, cached, completion) if counts else None
        return Usage(prompt, cached, completion, 1, cost)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without what belongs to this one's event loops."""
        return self.__dict__ | {"_gates": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_gates": _gates()}


def _gates() -> weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]]:
    return weakref.WeakKeyDictionary()


def chat_models(model: object) -> list[BaseChatModel]:
    """The chat model itself, without what is bound to it; behind it those that it falls back on.

    Raises:
        InputError: there is none.
    """
    if isinstance(model, RunnableBindingBase):
        return chat_models(model.bound)
    if isinstance(model, RunnableWithFallbacks):
        return [each_model for each in (model.runnable, *model.fallbacks) for each_model in chat_models(each)]
    if not isinstance(model, BaseChatModel):
        raise InputError(f"llm must be a LangChain chat model, got {type(model).__name__}; a model string is model=")
    return [model]


def bound_options(model: object) -> set[str]:
    """The names of the arguments that are bound to a model, or to any of those that it falls back on."""
    if isinstance(model, RunnableBindingBase):
        return set(model.kwargs) | bound_options(model.bound)
    if isinstance(model, RunnableWithFallbacks):
        return set[str]().union(*(bound_options(each) for each in (model.runnable, *model.fallbacks)))
    return set()


def litellm_name(model: BaseChatModel) -> str:
    """What LiteLLM calls the model, from what LangChain tells its tracers of it."""
    about = model._get_ls_params()
    provider = about.get("ls_provider") or model._llm_type
    name = (about.get("ls_model_name") or "").removeprefix("models/")
    return f"{PROVIDERS.get(provider, provider)}/{name}" if name else provider


def without_cache(model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """The model past LangChain's cache, which would answer each of several equal requests alike."""
    if isinstance(model, RunnableBindingBase):
        bound = without_cache(model.bound)
        return model if bound is model.bound else model.model_copy(update={"bound": bound})
    if isinstance(model, RunnableWithFallbacks):
        fallbacks = [without_cache(each) for each in model.fallbacks]
        return model.model_copy(update={"runnable": without_cache(model.runnable), "fallbacks": fallbacks})
    cached = isinstance(model, BaseChatModel) and model.cache is not False
    if cached and (model.cache or get_llm_cache() is not None):  # type: ignore[attr-defined]
        return model.model_copy(update={"cache": False})  # type: ignore[attr-defined, no-any-return]
    return model


def as_reply(message: Any) -> Reply:
    """A chat model's message as the core's reply.

    Raises:
        Fault: its log-probabilities or its content are malformed.
    """
    about = getattr(message, "response_metadata", None) or {}
    more = getattr(message, "additional_kwargs", None) or {}
    ends = (str(about[key]).lower() for key in ("finish_reason", "stop_reason", "done_reason") if about.get(key))
    finish = next(ends, None)
    choice = {
        "message": {**more, "content": message.content},
        "logprobs": about.get("logprobs"),
        "finish_reason": "length" if finish == "max_tokens" else finish,
    }
    served = served_by(about.get("model_name") or about.get("model"), about.get("system_fingerprint"))
    return without_echoes(reply_of(choice, served))
