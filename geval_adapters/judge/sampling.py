"""Asking a judge until its replies make a distribution: by log-probabilities where it has them, else by samples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, ClassVar, Literal, get_args

from ..criteria import digest
from ..errors import InputError, JudgeError, one_of
from ..messages import Messages
from ..reading.combined import Combined, combine
from ..reading.distribution import Reading
from ..signature import Signature
from .base import Judge, Reply, Usage, joined_models, log
from .opening import Opening

Readout = Literal["auto", "logprobs", "samples"]
READOUTS: tuple[Readout, ...] = get_args(Readout)
"""How a score is to be read: `auto` is by log-probabilities where the judge has them, else from samples."""

Method = Literal["logprobs", "samples", "single"]
METHODS: tuple[Method, ...] = get_args(Method)
"""How a score was read."""

REPLIES = 20
"""How many replies stand in for a distribution where there are no log-probabilities (Liu et al. 2023, §3)."""


@dataclass(frozen=True)
class Question:
    """One thing to ask, and how its replies are read.

    Attributes:
        messages: what the judge is told.
        read: reads a reply; its second argument says whether by log-probabilities.
        start: where the answer should begin, for models that can continue one.
        stop: what ends the answer.
        room: tokens that the answer may take.
        shared: how many characters at the beginning other questions have too, where a judge is to be told.
        about: what is asked about; tells equal questions of one run apart.
        schema: the JSON schema of the answer, if it is to be JSON.
    """

    messages: Messages
    read: Callable[[Reply, bool], Reading]
    start: str
    stop: str | None
    room: int
    shared: int = 0
    about: str = ""
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Sampled:
    """What a judge's replies came to.

    Attributes:
        combined: all readings as one.
        text: the first reply that could be read.
        unread: the replies that could not be read, each with the reason.
        reasoning: what the judge thought before it, where that is kept apart.
        cut: whether that reply ran out of room.
        method: how the replies were read, one of `METHODS`.
        n: how many were asked for.
        usage: what they cost.
        model: which model gave them, where that varies.
        without: parameters that the model did not get, because it does not take them.
        served: the models and fingerprints that the provider names for them, each once.
        replies: all of them.
    """

    combined: Combined
    text: str
    unread: tuple[tuple[str, str], ...]
    reasoning: str | None
    cut: bool
    method: Method
    n: int
    usage: Usage
    model: str | None
    without: frozenset[str]
    served: tuple[str, ...] = ()
    replies: tuple[Reply, ...] = ()


@dataclass(frozen=True)
class Sequential:
    """Sequential sampling: replies are asked for until the standard error of their mean falls under a target.

    A few replies that happen to agree say little about the spread of all. So one reply that lies half the scale away is
    imagined beside them: `se² = (Σ (x − mean)² + (span / 2)²) / m²` for m replies that were read.

    Attributes:
        target: the standard error aimed at, in units of the score.
        span: from the lowest score to the highest.

    >>> Sequential(target=0.4, span=4).wanted([4, 4, 4], asked=3, most=20)
    3
    """

    target: float
    span: float
    FIRST: ClassVar[int] = 3

    def wanted(self, scores: Sequence[float], asked: int, most: int) -> int:
        """How many replies to ask for next: what seems to be lacking, but no more than were asked for so far."""
        least = min(self.FIRST, most)
        if asked < least:
            return least - asked
        if not scores:
            return min(asked, most - asked)
        wished = math.ceil(len(scores) * (self.std_error(scores) / self.target) ** 2 - 1e-9)
        return max(0, min(wished - len(scores), asked, most - asked))

    def std_error(self, scores: Sequence[float]) -> float:
        """The standard error that the rule goes by, which is the one to report: the usual one is too small just where
        sampling stopped early, because a few replies happened to agree.
        """
        mean = fmean(scores)
        return math.sqrt(sum((score - mean) ** 2 for score in scores) + (self.span / 2) ** 2) / len(scores)


class Sampling:
    """Asks a judge questions, and remembers what that judge turned out to have.

    What one question shows of the judge holds for all only where nothing has shown the contrary: a judge that has given
    log-probabilities once, or kept to its room, is not taken to be unable because of one odd reply.

    Args:
        judge: who is asked.
        n: replies per question; the default is 1 where log-probabilities are read, else `REPLIES`.
        temperature: the default is 0 for a single reply and 1 for several.
        readout: `logprobs`, `samples`, or `auto`: the former where the judge has them.
        sequential: when to stop sampling before `n` replies.
        least: replies at the least: one for each of several questions that share them.

    Raises:
        InputError: an unknown readout, or no replies.
    """

    def __init__(
        self,
        judge: Judge,
        n: int | None = None,
        temperature: float | None = None,
        readout: Readout = "auto",
        sequential: Sequential | None = None,
        least: int = 1,
    ) -> None:
        one_of("readout", readout, READOUTS)
        if n is not None and n < 1:
            raise InputError(f"n must be at least 1, got {n}")
        self.judge = judge
        self.n = None if n is None else max(n, least)
        self.temperature = None if temperature is None else float(temperature)
        self.readout = readout
        self.sequential = sequential
        self.least = least
        self.needs_room = False
        self._fits = False
        self._gave_logprobs = False
        self._gives_none = False
        self._opening: Opening | None = None

    @property
    def width(self) -> int:
        """How many questions are worth asking at once."""
        return 2 * self.judge.concurrency

    async def ask(self, questions: Sequence[Question]) -> Sampled:
        """The replies to some questions as one; several questions share the replies evenly.

        Raises:
            JudgeError: the judge cannot be asked at all. Whatever else fails is in the result's `error`.
        """
        if not self.judge.opening:
            return await self._ask_until_clear(questions, now=False)
        if self._opening is None:
            self._opening = Opening(self.judge, self._kind(questions), self.learnt, self.recall)
        async with self._opening.admitted() as now:
            return await self._ask_until_clear(questions, now)

    def _kind(self, questions: Sequence[Question]) -> str:
        """What tells questions that are asked in this way from others."""
        shape = [(question.start, question.stop, question.room) for question in questions]
        return digest(repr((self.n, self.temperature, self.readout, shape)))

    async def _ask_until_clear(self, questions: Sequence[Question], now: bool) -> Sampled:
        replies = _Replies()
        if await self._asks_for_logprobs():
            n = self.n or self.least
            probe = await self._ask_all(questions, range(n), n, now, logprobs=True)
            given = any(reply.logprobs for _, reply in probe.replies)
            self._gave_logprobs |= given
            if given or self.readout == "logprobs" or all(reply.error for _, reply in probe.replies):
                return probe.sampled("logprobs", n)
            if not self._gave_logprobs and any(reading.score is not None for reading in probe.readings(False)):
                self._does_without()
            replies = probe if self.n else _Replies(usage=probe.usage, without=probe.without)
        n = self.n or max(REPLIES, self.least)
        while more := self._wanted(replies, n):
            asked = len(replies.replies)
            replies += await self._ask_all(questions, range(asked, asked + more), n, now, logprobs=False)
        sampled = replies.sampled("samples" if n > 1 else "single", n)
        if self.sequential is None or not sampled.combined.n_valid:
            return sampled
        scores = [reading.score for reading in replies.readings(False) if reading.score is not None]
        return replace(sampled, combined=replace(sampled.combined, std_error=self.sequential.std_error(scores)))

    async def _asks_for_logprobs(self) -> bool:
        if self.readout == "samples" or self._gives_none:
            return False
        if await self.judge.takes("logprobs"):
            return True
        if self.readout == "logprobs":
            raise JudgeError(f"{self.judge.name} gives no log-probabilities: use the readout auto or samples")
        self._does_without()
        return False

    def _does_without(self) -> None:
        if not self._gives_none:
            log.warning("%s gives no log-probabilities: samples are used instead", self.judge.name)
        self._gives_none = self.readout == "auto"

    def _wanted(self, replies: _Replies, n: int) -> int:
        asked = len(replies.replies)
        if self.sequential is None:
            return n - asked
        scores = [reading.score for reading in replies.readings(False) if reading.score is not None]
        return self.sequential.wanted(scores, asked, n)

    async def _ask_all(
        self, questions: Sequence[Question], places: range, n: int, now: bool, logprobs: bool
    ) -> _Replies:
        """Replies number `places` of `n`."""
        all_replies = _Replies()
        for index, question in enumerate(questions):
            share = sum(place % len(questions) == index for place in places)
            if not share:
                continue
            limited = not self.needs_room
            replies = await self._ask(question, share, n, now, logprobs, limited)
            if limited and replies.cut_short(logprobs):
                if not self._fits and not self.needs_room:
                    log.warning("%s needs more room before its rating: asked without a limit", self.judge.name)
                    self.needs_room = True
                all_replies.usage += replies.usage
                replies = await self._ask(question, share, n, now, logprobs, limited=False)
            elif (
                limited and not self._fits and any(reading.score is not None for reading in replies.readings(logprobs))
            ):
                self._fits = True
            all_replies += replies
        return all_replies

    async def _ask(self, question: Question, share: int, n: int, now: bool, logprobs: bool, limited: bool) -> _Replies:
        self.judge.check_sight(question.messages)
        answer = await self.judge.ask(
            question.messages,
            n=share,
            temperature=self._temperature(n),
            max_tokens=question.room if limited else None,
            logprobs=logprobs,
            stop=question.stop,
            start=question.start,
            shared=question.shared,
            about=question.about,
            now=now,
            **({"schema": question.schema} if question.schema else {}),
        )
        replies = [(question, reply) for reply in answer.replies]
        return _Replies(replies, answer.usage, answer.model, answer.without)

    def learnt(self) -> dict[str, bool]:
        """What the judge has shown so far."""
        return {name: getattr(self, name) for name in ("needs_room", "_fits", "_gave_logprobs", "_gives_none")}

    def recall(self, facts: Mapping[str, bool]) -> None:
        """Begin with what it had shown to an earlier process."""
        for name in self.learnt():
            setattr(self, name, bool(facts.get(name)))

    def _temperature(self, n: int) -> float:
        return self.temperature if self.temperature is not None else float(n > 1)

    def signature(self, parts: Mapping[str, str], sampled: Sampled) -> Signature:
        """The parts that were settled before, and what of the asking could change a score."""
        temperature = "default" if "temperature" in sampled.without else f"{self._temperature(sampled.n):g}"
        n = self._n_of(sampled.n) if sampled.method == "samples" else str(sampled.n)
        answered = {"answered": sampled.model} if sampled.model else {}
        return Signature.of(**self._told(parts), n=n, temperature=temperature, readout=sampled.method, **answered)

    def _told(self, parts: Mapping[str, str]) -> dict[str, str]:
        options = {"options": json.dumps(dict(self.judge.options), sort_keys=True)} if self.judge.options else {}
        return {**parts, **options}

    def expected(self, parts: Mapping[str, str]) -> dict[str, set[str]]:
        """The same as far as it is known before anything is asked: the values that each part can have."""
        methods: dict[Readout, set[str]] = {"logprobs": {"logprobs"}, "samples": {"samples", "single"}}
        several = self._n_of(self.n or max(REPLIES, self.least))
        one = str(self.n or self.least)
        ns = {one} if self.readout == "logprobs" else {one, several}
        values = {name: {value} for name, value in Signature.of(**self._told(parts)).parts.items()}
        values |= {
            "n": ns if self.readout != "samples" else {several},
            "readout": methods.get(self.readout, {*METHODS}),
        }
        if self.temperature is not None:
            values["temperature"] = {f"{self.temperature:g}", "default"}
        return values

    def _n_of(self, n: int) -> str:
        """How many replies, as a signature has it."""
        if self.sequential is None or n <= Sequential.FIRST:
            return str(n)
        return f"{Sequential.FIRST}-{n}@{self.sequential.target / self.sequential.span:g}"


def most_replies(n: str) -> int | None:
    """How many replies adaptive sampling could have asked for, from the `n` of a signature; None for any other.

    >>> most_replies("3-20@0.1"), most_replies("20")
    (20, None)
    """
    _, dash, most = n.partition("@")[0].partition("-")
    return int(most) if dash else None


@dataclass
class _Replies:
    """Replies as they come in, each with the question that it answers."""

    replies: list[tuple[Question, Reply]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    without: frozenset[str] = frozenset()
    read: dict[tuple[int, bool], Reading] = field(default_factory=dict)

    def __iadd__(self, other: _Replies) -> _Replies:
        self.replies += other.replies
        self.read |= other.read
        self.usage += other.usage
        if self.model != other.model:
            self.model = joined_models((self.model, other.model))
        self.without |= other.without
        return self

    def readings(self, logprobs: bool) -> list[Reading]:
        """Each reply's reading, by log-probabilities or as text."""
        for question, reply in self.replies:
            if (id(reply), logprobs) not in self.read:
                self.read[id(reply), logprobs] = _read(question, reply, logprobs)
        return [self.read[id(reply), logprobs] for _, reply in self.replies]

    def cut_short(self, logprobs: bool) -> bool:
        """Whether a reply ran out of room before it could be read."""
        if not any(reply.cut for _, reply in self.replies):
            return False
        readings = zip(self.replies, self.readings(logprobs), strict=True)
        return any(reply.cut and reading.score is None for (_, reply), reading in readings)

    def sampled(self, method: Method, n: int) -> Sampled:
        readings = self.readings(method == "logprobs")
        both = zip(self.replies, readings, strict=True)
        first = next((reply for (_, reply), reading in both if reading.score is not None), Reply(""))
        missed = zip(self.replies, readings, strict=True)
        unread = tuple((reply.text, reading.error or "") for (_, reply), reading in missed if reading.score is None)
        served = tuple(sorted({reply.served for _, reply in self.replies if reply.served}))
        said = (first.text, unread, first.reasoning, first.cut)
        replies = tuple(reply for _, reply in self.replies)
        return Sampled(combine(readings), *said, method, n, self.usage, self.model, self.without, served, replies)


def _read(question: Question, reply: Reply, logprobs: bool) -> Reading:
    reading = question.read(reply, logprobs)
    if error := why_unread(reply, reading, logprobs):
        return replace(reading, score=None, error=error)
    return reading


def why_unread(reply: Reply, reading: Reading, logprobs: bool) -> str | None:
    """What the reply itself tells of why it cannot be read."""
    if reply.error:
        return reply.error
    if reply.refusal and not reply.text.strip():
        return f"the judge refused: {reply.refusal[:200]}"
    if reply.cut and reading.score is None:
        return "the reply was cut off before its rating, for lack of room (finish reason: length)"
    if reading.score is None and not reply.text.strip():
        return f"the reply is empty (finish reason: {reply.finish or 'not told'})"
    if logprobs and not reply.logprobs:
        return "the reply has no log-probabilities (readout auto or samples does without)"
    return None
