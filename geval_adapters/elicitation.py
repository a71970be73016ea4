"""Asking a judge until its replies make a distribution: by log-probabilities where it has them, else by samples."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any, TypeVar

from .errors import InputError
from .judge import Answer, Judge, Reply, Usage, log
from .prompts import Messages
from .readout import Reading

T = TypeVar("T")

READOUTS = ("auto", "logprobs", "samples")
SAMPLES = 20
"""Replies that stand in for a distribution where there are no log-probabilities (Liu et al. 2023, §3)."""


@dataclass(frozen=True)
class Question:
    """One thing to ask, and how its replies are read.

    Attributes:
        messages: what the judge is told.
        read: reads a reply; its second argument says whether by log-probabilities.
        start: where the answer should begin, for models that can continue one.
        stop: what ends the answer.
        room: tokens that the answer may take.
    """

    messages: Messages
    read: Callable[[Reply, bool], Reading]
    start: str
    stop: str | None
    room: int


@dataclass(frozen=True)
class Combined:
    """Several readings of one sample as one."""

    score: float | None
    distribution: Mapping[float, float]
    coverage: float
    bounds: tuple[float, float]
    std_error: float | None
    n_valid: int
    n_failed: int
    error: str | None


def combine(readings: Sequence[Reading]) -> Combined:
    """The mean of the readings that have a score; the others are missing, neither 0 nor clipped.

    Coverage and bounds are means over all readings, so that an unread reply lowers the one and widens the other.
    `std_error = s / √n_valid`.

    >>> from geval_adapters import read_text
    >>> combined = combine([read_text(reply, "1-5") for reply in ("4", "5", "what?")])
    >>> combined.score, combined.n_failed, round(combined.coverage, 2), combined.std_error
    (4.5, 1, 0.67, 0.5)
    """
    valid = [reading for reading in readings if reading.score is not None]
    distribution: dict[float, float] = {}
    described = valid or [reading for reading in readings if reading.distribution]
    for reading in described:
        for score, p in reading.distribution.items():
            distribution[score] = distribution.get(score, 0.0) + p / len(described)
    scores = [reading.score for reading in valid if reading.score is not None]
    reasons = Counter(reading.error for reading in readings if reading.error)
    return Combined(
        score=fmean(scores) if scores else None,
        distribution=dict(sorted(distribution.items())),
        coverage=fmean(reading.coverage for reading in readings),
        bounds=(fmean(reading.bounds[0] for reading in readings), fmean(reading.bounds[1] for reading in readings)),
        std_error=stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else None,
        n_valid=len(valid),
        n_failed=len(readings) - len(valid),
        error=None if scores else reasons.most_common(1)[0][0],
    )


@dataclass(frozen=True)
class Elicited:
    """What a judge's replies came to, how they were read, and what they cost."""

    combined: Combined
    text: str
    method: str
    n: int
    usage: Usage


