"""Which optional parameters a model takes: what is declared, what it refuses, and what it has taken."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..messages import text_of
from .base import log
from .faults import Fault
from .loops import PerLoop

T = TypeVar("T")

TOP_LOGPROBS = 20
"""How many alternatives are asked for at each token: the most that providers give."""
FEW_LOGPROBS = 5
"""How many are asked for where that is refused, and no number is named."""
THINKING = 4096
"""Tokens that a limit leaves for thinking where it counts what is thought too (`max_completion_tokens`)."""

OPTIONAL = {
    "top_logprobs": r"\btop_logprobs\b",
    "logprobs": r"\blogprobs\b",
    "temperature": r"\btemperature\b",
    "n": r"['\"`]n['\"`]|\bn ?(?:>|=|must)|parameter:? n\b|(?:number of|multiple) (?:choices|completions)",
    "stop": r"\bstop(?:_sequences)?\b",
    "max_tokens": r"\bmax_tokens\b",
    "max_completion_tokens": r"\bmax_completion_tokens\b",
    "response_format": r"\bresponse_format\b|\bjson_schema\b",
    "continue_final_message": r"\bcontinue_final_message\b",
}
"""Parameters that a provider may refuse, and how its message then names them."""

_REFUSES = (
    r"(?:not|n't|un)[ -]?(?:be )?(?:currently )?(?:support|allow|permit|accept|recogni|availab|known|expected)"
    r"|unexpected|unknown|unsupported|no such|not (?:a )?valid|invalid|extra_forbidden|must|only|deprecated|disabled"
    r"|at most|less than|greater than|no more than|above|exceed|maximum|between|too (?:many|large|high)|<="
    r"|(?:does|do|can|is) ?not|cannot|can't|doesn't"
)
"""How a message says that a parameter is not taken, or not so."""
_NEAR = 100
"""Characters that may stand between a parameter's name and that."""


class Parameters:
    """What one model takes of the optional parameters; the one place where that is learnt.

    A request that is refused a parameter *which it sent* is sent again without it. That the model does not take the
    parameter is learnt once the request has succeeded so, and only if none has ever succeeded with it: an error that
    echoes a text, or one odd deployment, changes nothing for other requests.

    Args:
        name: the model's, for messages.
        most: the highest values that are asked for.

    Attributes:
        refused: parameters that are not asked for.
        most: the highest values that are asked for.
    """

    def __init__(self, name: str, **most: int) -> None:
        self.name = name
        self.refused: set[str] = set()
        self.most: dict[str, int] = {"top_logprobs": TOP_LOGPROBS, **most}
        self._taken: set[tuple[str, str]] = set()
        self._learning = PerLoop(asyncio.Lock)

    def takes(self, name: str) -> bool:
        """Whether a parameter is believed to be taken."""
        return name not in self.refused and self.most.get(name, 2) > 1

    def refuse(self, names: Iterable[str]) -> None:
        """Do not ask for these."""
        self.refused.update(names)
        if "n" in self.refused:
            self.most["n"] = 1

    async def send(
        self, body: Mapping[str, Any], send: Callable[[dict[str, Any]], Awaitable[T]]
    ) -> tuple[T, frozenset[str]]:
        """Send a request, and again without what is refused; the result, and what was left out in the end.

        While one request learns, others that were refused wait for what it learns.

        Raises:
            Fault: from `send`, if it is not about an optional parameter that was sent.
        """
        request = _Request(self, body)
        lock: asyncio.Lock | None = None
        try:
            while True:
                try:
                    result = await send(request.body())
                except Fault as fault:
                    if not request.gives_up(fault):
                        raise
                else:
                    request.succeeded()
                    return result, request.without()
                if lock is None and request.teaches():
                    lock = self._learning.here()
                    await lock.acquire()
                    if not request.teaches():
                        lock.release()
                        lock = None
        finally:
            if lock:
                lock.release()

    def was_taken(self, name: str, value: object) -> bool:
        """Whether a request with this value has succeeded."""
        return (name, str(value)) in self._taken

    def take(self, sent: Mapping[str, Any]) -> None:
        """A request with these parameters has succeeded."""
        self._taken.update((name, str(sent[name])) for name in OPTIONAL if name in sent)

    def learn(self, name: str, most: int | None) -> None:
        """A parameter is not taken, or only up to a value."""
        if most is None:
            self.refuse([name])
            log.warning("%s does not take %s: asked without it from now on", self.name, name)
        else:
            self.most[name] = most
            log.info("%s takes %s up to %d", self.name, name, most)

    def learnt(self) -> dict[str, Any]:
        """What was learnt, as JSON has it."""
        return {"refused": sorted(self.refused), "most": self.most, "taken": sorted(self._taken)}

    def recall(self, facts: Mapping[str, Any]) -> None:
        """Begin with what was learnt before."""
        self.refuse(facts["refused"])
        self.most |= facts["most"]
        self._taken.update((name, value) for name, value in facts["taken"])


