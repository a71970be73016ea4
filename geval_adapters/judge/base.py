"""The whole contract between the core and a judge: what it is asked, what it answers, and what that cost."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import JudgeError
from ..messages import count_images

log = logging.getLogger("geval_adapters")


def cache_folder() -> Path:
    """The user's folder for what is kept between runs: `$GEVAL_CACHE`, else below `$XDG_CACHE_HOME` or `~/.cache`."""
    base = os.environ.get("GEVAL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "geval-adapters"
    return Path(base).expanduser()


@dataclass(frozen=True)
class Usage:
    """What was spent: tokens as the provider counts them, requests, and dollars, None where unknown; beside that, the
    replies that came from a cache of earlier runs for nothing.

    >>> Usage(prompt_tokens=10, requests=1, cost=0.1) + Usage(prompt_tokens=5, requests=1, cost=None)
    Usage(prompt_tokens=15, cached_tokens=0, completion_tokens=0, requests=2, cost=None, from_cache=0)
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0
    cost: float | None = 0.0
    from_cache: int = 0

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.requests + other.requests,
            cost,
            self.from_cache + other.from_cache,
        )


class Took(NamedTuple):
    """What a reply took to get.

    Attributes:
        prompt, cached: tokens of the request that it came with, whole.
        completion: tokens of the reply alone.
        shared: whether others came with the same request.
    """

    prompt: int
    cached: int
    completion: int
    shared: bool

    @classmethod
    def of(cls, usage: Usage, replies: int) -> Took:
        """What each of several replies took, on average, that took so much together."""
        requests = max(1, usage.requests)
        completion = round(usage.completion_tokens / max(1, replies))
        return cls(usage.prompt_tokens // requests, usage.cached_tokens // requests, completion, requests < replies)


@dataclass(frozen=True)
class Reply:
    """One reply of a judge.

    Attributes:
        text: what it wrote as its answer; neither its thinking nor a refusal that the provider marks as one.
        logprobs: `logprobs.content` in OpenAI's format, None where the model gave none.
        error: why there is no reply at all.
        reasoning: what it thought before, where the provider keeps that apart (`reasoning_content`, thinking blocks).
        refusal: why it would not answer, where the provider marks that.
        finish: why it ended, in OpenAI's words (`stop`, `length`, `content_filter`); None where that is not known.
        served: the model that gave it and its fingerprint, as the provider names them; None where it does not.
        took: of one that comes from a cache, what it took when it was asked for.
    """

    text: str
    logprobs: Sequence[Mapping[str, Any]] | None = None
    error: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    finish: str | None = None
    served: str | None = None
    took: Took | None = field(default=None, compare=False)

    @property
    def cut(self) -> bool:
        """Whether it ran out of room."""
        return self.finish == "length"


@dataclass(frozen=True)
class Answer:
    """All replies to one question.

    Attributes:
        replies: failed ones among them.
        usage: what they cost.
        model: which model answered, where that varies.
        without: optional parameters (`temperature`, `logprobs` …) that were asked for and that the model did not get,
            because it does not take them.
    """

    replies: list[Reply]
    usage: Usage
    model: str | None = None
    without: frozenset[str] = frozenset()


def joined_models(names: Iterable[str | None]) -> str | None:
    """The models that answered as one name; None where none is known.

    >>> joined_models(["b", None, "a+b"])
    'a+b'
    """
    return "+".join(sorted({model for each in names if each for model in each.split("+")})) or None


class Judge(ABC):
    """Whatever can be asked: all that the core wants to know of a judge. Subclasses need a `name` and `ask`.

    Attributes:
        name: what signatures call it.
        concurrency: requests that it works on at once, at the most.
        options: further parameters that go with each request, and into signatures.
        caches_what_is_marked: whether the beginning of a prompt is cached only up to a mark, so that `ask` must be told
            how much of it other prompts share.
        opening: how many questions of one kind are asked before all others, so that these profit from what they show;
            0 where that costs more time than it saves.

    >>> class Kind(Judge):
    ...     name = "kind"
    ...     async def ask(self, messages, *, n=1, **_):
    ...         return Answer([Reply("Rating: 5")] * n, Usage(requests=n))
    >>> Kind().concurrency
    16
    """

    name: str
    concurrency: int = 16
    options: Mapping[str, Any] = MappingProxyType({})
    caches_what_is_marked: bool = False
    opening: int = 0

    async def takes(self, parameter: str) -> bool:
        """Whether an optional parameter of `ask` is believed to be taken, as far as that is known; nothing is sent."""
        return True

    def sees(self) -> bool | None:
        """Whether it can be shown images; None where that is not known."""
        return None

    def check_sight(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Raise JudgeError where images would be shown to a judge that does not see."""
        if self.sees() is False and count_images(messages):
            raise JudgeError(f"{self.name}: does not see images, and what is judged holds some: name another model")

    def recall(self, kind: str) -> Mapping[str, Any]:
        """What an earlier process of the same run learnt of questions of a kind; nothing where nothing is kept."""
        return {}

    def remember(self, kind: str, facts: Mapping[str, Any]) -> None:  # noqa: B027 - most keep nothing
        """Keep what was learnt of questions of a kind for a later process, where anything is kept."""

    def finish(self) -> None:  # noqa: B027 - most keep nothing
        """All that was asked for is written down: what was kept for going on may go."""

    @abstractmethod
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
        """Return `n` replies to the messages. A request that fails for good is a reply with an error.

        Args:
            messages: as in OpenAI's chat protocol; their content is text, or, where `sees` does not say no, a list of
                text parts and images.
            n: how many replies.
            temperature, max_tokens, stop: as there; None is the provider's default.
            logprobs: whether log-probabilities are wanted, with as many alternatives as there are.
            start: where the reply should begin, for models that can go on with one.
            schema: a JSON schema that the reply is to fit, for models that can be held to one; told only where there is
                one.
            shared: how many characters at the beginning of the last message stand in other questions, too; told only
                where `caches_what_is_marked`.
            about: what is asked about; tells equal questions of one run apart where answers are kept.
            now: whether the answer is wanted at once by a judge that would otherwise collect questions.

        Raises:
            JudgeError: the judge cannot be asked at all.
        """
