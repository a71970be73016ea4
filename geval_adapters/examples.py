"""Rated examples for a judge: which of them it is shown before a sample, and never what would give the sample away."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .criteria import Example, Scale, digest
from .errors import InputError
from .samples import Sample


@dataclass(frozen=True)
class Shots:
    """A few of many rated examples, spread over the scale, drawn by a seed and not by likeness.

    Every sample is shown the same examples, but for those that would give it away: an example that is the sample itself
    or belongs to its document (equal id, document, source or output) gives its place to the next one of equal or near
    score. So prompts share their beginning, and no judge sees how people rated what it is rating.

    Attributes:
        pool: the examples to draw from.
        scale: the criterion's.
        count: how many are shown.
        seed: decides the draw.

    Raises:
        InputError: there are fewer examples than are to be shown.

    >>> pool = [Example(f"text {number}", score=1 + number % 5) for number in range(20)]
    >>> sorted(each.score for each in Shots(tuple(pool), Scale.of("1-5"), 3).beside(Sample("another")))
    [1, 3, 5]
    """

    pool: tuple[Example, ...]
    scale: Scale
    count: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.count <= len(self.pool):
            raise InputError(f"{self.count} examples cannot be shown: there are {len(self.pool)}")

    @property
    def key(self) -> str:
        """How many, and a digest that changes with the examples and the seed."""
        pool = sorted(json.dumps([vars(each)[name] for name in sorted(vars(each))]) for each in self.pool)
        return f"{self.count}@{digest(json.dumps([pool, self.seed]))}"

    @cached_property
    def _line(self) -> list[_Place]:
        """The examples in the order in which they are taken, each with its step among those that have any."""
        taken = sorted(self.pool, key=lambda each: (each.output, each.id))
        random.Random(self.seed).shuffle(taken)
        steps = sorted({nearest(self.scale, each.score) for each in taken})
        return [
            _Place(each, steps.index(nearest(self.scale, each.score)), marks(each)) for each in dict.fromkeys(taken)
        ]

    @cached_property
    def _wanted(self) -> list[int]:
        """The step of each example shown: from the lowest to the highest, as evenly as can be, in shuffled order."""
        last, gaps = max(place.step for place in self._line), max(self.count - 1, 1)
        steps = [round(last * number / gaps) if self.count > 1 else last // 2 for number in range(self.count)]
        random.Random(self.seed).shuffle(steps)
        return steps

    @cached_property
    def _drawn(self) -> list[_Place | None]:
        """The examples for a sample that none of them would give away."""
        chosen: list[_Place | None] = []
        for step in self._wanted:
            chosen.append(self._next(step, chosen, frozenset()))
        return chosen

    def _next(self, step: int, chosen: Sequence[_Place | None], secret: frozenset[str]) -> _Place | None:
        """The example of the nearest step, of a document that is not among the chosen if there is one."""
        marked = frozenset().union(*(each.marks for each in chosen if each))
        free = (each for each in self._line if each not in chosen and each.marks.isdisjoint(secret))
        return min(free, key=lambda each: (abs(each.step - step), not each.marks.isdisjoint(marked)), default=None)

    def beside(self, *samples: Sample) -> list[Example]:
        """The examples that are shown before samples; fewer where the others would give one of them away."""
        secret = frozenset[str]().union(*map(marks, samples))
        chosen = list(self._drawn)
        for number, each in enumerate(self._drawn):
            if each and not each.marks.isdisjoint(secret):
                chosen[number] = self._next(self._wanted[number], chosen, secret)
        return [each.example for each in chosen if each]


class _Place(NamedTuple):
    """An example, its step, and what it has in common with others of its document."""

    example: Example
    step: int
    marks: frozenset[str]


def marks(text: Sample | Example) -> frozenset[str]:
    """What two texts of one document have in common."""
    named = {"id": text.id, "document": text.doc_id, "source": text.source, "output": text.output}
    return frozenset(
        f"{name}: {' '.join(value.split()).casefold()}" for name, value in named.items() if value and value.strip()
    )


def nearest(scale: Scale, score: float) -> float:
    """The step of the scale that is nearest to a score, as to people's mean."""
    return min(scale.values, key=lambda value: abs(value - score))
