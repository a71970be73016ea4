"""How far a ranking is to be trusted: position bias, agreement with people, circles, consistency with itself.

Sources: Liusie, Manakul and Gales (2024), "LLM Comparative Assessment", arXiv 2307.07889, cited below as LMG;
Liusie, Fathullah and Gales (2024), product of experts, arXiv 2405.05894, cited as LFG.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..agreement.intervals import FEWEST, Figure
from .methods import METHODS, comparison_graph, net_of, table_of
from .outcomes import TIE, Candidate, Outcome, Read, mean_of, readable, sign_of, verdict_of


@dataclass(frozen=True, slots=True)
class Position:
    """How often the first position wins, and how often verdicts flip.

    `p_first` is the share of the readable comparisons that the first wins, with its 95 % interval. Of `n_pairs` pairs
    seen in both orders, `flip_rate` is the share of those whose verdict changes: of `reversals`, where the other
    candidate wins, and of `one_sided_ties`, where one order is a tie.
    """

    p_first: Figure
    flip_rate: float | None = None
    n_pairs: int = 0
    reversals: int = 0
    one_sided_ties: int = 0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Shares of verdicts that agree with the human scores, and of how many."""

    one_order: float | None
    both_orders: float | None
    n_one_order: int
    n_both_orders: int


# Position bias


def position(outcomes: Iterable[Outcome], documents: Sequence[Hashable] | None = None) -> Position:
    """The share of comparisons that the first position wins, and of pairs whose verdict flips. LMG eq. 8.

    A comparison counts 1 when p_first > .5, one half when it is .5. The 95 % interval is, with the `documents` of
    the outcomes, six at the least, Student's t with errors summed by document (SE^2 = G / (G - 1) sum_d e_d^2);
    else Wilson's, which takes the comparisons as independent. A share away from .5
    shows bias only over a symmetric set.

    A pair seen in both orders (there are `n_pairs`) is consistent when the same candidate wins in both, or
    both are ties; anything else is a flip, so a tie in one order only is one. Repeats of an order are
    averaged first. Shares are None where there is nothing to count.

    >>> position([Outcome("a", "b", 1.0), Outcome("b", "a", 1.0)]).flip_rate
    1.0
    """
    outcomes = list(outcomes)
    if documents is None:
        documents = [None] * len(outcomes)
    read = readable(outcomes)
    verdicts = [verdict_of(p) for _, _, p in read]
    turned = [(verdict_of(there), verdict_of(1 - back)) for there, back in _both_orders(read).values()]
    flips = [there != back for there, back in turned]
    reversals = sum(abs(there - back) == 1 for there, back in turned)
    n, share = len(verdicts), mean_of(verdicts)
    if share is None:
        return Position(Figure(None, None, None, 0, why_not="no comparison could be read"))
    apart: dict[Hashable, float] = {}
    answered = (name for name, each in zip(documents, outcomes, strict=True) if each.p_first is not None)
    for name, verdict in zip(answered, verdicts, strict=True):
        apart[name] = apart.get(name, 0.0) + (verdict - share) / n
    error = (
        math.sqrt(len(apart) / (len(apart) - 1) * fsum(e * e for e in apart.values())) if len(apart) >= FEWEST else 0
    )
    flipping = (mean_of(flips), len(flips), reversals, sum(flips) - reversals)
    if error:
        half = float(stdtrit(len(apart) - 1, 0.975)) * error
        method = f"t({len(apart) - 1}), errors of {len(apart)} documents"
        return Position(Figure(share, max(0.0, share - half), min(1.0, share + half), n, method), *flipping)
    z = 1.959963984540054
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    method = "Wilson's, comparisons taken as independent"
    return Position(Figure(share, max(0.0, centre - half), min(1.0, centre + half), n, method), *flipping)


def debias(outcomes: Iterable[Outcome]) -> tuple[float | None, list[Outcome]]:
    """Reweight P(first) so that the first position is preferred in half of the comparisons. LMG eqs. 8-10.

    p' = alpha p / (alpha p + 1 - p) with alpha = (1 - tau) / tau, where the threshold tau is the median of
    p_first. Returns alpha (1: no bias, below 1: the first position was favoured) and the reweighted outcomes.
    The share is one half exactly unless several p_first equal the median: equal probabilities get equal
    verdicts. Use it on symmetric sets, where the share of an unbiased judge is one half.

    Hard outcomes (0 or 1) are the same under any alpha. If they alone make a majority, no alpha reaches one
    half: alpha is then None, undefined, and nothing changes, as where nothing was read. A bias term
    (`bradley_terry`) is the remedy there. Unread outcomes stay.

    >>> alpha, fair = debias([Outcome("a", "b", 0.9), Outcome("b", "a", 0.7)])
    >>> round(alpha, 2), [round(o.p_first, 2) for o in fair]
    (0.25, [0.69, 0.37])
    """
    outcomes = list(outcomes)
    p = [o.p_first for o in outcomes if o.p_first is not None]
    tau = float(np.median(p)) if p else 0.0
    if not 0 < tau < 1:
        return None, outcomes

    def reweighted(p: float) -> float:
        return p * (1 - tau) / (p * (1 - tau) + (1 - p) * tau)

    return (1 - tau) / tau, [o if o.p_first is None else replace(o, p_first=reweighted(o.p_first)) for o in outcomes]


