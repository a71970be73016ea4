"""What comparisons are, and what they come to: `Outcome`, `Ranking`, and what every method needs of them.

Sources: Liusie, Manakul and Gales (2024), "LLM Comparative Assessment", arXiv 2307.07889, cited below as LMG;
Liusie, Fathullah and Gales (2024), product of experts, arXiv 2405.05894, cited as LFG.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Candidate = Hashable
C = TypeVar("C", bound=Hashable)
Array = NDArray[np.float64]
TIE = 1e-9  # scores and probabilities closer than this differ only by rounding


Read = tuple[Candidate, Candidate, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One comparison: the candidates shown first and second, and P(the first is better).

    `p_first` is in [0, 1]; .5 is a tie and None a reply that could not be read. The same ordered pair may
    occur again. Raises ValueError for any other probability, or when a candidate is compared with itself.

    >>> Outcome("a", "b", 0.8)
    Outcome(first='a', second='b', p_first=0.8)
    """

    first: Candidate
    second: Candidate
    p_first: float | None

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise ValueError(f"{self.first!r} is compared with itself")
        if self.p_first is not None and not 0 <= self.p_first <= 1:
            raise ValueError(f"p_first must be in [0, 1] or None, not {self.p_first!r}")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores of the candidates (higher is better) under one method.

    `scores` and `std_errors` are None where there is nothing to go by. `bias` is the method's estimate of the
    pull of the first position: 0 is none, positive favours the first (None where the method has no such
    term). `components` are the connected parts of the comparison graph, largest first; `n` comparisons were
    read and `missing` were not. `log_likelihood` belongs to `most_likely`. `notes` say what a reader must
    know.
    """

    method: str
    scores: dict[Candidate, float | None]
    std_errors: dict[Candidate, float | None]
    bias: float | None
    components: tuple[frozenset[Candidate], ...]
    n: int
    missing: int
    notes: tuple[str, ...]
    log_likelihood: float | None = None

    def ranks(self) -> dict[Candidate, int | None]:
        """Competition ranks: 1 is best, ties share the smallest rank (1, 2, 2, 4), no score means no rank.

        Scores within 1e-9 of each other are tied.

        >>> from geval_adapters.ranking import win_ratio
        >>> win_ratio([Outcome("a", "b", 1.0), Outcome("a", "c", 1.0)], ["a", "b", "c", "d"]).ranks()
        {'a': 1, 'b': 2, 'c': 2, 'd': None}
        """
        ranks: dict[Candidate, int | None] = dict.fromkeys(self.scores)
        scored = [(score, name) for name, score in self.scores.items() if score is not None]
        rank, previous = 0, math.inf
        for place, (score, name) in enumerate(sorted(scored, key=lambda pair: -pair[0]), start=1):
            if previous - score > TIE:
                rank = place
            ranks[name], previous = rank, score
        return ranks


def readable(outcomes: Iterable[Outcome]) -> list[Read]:
    """The outcomes of which there is a probability."""
    return [(o.first, o.second, o.p_first) for o in outcomes if o.p_first is not None]


def sign_of(a: float | None, b: float | None) -> int:
    """1 where a is the higher, -1 where b is, 0 where they are tied or one is missing."""
    if a is None or b is None or abs(a - b) <= TIE:
        return 0
    return 1 if a > b else -1


def mean_of(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return fsum(values) / len(values) if values else None


def distinct(candidates: Iterable[C]) -> list[C]:
    """The candidates as a list. Raises ValueError where one comes twice."""
    names = list(candidates)
    if len(set(names)) < len(names):
        raise ValueError("the candidates' names must differ from one another")
    return names


def classes_of(start: Sequence[float], odds: Array) -> list[int]:
    """Number the candidates by `start`, then by their odds against one another; equal numbers: no difference.

    Colour refinement: whoever differs in the odds against the classes found so far gets a class of its own.
    """
    n = len(start)
    classes = [sorted(set(start)).index(value) for value in start]
    while True:
        marks = [
            (classes[i], tuple(sorted((classes[j], float(odds[i, j])) for j in range(n) if j != i))) for i in range(n)
        ]
        places = {mark: place for place, mark in enumerate(sorted(set(marks)))}
        if len(places) == len(set(classes)):
            return classes
        classes = [places[mark] for mark in marks]


def verdict_of(p: float) -> float:
    """1 when the first is better, 0 when the second is, .5 for a tie."""
    return 0.5 + 0.5 * sign_of(p, 0.5)