class _Request:
    """One request, from refusal to refusal."""

    def __init__(self, known: Parameters, body: Mapping[str, Any]) -> None:
        self._known = known
        self._body = body
        self._given_up: dict[str, int | None] = {}
        self._refused_values: dict[str, object] = {}
        self._sent: dict[str, Any] = {}

    def body(self) -> dict[str, Any]:
        """What is to be sent now."""
        known, sent = self._known, {}
        for name, value in self._body.items():
            if self._is_out(name):
                if name == "max_tokens" and not self._is_out("max_completion_tokens"):
                    sent["max_completion_tokens"] = value + THINKING
            elif most := [most for most in (known.most.get(name), self._given_up.get(name)) if most]:
                sent[name] = min(value, *most)
            else:
                sent[name] = value
        if "logprobs" not in sent:
            sent.pop("top_logprobs", None)
        if sent.get("n") == 1:
            del sent["n"]
        self._sent = sent
        return sent

    def _is_out(self, name: str) -> bool:
        return name in self._known.refused or self._given_up.get(name, 0) is None

    def gives_up(self, fault: Fault) -> bool:
        """Whether an optional parameter of this very request was refused; it is then left out, or made smaller."""
        name = refused_parameter(fault, self._sent)
        if name is None:
            return False
        value = self._sent[name]
        self._refused_values.setdefault(name, value)
        if name == "n":
            self._given_up[name] = _highest(fault.message, value) or 1
        elif name == "top_logprobs" and value > 1:
            fewer = FEW_LOGPROBS if value > FEW_LOGPROBS else value // 2
            self._given_up[name] = _highest(fault.message, value) or fewer
        else:
            self._given_up["logprobs" if name == "top_logprobs" else name] = None
        return True

    def teaches(self) -> bool:
        """Whether its success would tell something new of the model."""
        return any(True for _ in self._lessons())

    def _lessons(self) -> Iterable[tuple[str, int | None]]:
        known = self._known
        for name, most in self._given_up.items():
            if name in known.refused or (most is not None and known.most.get(name, most + 1) <= most):
                continue
            if not known.was_taken(name, self._refused_values.get(name, True)):
                yield name, most

    def succeeded(self) -> None:
        """It was answered as it was last sent."""
        for name, most in list(self._lessons()):
            self._known.learn(name, most)
        self._known.take(self._sent)

    def without(self) -> frozenset[str]:
        """What was asked for and not sent."""
        return frozenset(self._body) - frozenset(self._sent) - {"n"}


def refused_parameter(fault: Fault, sent: Mapping[str, Any]) -> str | None:
    """Which optional parameter of those sent a fault refuses; None where it does not say so.

    >>> refused_parameter(Fault(400, "Unsupported parameter: 'temperature'"), {"temperature": 0})
    'temperature'
    >>> refused_parameter(Fault(400, "Rejected: {'temperature': 0, 'content': 'Hello'}"), {"temperature": 0})
    """
    if not fault.about_request:
        return None
    if fault.parameter in OPTIONAL and fault.parameter in sent:
        return fault.parameter
    message = fault.message[:4000]
    told = "\n".join(text_of(each) for each in sent.get("messages", ()) if isinstance(each, Mapping))
    places: dict[str, int] = {}
    for name, pattern in OPTIONAL.items():
        if name not in sent:
            continue
        near = rf"(?:{pattern})[^\n]{{0,{_NEAR}}}?(?:{_REFUSES})|(?:{_REFUSES})[^\n]{{0,{_NEAR}}}?(?:{pattern})"
        match = re.search(near, message, re.IGNORECASE)
        if match and match[0] not in told:
            places[name] = match.start()
    return min(places, key=lambda name: places[name], default=None)


def _highest(message: str, value: int) -> int | None:
    """The highest whole number in a message that is smaller than what was asked for."""
    numbers = (int(number) for number in re.findall(r"(?<![\w.-])\d{1,3}(?![\w.]\d|\w)", message[:4000]))
    return max((number for number in numbers if 1 <= number < value), default=None)