class Elicitation:
    """Asks a judge questions, and remembers what that judge turned out to have.

    Args:
        judge: who is asked.
        n: replies per question; the default is 1 where log-probabilities are read, else 20.
        temperature: the default is 0 for a single reply and 1 for several.
        readout: `logprobs`, `samples`, or `auto`: the former where the judge has them.

    Raises:
        InputError: an unknown readout, or no replies.
    """

    def __init__(
        self, judge: Judge, n: int | None = None, temperature: float | None = None, readout: str = "auto"
    ) -> None:
        if readout not in READOUTS:
            raise InputError(f"unknown readout {readout!r}; known: {', '.join(READOUTS)}")
        if n is not None and n < 1:
            raise InputError(f"n must be at least 1, got {n}")
        self.judge = judge
        self.n = n
        self.temperature = None if temperature is None else float(temperature)
        self.readout = readout
        self._reads_logprobs = readout != "samples"
        self.needs_room = False

    @property
    def width(self) -> int:
        """How many questions are worth asking at once."""
        return 2 * int(getattr(self.judge, "concurrency", 16))

    async def ask(self, questions: Sequence[Question]) -> Elicited:
        """The replies to some questions as one; several questions share the replies evenly.

        Raises:
            JudgeError: the judge cannot be asked at all. Whatever else fails is in the result's `error`.
        """
        spent = Usage()
        if self._reads_logprobs:
            n = self.n or 1
            replies, readings, spent = await self._ask_all(questions, n, logprobs=True)
            if self.readout == "logprobs" or any(reply.logprobs or reply.error for reply in replies):
                return _elicited(replies, readings, "logprobs", n, spent)
            if self._reads_logprobs:
                log.warning("%s gives no log-probabilities: samples are used instead", self.judge.name)
                self._reads_logprobs = False
        n = self.n or SAMPLES
        replies, readings, usage = await self._ask_all(questions, n, logprobs=False)
        return _elicited(replies, readings, "samples" if n > 1 else "single", n, spent + usage)

    async def _ask_all(
        self, questions: Sequence[Question], n: int, logprobs: bool
    ) -> tuple[list[Reply], list[Reading], Usage]:
        replies: list[Reply] = []
        readings: list[Reading] = []
        usage = Usage()
        for index, question in enumerate(questions):
            share = n // len(questions) + (index < n % len(questions))
            if not share:
                continue
            answer, read = await self._ask(question, share, n, logprobs)
            if any(reply.cut and reading.score is None for reply, reading in zip(answer.replies, read, strict=True)):
                if not self.needs_room:
                    log.warning("%s needs more room before its answer: asked without a limit", self.judge.name)
                    self.needs_room = True
                usage += answer.usage
                answer, read = await self._ask(question, share, n, logprobs)
            replies += answer.replies
            readings += read
            usage += answer.usage
        return replies, readings, usage

    async def _ask(self, question: Question, share: int, n: int, logprobs: bool) -> tuple[Answer, list[Reading]]:
        answer = await self.judge.ask(
            question.messages,
            n=share,
            temperature=self._temperature(n),
            max_tokens=None if self.needs_room else question.room,
            logprobs=logprobs,
            stop=question.stop,
            start=question.start,
        )
        return answer, [_read(question, reply, logprobs) for reply in answer.replies]

    def _temperature(self, n: int) -> float:
        return self.temperature if self.temperature is not None else float(n > 1)

    def signature(self, elicited: Elicited) -> dict[str, str]:
        """What of the asking could change a score, for a signature."""
        refused = getattr(self.judge, "without", ())
        temperature = "default" if "temperature" in refused else f"{self._temperature(elicited.n):g}"
        return {"n": str(elicited.n), "temperature": temperature, "readout": elicited.method}


def _read(question: Question, reply: Reply, logprobs: bool) -> Reading:
    reading = question.read(reply, logprobs)
    if reply.error:
        return replace(reading, error=reply.error)
    if logprobs and not reply.logprobs:
        return replace(reading, error="the reply has no log-probabilities (readout auto or samples does without)")
    return reading


def _elicited(replies: list[Reply], readings: list[Reading], method: str, n: int, usage: Usage) -> Elicited:
    texts = (reply.text for reply, reading in zip(replies, readings, strict=True) if reading.score is not None)
    return Elicited(combine(readings), next(texts, ""), method, n, usage)


async def concurrently(jobs: Iterator[Coroutine[Any, Any, T]], width: int, ordered: bool) -> AsyncGenerator[T]:
    """Run jobs, `width` at a time, and yield their results as they come or in order; the first error ends all."""
    running: dict[asyncio.Task[T], None] = {}
    finished: asyncio.Queue[asyncio.Task[T]] = asyncio.Queue()

    def start() -> None:
        if (job := next(jobs, None)) is not None:
            task = asyncio.ensure_future(job)
            running[task] = None
            task.add_done_callback(finished.put_nowait)

    try:
        for _ in range(width):
            start()
        while running:
            task = next(iter(running)) if ordered else await finished.get()
            result = await task
            del running[task]
            start()
            yield result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


_starting = threading.Lock()


def run(job: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, also inside a running event loop (a notebook): it runs in a loop of its own thread."""
    with _starting:  # two threads that ask at once must not get a loop each
        loop = _own_loop()
    future = asyncio.run_coroutine_threadsafe(job, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def stream(results: AsyncGenerator[T]) -> Iterator[T]:
    """The results of an async generator, outside of async code."""

    async def following() -> tuple[T, ...]:
        try:
            return (await anext(results),)
        except StopAsyncIteration:
            return ()

    try:
        while following_one := run(following()):
            yield from following_one
    finally:
        run(results.aclose())


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="geval-adapters", daemon=True).start()
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result(timeout=5))
    return loop
