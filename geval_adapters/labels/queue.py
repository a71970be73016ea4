"""Which items people are asked about, and in which order: drawn with known probabilities, decided by a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from ..errors import InputError
from ..samples import Sample, by_document, read_rows

DESIGNS = ("random", "stratified", "active")
FLOOR = 0.3
"""The share of an active draw that falls on all items alike, so that no probability comes near nothing."""
GAP = 3
"""How many items of other documents come between two of the same, where there are enough documents."""


@dataclass(frozen=True)
class Item:
    """What a person is asked about: a sample, or a pair of samples of one document."""

    sample: Sample
    other: Sample | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Its id, and the second sample's."""
        return self.sample.id, self.other.id if self.other else ""

    @property
    def document(self) -> str:
        """What keeps it apart from others: its document, or itself where it has none."""
        return self.sample.doc_id if self.sample.doc_id is not None else f"\0{self.sample.id}"


def pairs(samples: Iterable[Sample]) -> list[Item]:
    """Every two samples of one document, as one item each.

    Raises:
        InputError: no document has two.
    """
    groups = by_document(each for each in samples if each.doc_id is not None).values()
    made = [Item(first, second) for group in groups for first, second in combinations(group, 2)]
    if not made:
        raise InputError("no two samples share a doc_id (or a source), so that there are no pairs to compare")
    return made


class Judged(NamedTuple):
    """What the judge said of a sample: its score, and score to probability."""

    score: float
    distribution: Mapping[float, float]

    @property
    def spread(self) -> float:
        """The standard deviation of its distribution."""
        mean = sum(score * p for score, p in self.distribution.items())
        return math.sqrt(sum(p * (score - mean) ** 2 for score, p in self.distribution.items()))


def read_ratings(path: str | Path, criterion: str) -> dict[str, Judged]:
    """The ratings of one criterion in a file of `geval score`, by the samples' ids.

    Raises:
        InputError: the file cannot be read, or holds no rating by this criterion, or two of one sample.
    """
    found: dict[str, Judged] = {}

    def keep(row: Mapping[str, Any], _: int) -> None:
        if not {"id", "criterion", "score", "distribution"} <= row.keys():
            raise InputError("is no rating of `geval score`: it has no id, criterion, score or distribution")
        if row["criterion"] != criterion or row["score"] is None:
            return
        if row["id"] in found:
            raise InputError(f"rates {row['id']!r} by {criterion} a second time; draw by one judge's ratings")
        found[row["id"]] = Judged(row["score"], {float(score): p for score, p in row["distribution"].items()})

    for _ in read_rows(path, keep):
        pass
    if not found:
        raise InputError(f"{path}: holds no ratings by {criterion}")
    return found


# --- weights and probabilities ---------------------------------------------------------------------------------------


def weights(design: str, items: Sequence[Item], judged: Sequence[Mapping[str, Judged]] = ()) -> list[float]:
    """How much more often than others each item is to be drawn; their mean is 1.

    `active` draws in proportion to the spread of the judge's distribution, in which a share `FLOOR` of the draw falls
    on all items alike (Zrnic & Candès 2024, arXiv 2403.03208, §4); of a pair, to the standard deviation of "the first
    is better". Items without a rating get the mean of the others. Over several criteria, the mean is taken. The other
    designs draw all items equally often.

    Args:
        design: one of `DESIGNS`.
        items: what can be drawn.
        judged: for each criterion, the judge's ratings by sample id.

    Raises:
        InputError: the judge's ratings have no spread.
    """
    if design != "active":
        return [1.0] * len(items)
    relative = []
    for ratings in judged:
        spreads = [_spread(item, ratings) for item in items]
        known = [spread for spread in spreads if spread is not None]
        mean = fmean(known) if known else 0.0
        if not mean:
            raise InputError(
                "the ratings of these items have no spread, so that nothing says where the judge is unsure: rate with"
                " log-probabilities or several samples (--n 20), or label with --design stratified"
            )
        relative.append([mean if spread is None else spread for spread in spreads])
        relative[-1] = [spread / fmean(relative[-1]) for spread in relative[-1]]
    return [FLOOR + (1 - FLOOR) * fmean(each) for each in zip(*relative, strict=True)]


def _spread(item: Item, ratings: Mapping[str, Judged]) -> float | None:
    first = ratings.get(item.sample.id)
    if item.other is None or first is None:
        return first.spread if first else None
    second = ratings.get(item.other.id)
    if second is None:
        return None
    above = sum(p * q for s, p in first.distribution.items() for t, q in second.distribution.items() if s > t)
    below = sum(p * q for s, p in first.distribution.items() for t, q in second.distribution.items() if s < t)
    better = (1 + above - below) / 2
    return math.sqrt(max(0.0, better * (1 - better)))


def scores(items: Sequence[Item], judged: Sequence[Mapping[str, Judged]]) -> list[float]:
    """The judge's score of each item, to stratify by; of a pair, by how much the first is ahead.

    Over several criteria the mean of the standardised scores; an item without a rating stands in the middle.
    """
    columns = []
    for ratings in judged:
        column = [_score(item, ratings) for item in items]
        known = [score for score in column if score is not None]
        middle, spread = (fmean(known), pstdev(known) or 1.0) if known else (0.0, 1.0)
        columns.append([0.0 if score is None else (score - middle) / spread for score in column])
    return [fmean(each) for each in zip(*columns, strict=True)]


