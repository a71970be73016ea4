"""In which order samples are asked about, and in which order their ratings come back."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from .criteria import Criterion
from .prompts import surroundings
from .samples import Sample

S = TypeVar("S")
T = TypeVar("T")

AHEAD = 4096
"""How many samples are read ahead to be put into order, and by how many ratings the first may be overtaken."""

PATIENCE = 0.5
"""Seconds after which samples that come slowly are asked about in the order in which they came."""


class Placed(NamedTuple):
    """A sample, which one of the input it is, and whether others that are asked about near it have its source."""

    number: int
    sample: Sample
    shares: bool


def in_prefix_order(samples: Iterable[Sample], criterion: Criterion, at_once: int = 1) -> Iterator[Placed]:
    """Samples of one source one after the other, so that a cache can serve the beginning which their prompts share.

    Where several requests are under way at once, the first of each source goes that many places early: its prompt is
    then in the cache when the others come.

    >>> from geval_adapters import load_criteria
    >>> samples = [Sample(output, source=source) for output, source in ("1a", "2b", "3a", "4b", "5c")]
    >>> [each.sample.output for each in in_prefix_order(samples, load_criteria()["relevance"])]
    ['1', '3', '2', '4', '5']
    >>> [each.sample.output for each in in_prefix_order(samples, load_criteria()["relevance"], at_once=2)]
    ['1', '2', '3', '5', '4']
    """
    number = 0
    for chunk in chunks(samples):
        own = [(tuple(surroundings(criterion, sample).values()), sample) for sample in chunk]
        numbered = [(key, (number + place, sample)) for place, (key, sample) in enumerate(own)]
        number += len(numbered)
        yield from (Placed(*each, shares) for each, shares in beside_each_other(numbered, at_once))


def beside_each_other(keyed: Iterable[tuple[Hashable, T]], at_once: int = 1) -> Iterator[tuple[T, bool]]:
    """Things with equal keys one after the other, and whether there are several; the first of each comes early.

    >>> [thing for thing, _ in beside_each_other([("a", 1), ("b", 2), ("a", 3)])]
    [1, 3, 2]
    """
    groups: dict[Hashable, list[T]] = {}
    for key, thing in keyed:
        groups.setdefault(key, []).append(thing)
    placed: list[tuple[int, tuple[T, bool]]] = []
    for group in groups.values():
        for index, thing in enumerate(group):
            early = at_once if at_once > 1 and index == 0 else 0
            placed.append((len(placed) - early, (thing, len(group) > 1)))
    yield from (each for _, each in sorted(placed, key=lambda pair: pair[0]))


def chunks(things: Iterable[T], most: int = AHEAD, least: int = 1) -> Iterator[list[T]]:
    """`most` at a time, or what came in `PATIENCE` seconds, but no fewer than `least` while there are more."""
    chunk: list[T] = []
    end = time.monotonic() + PATIENCE
    for each in things:
        chunk.append(each)
        if len(chunk) >= most or (len(chunk) >= least and time.monotonic() > end):
            yield chunk
            chunk, end = [], time.monotonic() + PATIENCE
    if chunk:
        yield chunk


class InputOrder(Generic[S, T]):
    """Results that come in any order, handed on in the order of what they are results of.

    >>> order: InputOrder[str, str] = InputOrder()
    >>> for letter in "abc": order.expect(letter)
    >>> [list(order.put(number, word)) for number, word in ((1, "B"), (0, "A"), (2, "C"))]
    [[], ['A', 'B'], ['C']]
    """

    def __init__(self) -> None:
        self._expected: deque[S] = deque()
        self._early: dict[int, T] = {}
        self._next = 0
        self._most: float = 2 * AHEAD
        self._moved = asyncio.Event()

    def expect(self, item: S) -> None:
        """Say what the next result is one of; the first is number 0."""
        self._expected.append(item)

    async def admit(self, number: int) -> None:
        """Wait until the result of this number could be handed on soon, so that few have to be kept."""
        while number >= self._next + self._most:
            self._moved.clear()
            await self._moved.wait()

    def release(self) -> None:
        """Let nobody wait any more: a result that others wait for will not come."""
        self._most = float("inf")
        self._moved.set()

    def put(self, number: int, result: T) -> Iterator[T]:
        """Take one result; hand on those whose turn it is."""
        self._early[number] = result
        while self._next in self._early:
            self._expected.popleft()
            self._next += 1
            yield self._early.pop(self._next - 1)
        self._moved.set()

    def rest(self) -> Iterator[tuple[S, T | None]]:
        """What was taken and not handed on, each with what it is a result of; None where one before it is missing."""
        while self._early:
            yield self._expected.popleft(), self._early.pop(self._next, None)
            self._next += 1
