"""The one place that calls a model.

A judge takes messages and returns replies. It knows two routes to a provider (`routes`); both get the same request and
return the same response, so all that follows (retries, limits, what a model turns out not to support, usage and cost)
is written once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

log = logging.getLogger("geval_adapters")


@dataclass(frozen=True)
class Usage:
    """What was spent: tokens as the provider counts them, requests, and dollars, None where unknown.

    >>> Usage(prompt_tokens=10, requests=1, cost=0.1) + Usage(prompt_tokens=5, requests=1, cost=None)
    Usage(prompt_tokens=15, cached_tokens=0, completion_tokens=0, requests=2, cost=None)
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.requests + other.requests,
            cost,
        )


@dataclass(frozen=True)
class Reply:
    """One answer of a judge.

    Attributes:
        text: what it wrote.
        logprobs: `logprobs.content` in OpenAI's format, None where the model gave none.
        cut: whether it ran out of room.
        error: why there is no answer at all.
    """

    text: str
    logprobs: Sequence[Mapping[str, Any]] | None = None
    cut: bool = False
    error: str | None = None


@dataclass(frozen=True)
class Answer:
    """The replies to one question, failed ones among them, what they cost, and which model answered if that varies."""

    replies: list[Reply]
    usage: Usage
    model: str | None = None


class Judge(Protocol):
    """Whatever can be asked: `LiteLLMJudge`, or a framework's chat model behind the same two members."""

    name: str

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
    ) -> Answer:
        """Return `n` replies to the messages; `start` is where the answer should begin, for models that can."""
        ...