# How far to trust it


def pairwise_accuracy(outcomes: Iterable[Outcome], human: Mapping[Any, float]) -> Accuracy:
    """The share of verdicts that agree with human scores, over pairs whose human scores differ. LMG §5.4.

    `one_order`: each comparison on its own. `both_orders`: each unordered pair seen in both orders, its two
    probabilities averaged before the verdict. A judge's tie counts one half; None where there is nothing to
    count. Raises ValueError when a compared candidate has no human score.

    >>> judged = [Outcome("a", "b", 0.9), Outcome("b", "a", 0.6)]
    >>> pairwise_accuracy(judged, {"a": 5, "b": 3})
    Accuracy(one_order=0.5, both_orders=1.0, n_one_order=2, n_both_orders=1)
    """
    read = readable(outcomes)
    unscored = {name for a, b, _ in read for name in (a, b)} - human.keys()
    if unscored:
        raise ValueError(f"no human score for {', '.join(sorted(map(repr, unscored)))}")
    both = [(a, b, (there + 1 - back) / 2) for (a, b), (there, back) in _both_orders(read).items()]

    def credits(judged: list[tuple[Candidate, Candidate, float]]) -> list[float]:
        return [
            verdict_of(p) if human[a] > human[b] else 1 - verdict_of(p) for a, b, p in judged if human[a] != human[b]
        ]

    one, two = credits(read), credits(both)
    return Accuracy(mean_of(one), mean_of(two), len(one), len(two))


def cyclic_triples(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    """How many triples run in a circle (a over b over c over a), of how many with all three pairs compared.

    A pair's verdict comes from its mean probability over whatever was asked, in either order; a tie breaks
    the circle.

    >>> cyclic_triples([Outcome("a", "b", 0.9), Outcome("b", "c", 0.8), Outcome("c", "a", 0.6)])
    (1, 1)
    """
    data = table_of(outcomes, None)
    # The trace of the cube counts closed walks of three steps: three per circle, six per triple.
    beats, compared = net_of(data, data.p - 0.5) > TIE, comparison_graph(data)
    cyclic, complete = (int(np.trace(np.linalg.matrix_power(1 * steps, 3))) for steps in (beats, compared))
    return cyclic // 3, complete // 6


def self_consistency(
    outcomes: Iterable[Outcome],
    method: str,
    sizes: Iterable[int],
    seed: int = 0,
    *,
    reference: Mapping[Any, float] | None = None,
    repeats: int = 100,
) -> dict[int, float | None]:
    """How well the order of a few candidates, ranked on their own, agrees with the full ranking. LMG Table 8.

    For each size: draw that many candidates, rank them by `method` from the comparisons among them, and take
    the share of their pairs that stand in the same order as in the reference, which is the ranking of all
    candidates unless scores (the humans', say) are given. Only pairs that the reference orders count; one
    that the small ranking ties counts one half. Averages over `repeats` random draws, or over all subsets
    where there are no more than that; None where no pair could be counted. Raises ValueError for an unknown
    method or a size out of range.

    >>> answers = [Outcome("a", "b", 0.9), Outcome("b", "c", 0.8), Outcome("a", "c", 0.9)]
    >>> self_consistency(answers, "win-ratio", sizes=[2, 3])
    {2: 1.0, 3: 1.0}
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    outcomes = list(outcomes)
    full = METHODS[method](outcomes)
    against: Mapping[Any, float | None] = full.scores if reference is None else reference
    # Best first, so that the draws do not depend on how the outcomes were listed.
    ranks = full.ranks()
    names = sorted((name for name in ranks if ranks[name]), key=lambda name: ranks[name] or 0)
    rng = random.Random(seed)
    table: dict[int, float | None] = {}
    for size in sizes:
        if not 2 <= size <= len(names):
            raise ValueError(f"cannot rank {size} of {len(names)} compared candidates")
        if math.comb(len(names), size) <= repeats:
            draws = [list(draw) for draw in combinations(names, size)]
        else:
            draws = [rng.sample(names, size) for _ in range(repeats)]
        credits: list[float] = []
        for draw in draws:
            kept = set(draw)
            scores = METHODS[method]([o for o in outcomes if o.first in kept and o.second in kept]).scores
            for a, b in combinations((name for name in draw if scores.get(name) is not None), 2):
                if right := sign_of(against.get(a), against.get(b)):
                    credits.append(0.5 + 0.5 * right * sign_of(scores[a], scores[b]))
        table[size] = mean_of(credits)
    return table


def _both_orders(read: list[Read]) -> dict[tuple[Candidate, Candidate], tuple[float, float]]:
    """The mean P(first) in one order and in the other, for each unordered pair seen in both."""
    asked: dict[tuple[Candidate, Candidate], list[float]] = {}
    for a, b, p in read:
        asked.setdefault((a, b), []).append(p)
    means = {pair: fsum(answers) / len(answers) for pair, answers in asked.items()}
    place = {pair: k for k, pair in enumerate(means)}
    return {(a, b): (p, means[b, a]) for (a, b), p in means.items() if place.get((b, a), -1) > place[a, b]}