def _score(item: Item, ratings: Mapping[str, Judged]) -> float | None:
    found = [ratings.get(each.id) for each in (item.sample, item.other) if each]
    known = [each.score for each in found if each]
    if len(known) < len(found):
        return None
    return known[0] - known[1] if item.other else known[0]


def rate_of(weights: Sequence[float], n: float) -> float:
    """The rate r at which `Σ min(1, r · weight)` is n, or the least at which all items are drawn.

    >>> rate_of([0.5, 0.5, 2.0], 2)
    1.0
    """
    rest, ascending = sum(weights), sorted(weights)
    for certain in range(len(weights)):
        rate = (n - certain) / rest
        if rate * ascending[-1 - certain] <= 1:
            return rate
        rest -= ascending[-1 - certain]
    return 1 / ascending[0]


# --- waves -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wave:
    """Items drawn together, in the order in which they are shown.

    Attributes:
        number: 1 for the first.
        before, rate: after the wave before and after this one, an item has been drawn with `min(1, rate · weight)`.
        items: positions in the list of all items.
    """

    number: int
    before: float
    rate: float
    items: tuple[int, ...]


class Pool:
    """All items, their weights, and the waves drawn from them.

    Wave k draws each item that the waves before have left with probability `(π_k − π_{k−1}) / (1 − π_{k−1})`, where
    `π_k = min(1, rate_k · weight)`; so `π_k` is the probability of having been drawn by then, whatever the waves before
    drew. A wave is one systematic sample: the items stand in a line, each as long as its probability, and a comb with
    teeth one apart, thrown at random, picks those that it hits. In the line documents stand in random order, each with
    its items side by side, so that a wave takes as many documents as it can; for `stratified`, items stand in the order
    of the judge's score, so that every part of the scale gets its share.

    Args:
        items: what can be drawn.
        weights: of each item, with mean 1.
        seed: decides the draws.
        scores: the judge's, of each item; where given, draws are stratified by them.
    """

    def __init__(
        self, items: Sequence[Item], weights: Sequence[float], seed: int, scores: Sequence[float] | None = None
    ) -> None:
        self.items, self.weights, self.seed = list(items), list(weights), seed
        self._scores = scores
        self.documents = len({item.document for item in items})

    def draw(self, waves: Sequence[Wave], rate: float) -> Wave:
        """The wave that comes after `waves` and draws up to `rate`; the same for the same seed."""
        number = len(waves) + 1
        rng = random.Random(f"{self.seed}/{number}")
        before = waves[-1].rate if waves else 0.0
        drawn = {place for wave in waves for place in wave.items}
        line = [place for place in self._line(rng) if place not in drawn]
        chances = []
        for place in line:
            low, high = (min(1.0, each * self.weights[place]) for each in (before, rate))
            chances.append((high - low) / (1 - low) if low < 1 else 0.0)
        chosen = [line[place] for place in systematic(chances, rng.random())]
        rng.shuffle(chosen)
        tail = [self.items[place].document for place in (waves[-1].items if waves else ())][-GAP:]
        return Wave(number, before, rate, tuple(self._apart(chosen, tail)))

    def expected(self, rate: float) -> float:
        """How many items are drawn up to a rate, on average over seeds."""
        return sum(min(1.0, rate * weight) for weight in self.weights)

    def next_rate(self, waves: Sequence[Wave], n: int) -> float:
        """Up to where the next wave draws on the way to n items.

        A wave takes no more items than there are documents, so that no two of its items need to share one.
        """
        done = self.expected(waves[-1].rate) if waves else 0.0
        steps = math.ceil((n - done) / self.documents - 1e-9)
        return rate_of(self.weights, n if steps <= 1 else round(done + (n - done) / steps))

    def _line(self, rng: random.Random) -> list[int]:
        order = list(range(len(self.items)))
        rng.shuffle(order)
        if self._scores is not None:
            scores = self._scores
            return sorted(order, key=lambda place: scores[place])
        rank: dict[str, int] = {}
        for place in order:
            rank.setdefault(self.items[place].document, len(rank))
        return sorted(order, key=lambda place: rank[self.items[place].document])

    def _apart(self, order: Sequence[int], tail: list[str]) -> Iterator[int]:
        """The order, in which an item of a document that was just shown lets the next one of another go first."""
        waiting, shown = list(order), list(tail)
        gap = min(GAP, self.documents // 2)
        while waiting:
            last = {document: place for place, document in enumerate(shown[len(shown) - gap :], start=1)}
            near = (last.get(self.items[place].document, 0) for place in waiting)
            fits = next((place for place, each in enumerate(near) if not each), None)
            if fits is None:  # the one that was shown longest ago
                fits = min(range(len(waiting)), key=lambda each: last[self.items[waiting[each]].document])
            shown.append(self.items[waiting[fits]].document)
            yield waiting.pop(fits)


def systematic(chances: Sequence[float], start: float) -> list[int]:
    """Places drawn with the given probabilities: those under the teeth of a comb thrown on a line of such lengths.

    Args:
        chances: the probability of each place, in line.
        start: where the first tooth falls, in [0, 1).

    >>> systematic([0.5, 0.5, 0.25, 0.75], 0.6)
    [1, 3]
    """
    chosen, end, tooth = [], 0.0, start
    for place, chance in enumerate(chances):
        end += chance
        if tooth < end - 1e-12:
            chosen.append(place)
            tooth += 1
    return chosen
