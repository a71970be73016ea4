"""Which items people are asked about, and in which order: drawn with known probabilities, decided by a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, pstdev

from ..errors import InputError
from ..samples import Sample, by_document

DESIGNS = ("random", "stratified", "active")
FLOOR = 0.3
"""The share of an active draw that falls on all items alike, so that no probability comes near nothing."""
GAP = 3
"""How many items of other documents come between two of the same, where there are enough documents."""
TRIES = 50
"""How many rings are made to find one in which that is so."""


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


Distribution = Mapping[float, float]
"""What a judge said of a sample: score to probability."""


def mean(distribution: Distribution) -> float:
    """`Σ s · p(s)`: the judge's score."""
    return sum(score * p for score, p in distribution.items())


def spread(distribution: Distribution) -> float:
    """Its standard deviation."""
    middle = mean(distribution)
    return math.sqrt(sum(p * (score - middle) ** 2 for score, p in distribution.items()))


# --- weights and probabilities ---------------------------------------------------------------------------------------


def weights(design: str, items: Sequence[Item], judged: Sequence[Mapping[str, Distribution]] = ()) -> list[float]:
    """How much more often than others each item is to be drawn; their mean is 1.

    `active` draws in proportion to the spread of the judge's distribution, in which a share `FLOOR` of the draw falls
    on all items alike (Zrnic & Candès 2024, arXiv 2403.03208, §4); of a pair, to the standard deviation of "the first
    is better". Items without a rating get the mean of the others. Over several criteria, the mean is taken. The other
    designs draw all items equally often.

    Args:
        design: one of `DESIGNS`.
        items: what can be drawn.
        judged: for each criterion, the judge's distributions by sample id.

    Raises:
        InputError: the judge's ratings have no spread.
    """
    if design != "active":
        return [1.0] * len(items)
    relative = []
    for ratings in judged:
        spreads = [_spread(item, ratings) for item in items]
        known = [each for each in spreads if each is not None]
        middle = fmean(known) if known else 0.0
        if not middle:
            raise InputError(
                "the ratings of these items have no spread, so that nothing says where the judge is unsure: rate with"
                " log-probabilities or several samples (--n 20), or label with --design stratified"
            )
        relative.append([1.0 if each is None else each / middle for each in spreads])
    return [FLOOR + (1 - FLOOR) * fmean(each) for each in zip(*relative, strict=True)]


def _rated(item: Item, ratings: Mapping[str, Distribution]) -> list[Distribution] | None:
    """What the judge said of the sample, or of both; None where it did not."""
    found = [ratings.get(each.id) for each in (item.sample, item.other) if each]
    known = [each for each in found if each]
    return known if len(known) == len(found) else None


def _spread(item: Item, ratings: Mapping[str, Distribution]) -> float | None:
    match _rated(item, ratings):
        case [one]:
            return spread(one)
        case [first, second]:
            above = sum(p * q for s, p in first.items() for t, q in second.items() if s > t)
            below = sum(p * q for s, p in first.items() for t, q in second.items() if s < t)
            better = (1 + above - below) / 2
            return math.sqrt(max(0.0, better * (1 - better)))
    return None


def scores(items: Sequence[Item], judged: Sequence[Mapping[str, Distribution]]) -> list[float]:
    """The judge's score of each item, to stratify by; of a pair, by how much the first is ahead.

    Over several criteria the mean of the standardised scores; an item without a rating stands in the middle.
    """
    columns = []
    for ratings in judged:
        rated = [_rated(item, ratings) for item in items]
        column = [None if each is None else mean(each[0]) - sum(map(mean, each[1:])) for each in rated]
        known = [score for score in column if score is not None]
        middle, unit = (fmean(known), pstdev(known) or 1.0) if known else (0.0, 1.0)
        columns.append([0.0 if score is None else (score - middle) / unit for score in column])
    return [fmean(each) for each in zip(*columns, strict=True)]


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

    A wave is shown as a ring in which items of one document are far apart, from a place on that is drawn evenly: so
    each item is among the first m of n with probability m / n, exactly, whatever the documents are like.

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
        ring = self._ring([line[place] for place in systematic(chances, rng.random())], rng)
        start = rng.randrange(len(ring)) if ring else 0
        return Wave(number, before, rate, tuple(ring[start:] + ring[:start]))

    def expected(self, rate: float) -> float:
        """How many items are drawn up to a rate, on average over seeds."""
        return sum(min(1.0, rate * weight) for weight in self.weights)

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

    def _ring(self, chosen: list[int], rng: random.Random) -> list[int]:
        """The items around a ring: the best of a few, in each of which a document's items stand evenly from a random
        place on.
        """
        groups: dict[str, list[int]] = {}
        for place in rng.sample(chosen, len(chosen)):
            groups.setdefault(self.items[place].document, []).append(place)
        rings = []
        for _ in range(TRIES):
            at: dict[int, float] = {}
            for group in groups.values():
                begin = rng.random()
                at |= {place: (begin + number / len(group)) % 1 for number, place in enumerate(group)}
            rings.append(sorted(chosen, key=at.__getitem__))
            if not self._too_near(rings[-1]):
                break
        return min(rings, key=self._too_near)

    def _too_near(self, ring: Sequence[int]) -> int:
        """How many pairs of items of one document stand nearer than `GAP` others."""
        documents = [self.items[place].document for place in ring]
        gap = min(GAP, len(documents) // 2)
        return sum(documents[at] == documents[at - back] for at in range(len(documents)) for back in range(1, gap + 1))


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
