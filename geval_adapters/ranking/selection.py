"""Which pairs to compare: in one go by a scheme, or one after the other by what would teach the most.

Sources: Liusie, Manakul and Gales (2024), "LLM Comparative Assessment", arXiv 2307.07889, cited below as LMG;
Liusie, Fathullah and Gales (2024), product of experts, arXiv 2405.05894, cited as LFG.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, permutations

import numpy as np
from scipy.special import expit

from .methods import RIDGE, design_of, fit, table_of
from .outcomes import Array, C, Outcome, distinct

SCHEMES = ("full", "random", "no_repeat", "symmetric", "chain")


# Which pairs to ask about


def select(candidates: Sequence[C], scheme: str, budget: int | None = None, seed: int = 0) -> list[tuple[C, C]]:
    """The ordered pairs (first, second) to compare: at most `budget` calls, None for all. LMG §3.4.

    `full` every ordered pair; `random` ordered pairs, each at most once; `no_repeat` each unordered pair at
    most once, in a random order; `symmetric` random unordered pairs, each in both orders; `chain` neighbours
    in a random sequence, each in both orders, which connects all candidates for 2(N - 1) calls. The last two
    round an odd budget down. With the same seed a smaller budget gives the beginning of a larger one's list.

    Raises ValueError for an unknown scheme, repeated candidates, a negative budget, or one too small for
    `full`.

    >>> select(["a", "b", "c"], "symmetric", budget=3, seed=1)
    [('c', 'b'), ('b', 'c')]
    """
    names = distinct(candidates)
    rng = random.Random(seed)
    if budget is not None and budget < 0:
        raise ValueError(f"a budget is 0 or more calls, not {budget}")
    if scheme == "full":
        pairs = list(permutations(names, 2))
        if budget is not None and budget < len(pairs):
            raise ValueError(f"'full' needs {len(pairs)} calls, the budget is {budget}: try 'random'")
        return pairs
    if scheme == "random":
        pairs = list(permutations(names, 2))
        rng.shuffle(pairs)
        return pairs[:budget]
    if scheme in ("no_repeat", "symmetric"):
        pairs = [pair if rng.random() < 0.5 else pair[::-1] for pair in combinations(names, 2)]
        rng.shuffle(pairs)
        if scheme == "no_repeat":
            return pairs[:budget]
    elif scheme == "chain":
        rng.shuffle(names)
        pairs = [(names[k], names[k + 1]) for k in range(len(names) - 1)]
    else:
        raise ValueError(f"unknown scheme {scheme!r}: choose one of {', '.join(SCHEMES)}")
    return [pair for a, b in pairs[: None if budget is None else budget // 2] for pair in ((a, b), (b, a))]


def next_comparisons(
    candidates: Sequence[C], outcomes: Iterable[Outcome], count: int = 1, seed: int = 0
) -> list[tuple[C, C]]:
    """The `count` ordered pairs that would teach the most, given what has been answered so far.

    Greedy D-optimal design under the fitted soft Bradley-Terry model with position bias: a comparison x with
    success probability q shrinks log det of the parameters' covariance by log(1 + q(1 - q) Var(s_i - s_j +
    b)). The bias is one of the parameters, so both orders stay in balance without a further rule. Within a
    batch the covariance is updated after each choice, q is not. `seed` decides between equals. An ordered
    pair is proposed at most once, also if its reply was missing: the list is shorter than `count` when few
    are left, and empty when none is.

    Raises ValueError for repeated candidates, or an outcome about something that is not a candidate.

    >>> next_comparisons(["a", "b"], [Outcome("a", "b", 0.9)], count=3)
    [('b', 'a')]
    """
    names = distinct(candidates)
    outcomes = list(outcomes)
    asked = {(o.first, o.second) for o in outcomes}
    options = [pair for pair in permutations(names, 2) if pair not in asked]
    random.Random(seed).shuffle(options)
    # All candidates take part, compared or not: the prior says how little is known of the others.
    place: dict[Hashable, int] = {name: k for k, name in enumerate(names)}

    def design(pairs: Iterable[tuple[Hashable, Hashable]]) -> Array:
        places = np.array([(place[a], place[b]) for a, b in pairs], dtype=np.intp).reshape(-1, 2)
        return design_of(places[:, 0], places[:, 1], len(names))

    data = table_of(outcomes, names)
    theta, covariance = fit(design((a, b) for a, b, _ in data.read), data.p, len(names), RIDGE)
    x = design(options)
    q = expit(x @ theta)
    weight = q * (1 - q)
    chosen: list[tuple[C, C]] = []
    for _ in range(min(count, len(options))):
        gain = weight * ((x @ covariance) * x).sum(axis=1)
        best = int(np.argmax(gain.round(9)))
        chosen.append(options[best])
        spread = covariance @ x[best]
        covariance = covariance - weight[best] / (1 + gain[best]) * np.outer(spread, spread)
        weight[best] = -1
    return chosen
