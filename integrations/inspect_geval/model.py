"""One of Inspect's models as the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.util import LimitExceededError

from geval_adapters import Answer, Judge, JudgeError, Reply, Usage
from geval_adapters.judge import (
    TOP_LOGPROBS,
    Access,
    Fault,
    Parameters,
    cost_of,
    facts,
    keep_secret,
    redact,
    reply_of,
    served_by,
    without_echoes,
)

PROVIDERS = {"google": "gemini", "together": "together_ai", "fireworks": "fireworks_ai", "grok": "xai"}
"""Inspect's names of providers that LiteLLM calls otherwise."""
ROLES: dict[str, type[Any]] = {
    "system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant,
}  # fmt: skip
FINISH = {"max_tokens": "length", "model_length": "length"}


class InspectJudge(Judge):
    """A model of Inspect's as the core's `Judge`: its connections, retries, cache, batches and limits hold for it, and
    what it was asked stands in the sample's transcript.

    Log-probabilities are read where the model returns them. A temperature that the model was made with is kept.

    Args:
        model: as `inspect_ai.model.get_model` makes it.
        config: further settings of each request, such as `GenerateConfig(cache=True, batch=True)`.

    Raises:
        JudgeError: from `ask`: the provider refuses the credentials, or has no such model.

    >>> from inspect_ai.model import get_model
    >>> InspectJudge(get_model("mockllm/model")).name
    'mockllm/model'
    """

    def __init__(self, model: Model, config: GenerateConfig | None = None) -> None:
        self.model = model
        self.config = model.config.merge(config or GenerateConfig())
        provider, _, name = str(model).partition("/")
        self.name = f"{PROVIDERS.get(provider, provider)}/{name}"
        self.parameters = Parameters(self.name)
        self._access = Access()
        keep_secret(model.api.api_key)

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
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
        """Return `n` replies: from one request where the model gives several choices, else from one for each.

        A request that fails for good is a reply with an error. A schema is not told: `without` says so.
        """
        sent: list[ChatMessage] = [ROLES[each["role"]](content=each["content"]) for each in messages]
        if start and self.name.startswith("anthropic/") and facts(self.name).get("supports_assistant_prefill"):
            sent.append(ChatMessageAssistant(content=start))  # as LiteLLM does for the same model
        options = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "stop": None if stop is None else [stop],
            "logprobs": True if logprobs else None,
            "top_logprobs": TOP_LOGPROBS if logprobs else None,
        }
        kept = {"temperature"} if None not in (temperature, self.config.temperature) else set()
        body = {name: value for name, value in options.items() if value is not None and name not in kept}
        first = await self._ask_once(sent, {**body, "n": n}, 0)
        if len(first.replies) < n and first.replies[0].error is None:
            self.parameters.refuse(["n"])  # it gives one choice, however many are asked for
        missing = range(len(first.replies), n)
        answers = [first, *await asyncio.gather(*(self._ask_once(sent, body, number) for number in missing))]
        replies = [reply for each in answers for reply in each.replies]
        untold = {"response_format"} if schema else set()
        without = frozenset(kept | untold).union(*(each.without for each in answers))
        return Answer(replies[:n], sum((each.usage for each in answers), Usage()), without=without)

    async def _ask_once(self, messages: list[ChatMessage], body: dict[str, Any], number: int) -> Answer:
        try:
            output, without = await self.parameters.send(body, partial(self._generate, messages, number))
            replies = [as_reply(choice, output) for choice in output.choices]
            if not replies:
                raise Fault(502, redact(output.error or "the response holds no choices"), kind="no choices")
        except Fault as fault:
            if self._access.ends(fault):
                raise JudgeError(f"{self.name}: {fault.message}") from None
            return Answer([Reply("", error=fault.message)], Usage(requests=1, cost=None))
        self._access.granted()
        return Answer(replies, self._usage(output), without=without)

    async def _generate(self, messages: list[ChatMessage], number: int, body: dict[str, Any]) -> ModelOutput:
        """One request; the `number` keeps equal ones apart in Inspect's cache. Raises Fault, whatever the model raises.

        Raises:
            LimitExceededError: the sample has spent what it may, which Inspect itself deals with.
        """
        names = {"n": "num_choices", "stop": "stop_seqs"}
        config = self.config.merge(GenerateConfig(**{names.get(name, name): value for name, value in body.items()}))
        if number:
            policy = config.cache if isinstance(config.cache, CachePolicy) else CachePolicy()
            config.cache = bool(config.cache) and policy.model_copy(
                update={"scopes": {**policy.scopes, "reply": str(number)}}
            )
        try:
            return await self.model.generate(messages, config=config)
        except LimitExceededError:
            raise
        except Exception as error:
            cause = error.__cause__ or error  # Inspect's own error shows the whole request
            said = str(getattr(error, "provider_message", None) or error).strip()
            message = redact(f"{type(cause).__name__}: {next(iter(said.splitlines()), '')}")
            status = getattr(error, "status_code", None) or getattr(cause, "status_code", None)
            parameter = getattr(cause, "param", None)
            raise Fault(status if isinstance(status, int) else 400, message, parameter=parameter) from None

    def _usage(self, output: ModelOutput) -> Usage:
        told = (
            each for each in reversed(transcript().events) if isinstance(each, ModelEvent) and each.output is output
        )
        if (event := next(told, None)) is not None and event.cache == "read":
            return Usage(from_cache=len(output.choices))
        if (counts := output.usage) is None:
            return Usage(requests=1, cost=None)
        cached = counts.input_tokens_cache_read or 0
        prompt = counts.input_tokens + cached + (counts.input_tokens_cache_write or 0)
        cost = counts.total_cost
        if cost is None:
            cost = cost_of(self.name, prompt, cached, counts.output_tokens)
        return Usage(prompt, cached, counts.output_tokens, 1, cost)


def as_reply(choice: Any, output: ModelOutput) -> Reply:
    """One of a model's choices as the core's reply.

    Raises:
        Fault: its log-probabilities are malformed.
    """
    message, details = choice.message, choice.stop_details
    refused = choice.stop_reason == "content_filter"
    told = (details and details.explanation) or output.error or message.text or "content filter"
    thought = (
        [] if isinstance(message.content, str) else [e.reasoning for e in message.content if e.type == "reasoning"]
    )
    reply = reply_of(
        {
            "message": {
                "content": "" if refused else message.text,
                "refusal": redact(told) if refused else None,
                "reasoning": "\n".join(thought),
            },
            "logprobs": choice.logprobs.model_dump(exclude_none=True) if choice.logprobs else None,
            "finish_reason": FINISH.get(choice.stop_reason, choice.stop_reason),
        },
        served_by(output.model, None),
    )
    return without_echoes(reply)
