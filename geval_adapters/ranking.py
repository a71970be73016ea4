"""Pairwise comparisons to ranks: which pairs to ask, how to score the answers, and how far to trust them.

Nothing here calls a model: outcomes go in, scores come out. Results depend neither on what the candidates are
called nor on the order in which the outcomes are listed.

Sources: Liusie, Manakul and Gales (2024), "LLM Comparative Assessment", arXiv 2307.07889, cited below as LMG;
Liusie, Fathullah and Gales (2024), product of experts, arXiv 2405.05894, cited as LFG.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations
from math import fsum
from statistics import stdev
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

Candidate = Hashable
C = TypeVar("C", bound=Hashable)
Array = NDArray[np.float64]

SCHEMES = ("full", "random", "no_repeat", "symmetric", "chain")
RIDGE = 0.05  # a prior with a standard deviation of 3.2 logits: weak beside a handful of comparisons
_TIE = 1e-9  # scores and probabilities closer than this differ only by rounding


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

        >>> win_ratio([Outcome("a", "b", 1.0), Outcome("a", "c", 1.0)], ["a", "b", "c", "d"]).ranks()
        {'a': 1, 'b': 2, 'c': 2, 'd': None}
        """
        ranks: dict[Candidate, int | None] = dict.fromkeys(self.scores)
        scored = [(score, name) for name, score in self.scores.items() if score is not None]
        rank, previous = 0, math.inf
        for place, (score, name) in enumerate(sorted(scored, key=lambda pair: -pair[0]), start=1):
            if previous - score > _TIE:
                rank = place
            ranks[name], previous = rank, score
        return ranks


@dataclass(frozen=True, slots=True)
class Position:
    """How often the first position wins, with its 95 % interval, and how often verdicts flip."""

    p_first: float | None
    low: float | None
    high: float | None
    n: int
    flip_rate: float | None
    n_pairs: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Shares of verdicts that agree with the human scores, and of how many."""

    one_order: float | None
    both_orders: float | None
    n_one_order: int
    n_both_orders: int


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
    names = _distinct(candidates)
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
    names = _distinct(candidates)
    outcomes = list(outcomes)
    asked = {(o.first, o.second) for o in outcomes}
    options = [pair for pair in permutations(names, 2) if pair not in asked]
    random.Random(seed).shuffle(options)
    # All candidates take part, compared or not: the prior says how little is known of the others.
    place: dict[Hashable, int] = {name: k for k, name in enumerate(names)}

    def design(pairs: Iterable[tuple[Hashable, Hashable]]) -> Array:
        places = np.array([(place[a], place[b]) for a, b in pairs], dtype=np.intp).reshape(-1, 2)
        return _design(places[:, 0], places[:, 1], len(names))

    data = _read(outcomes, names)
    theta, covariance = _fit(design((a, b) for a, b, _ in data.read), data.p, len(names), RIDGE)
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


# Position bias


def position(outcomes: Iterable[Outcome]) -> Position:
    """The share of comparisons that the first position wins, and of pairs whose verdict flips. LMG eq. 8.

    A comparison counts 1 when p_first > .5, one half when it is .5. `low` and `high` are the Wilson 95 %
    interval, which takes the `n` comparisons as independent. A share away from .5 shows bias only over a
    symmetric set.

    A pair seen in both orders (there are `n_pairs`) is consistent when the same candidate wins in both, or
    both are ties; anything else is a flip, so a tie in one order only is one. Repeats of an order are
    averaged first. Shares are None where there is nothing to count.

    >>> position([Outcome("a", "b", 1.0), Outcome("b", "a", 1.0)]).flip_rate
    1.0
    """
    read = _readable(outcomes)
    verdicts = [_verdict(p) for _, _, p in read]
    flips = [_verdict(there) != _verdict(1 - back) for there, back in _both_orders(read).values()]
    n, share = len(verdicts), _mean(verdicts)
    if share is None:
        return Position(None, None, None, 0, None, 0)
    z = 1.959963984540054
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Position(share, max(0.0, centre - half), min(1.0, centre + half), n, _mean(flips), len(flips))


def debias(outcomes: Iterable[Outcome]) -> tuple[float, list[Outcome]]:
    """Reweight P(first) so that the first position is preferred in half of the comparisons. LMG eqs. 8-10.

    p' = alpha p / (alpha p + 1 - p) with alpha = (1 - tau) / tau, where the threshold tau is the median of
    p_first. Returns alpha (1: no bias, below 1: the first position was favoured) and the reweighted outcomes.
    The share is one half exactly unless several p_first equal the median: equal probabilities get equal
    verdicts. Use it on symmetric sets, where the share of an unbiased judge is one half.

    Hard outcomes (0 or 1) are the same under any alpha. If they alone make a majority, no alpha reaches one
    half: alpha is then 1 and nothing changes. A bias term (`bradley_terry`) is the remedy there. Unread
    outcomes stay.

    >>> alpha, fair = debias([Outcome("a", "b", 0.9), Outcome("b", "a", 0.7)])
    >>> round(alpha, 2), [round(o.p_first, 2) for o in fair]
    (0.25, [0.69, 0.37])
    """
    outcomes = list(outcomes)
    p = [o.p_first for o in outcomes if o.p_first is not None]
    tau = float(np.median(p)) if p else 0.5
    if not 0 < tau < 1:
        return 1.0, outcomes

    def reweighted(p: float) -> float:
        return p * (1 - tau) / (p * (1 - tau) + (1 - p) * tau)

    return (1 - tau) / tau, [o if o.p_first is None else replace(o, p_first=reweighted(o.p_first)) for o in outcomes]


# Ranking methods


def win_ratio(outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None = None) -> Ranking:
    """Wins divided by comparisons, in [0, 1]; a tie is half a win. LMG eqs. 2 and 6.

    The standard error is s / sqrt(n) over the candidate's own comparisons (None for a single one); it knows
    nothing of who the opponents were. `candidates` adds some that no outcome mentions; leaving out one that
    an outcome does mention raises ValueError. Both hold for every method.

    >>> win_ratio([Outcome("a", "b", 0.8), Outcome("b", "a", 0.1)]).scores
    {'a': 1.0, 'b': 0.0}
    """
    return _averaged("win-ratio", outcomes, candidates, _verdict)


def average_probability(outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None = None) -> Ranking:
    """The mean probability of being the better one, in [0, 1]: `win_ratio` without rounding to a verdict.

    >>> average_probability([Outcome("a", "b", 0.75), Outcome("b", "a", 0.5)]).scores
    {'a': 0.625, 'b': 0.375}
    """
    return _averaged("average", outcomes, candidates, float)


def bradley_terry(
    outcomes: Iterable[Outcome],
    candidates: Iterable[Candidate] | None = None,
    *,
    bias: bool = True,
    ridge: float = RIDGE,
) -> Ranking:
    """Soft Bradley-Terry scores with a position bias: the logistic product of experts. LFG.

    Maximises sum_k [p_k log q_k + (1 - p_k) log(1 - q_k)] - ridge (sum_i s_i^2 + b^2), q_k = sigma(s_i - s_j
    + b) for i shown first. Scores and b are in logits, scores sum to 0. `bias=False` fixes b = 0.

    The penalty is a Gaussian prior of variance 1 / (2 ridge) on each parameter. It keeps the result finite
    and unique where no maximum-likelihood estimate exists (a candidate that always wins, a disconnected
    graph, a position that always wins); a note says so. With ridge=0 such data raise ValueError. Standard
    errors come from the inverse observed information (penalty included), within sum(s) = 0; each comparison
    counts as one Bernoulli trial, so for probabilities read from a model they are rather too wide.

    >>> result = bradley_terry([Outcome("a", "b", 0.9), Outcome("b", "a", 0.5)], ridge=0)
    >>> round(result.scores["a"], 3), round(result.bias, 3)
    (0.549, 1.099)
    """
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge must be 0 or more, not {ridge!r}")
    data = _read(outcomes, candidates)
    n = len(data.compared)
    x = _design(data.first, data.second, n)
    if not bias:
        x[:, n] = 0
    notes = []
    if not _has_maximum(x if bias else x[:, :n], data.p):
        if ridge == 0:
            raise ValueError("no finite and unique maximum-likelihood scores exist here: use ridge > 0")
        notes.append(f"the outcomes leave some scores open: only the prior (ridge={ridge:g}) bounds them")
    theta, covariance = _fit(x, data.p, n, ridge)
    errors = np.sqrt(np.diag(covariance)[:n]).tolist()
    return _ranking("bradley-terry", data, theta[:n], errors, bias=float(theta[n]) if bias else None, notes=notes)


def product_of_experts(outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None = None) -> Ranking:
    """Gaussian product of experts, in closed form. LFG.

    Ordinary least squares on p_k = s_i - s_j + beta + noise, for i shown first. LFG write s_i - s_j ~
    N(alpha (p - beta), sigma^2); alpha only scales the scores and is 1 here, so they are differences of
    probability and sum to 0. beta is estimated along; `bias` is beta - 1/2. Standard errors use the residual
    variance; they are None without spare outcomes, or where order and quality cannot be told apart (a note
    says so; the solution is then the one of least norm).

    >>> result = product_of_experts([Outcome("a", "b", 0.9), Outcome("b", "a", 0.5)])
    >>> round(result.scores["a"], 3), round(result.bias, 3)
    (0.1, 0.2)
    """
    data = _read(outcomes, candidates)
    n = len(data.compared)
    x, y = _design(data.first, data.second, n), data.p - 0.5
    information = x.T @ x
    covariance = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    theta = covariance @ x.T @ y
    rank = int(np.linalg.matrix_rank(information, tol=1e-9, hermitian=True)) if len(y) else 0
    spare = len(y) - rank
    notes, errors = [], []
    if rank < n - len(_components(data)) + 1:
        notes.append("the position bias cannot be told apart from the scores: compare some pairs in both orders")
    elif spare > 0:
        residual = y - x @ theta
        errors = np.sqrt(residual @ residual / spare * np.diag(covariance)[:n]).tolist()
    return _ranking("gaussian", data, theta[:n], errors, bias=float(theta[n]), notes=notes)


def most_likely(
    outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None = None, *, clip: float = 0.01
) -> Ranking:
    """The order under which the outcomes are most likely, by greedy search. LMG Appendix B, eqs. 11-13.

    log P = sum_k [z_k log p_k + (1 - z_k) log(1 - p_k)], z_k = 1 when the order puts the first candidate
    above the second. (Eq. 12 is printed with a plus between the two factors; the product is meant.) Starting
    from the order of win ratios, one candidate at a time moves to wherever the likelihood gains most, until
    no move gains.

    p is clipped to [clip, 1 - clip], so that a hard outcome is strong evidence, not proof. Among hard
    outcomes alone the value does not matter for the order (eq. 13 with one error rate). A score is the number
    of candidates placed below. Candidates that the outcomes do not distinguish at all (three that beat each
    other in a circle, say) share the mean of their places. Raises ValueError unless 0 < clip < .5.

    >>> result = most_likely([Outcome("a", "b", 0.9), Outcome("b", "c", 0.8), Outcome("c", "a", 0.6)])
    >>> result.ranks(), round(math.exp(result.log_likelihood), 3)
    ({'a': 1, 'b': 2, 'c': 3}, 0.288)
    """
    if not 0 < clip < 0.5:
        raise ValueError(f"clip must be between 0 and .5, not {clip!r}")
    data = _read(outcomes, candidates)
    n = len(data.compared)
    p = np.clip(data.p, clip, 1 - clip)
    # [i, j]: what placing i above j rather than below adds to the log-likelihood
    odds = _net(data, np.log(p) - np.log1p(-p))

    ratios = win_ratio(data.outcomes).scores
    classes = _classes([-(ratios[name] or 0) for name in data.compared], odds)
    start = classes
    while len(set(start)) < n:
        # Where the outcomes do not choose, pick any, and let them order the others around it.
        picked = next(k for k in range(n) if start.count(start[k]) > 1)
        start = _classes([2 * own - (k == picked) for k, own in enumerate(start)], odds)
    order = sorted(range(n), key=start.__getitem__)
    while n:
        # [k, gap]: the gain when the candidate at place k of the order moves into that gap
        passed = np.pad(odds[np.ix_(order, order)].cumsum(axis=1), ((0, 0), (1, 0)))
        gains = np.diag(passed)[:, None] - passed
        k, gap = divmod(int(gains.argmax()), n + 1)
        if gains[k, gap] <= _TIE:
            break
        order.insert(gap if gap <= k else gap - 1, order.pop(k))

    below = np.empty(n)
    below[order] = np.arange(n)[::-1]
    scores = np.array([below[np.equal(classes, own)].mean() for own in classes])
    likelihood = fsum(np.log(np.where(below[data.first] > below[data.second], p, 1 - p)))
    return _ranking("most-likely", data, scores, log_likelihood=likelihood)


METHODS: dict[str, Callable[..., Ranking]] = {
    "win-ratio": win_ratio,
    "average": average_probability,
    "bradley-terry": bradley_terry,
    "gaussian": product_of_experts,
    "most-likely": most_likely,
}


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
    read = _readable(outcomes)
    unscored = {name for a, b, _ in read for name in (a, b)} - human.keys()
    if unscored:
        raise ValueError(f"no human score for {', '.join(sorted(map(repr, unscored)))}")
    both = [(a, b, (there + 1 - back) / 2) for (a, b), (there, back) in _both_orders(read).items()]

    def credits(judged: list[tuple[Candidate, Candidate, float]]) -> list[float]:
        return [_verdict(p) if human[a] > human[b] else 1 - _verdict(p) for a, b, p in judged if human[a] != human[b]]

    one, two = credits(read), credits(both)
    return Accuracy(_mean(one), _mean(two), len(one), len(two))


def cyclic_triples(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    """How many triples run in a circle (a over b over c over a), of how many with all three pairs compared.

    A pair's verdict comes from its mean probability over whatever was asked, in either order; a tie breaks
    the circle.

    >>> cyclic_triples([Outcome("a", "b", 0.9), Outcome("b", "c", 0.8), Outcome("c", "a", 0.6)])
    (1, 1)
    """
    data = _read(outcomes, None)
    # The trace of the cube counts closed walks of three steps: three per circle, six per triple.
    beats, compared = _net(data, data.p - 0.5) > _TIE, _graph(data)
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
                if right := _sign(against.get(a), against.get(b)):
                    credits.append(0.5 + 0.5 * right * _sign(scores[a], scores[b]))
        table[size] = _mean(credits)
    return table


# Shared parts

Read = tuple[Candidate, Candidate, float]


@dataclass(frozen=True, slots=True)
class _Data:
    outcomes: list[Outcome]
    names: list[Candidate]
    read: list[Read]
    compared: list[Candidate]
    first: NDArray[np.intp]  # places in `compared`, one for each entry of `read`
    second: NDArray[np.intp]
    p: Array


def _read(outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None) -> _Data:
    outcomes = list(outcomes)
    mentioned = dict.fromkeys(chain.from_iterable((o.first, o.second) for o in outcomes))
    names = list(mentioned) if candidates is None else _distinct(candidates)
    if strangers := mentioned.keys() - set(names):
        raise ValueError(f"compared but not among the candidates: {', '.join(sorted(map(repr, strangers)))}")
    read = _readable(outcomes)
    seen = {name for a, b, _ in read for name in (a, b)}
    compared = [name for name in names if name in seen]
    index = {name: k for k, name in enumerate(compared)}
    first = np.array([index[a] for a, _, _ in read], dtype=np.intp)
    second = np.array([index[b] for _, b, _ in read], dtype=np.intp)
    return _Data(outcomes, names, read, compared, first, second, np.array([p for _, _, p in read]))


def _graph(data: _Data) -> NDArray[np.bool_]:
    """Which of the compared candidates were compared with which."""
    graph = np.zeros((len(data.compared),) * 2, dtype=np.bool_)
    graph[data.first, data.second] = graph[data.second, data.first] = True
    return graph


def _net(data: _Data, values: Array) -> Array:
    """[i, j]: the sum of `values` where i was shown first and j second, less that of the other order."""
    sums: Array = np.zeros((len(data.compared),) * 2)
    np.add.at(sums, (data.first, data.second), values)
    net: Array = np.round(sums - sums.T, 9)  # rounded, lest the order of the outcomes show
    return net


def _components(data: _Data) -> tuple[frozenset[Candidate], ...]:
    labels = connected_components(_graph(data))[1].tolist() if data.read else []
    parts: dict[int, set[Candidate]] = {}
    for name, label in zip(data.compared, labels, strict=True):
        parts.setdefault(label, set()).add(name)
    return tuple(sorted(map(frozenset, parts.values()), key=len, reverse=True))


def _ranking(
    method: str,
    data: _Data,
    scores: Array,
    errors: Iterable[float | None] = (),
    *,
    bias: float | None = None,
    notes: Sequence[str] = (),
    log_likelihood: float | None = None,
) -> Ranking:
    values = dict(zip(data.compared, scores.tolist(), strict=True))
    spreads = dict(zip(data.compared, errors, strict=False))
    components, silent = _components(data), len(data.names) - len(data.compared)
    notes = list(notes)
    if len(components) > 1:
        notes.append(
            f"the comparisons fall into {len(components)} groups with no comparison between them: "
            "scores and ranks from different groups cannot be compared"
        )
    if silent:
        notes.append(f"never compared, so without a score: {silent} of {len(data.names)} candidates")
    return Ranking(
        method=method,
        scores={name: values.get(name) for name in data.names},
        std_errors={name: spreads.get(name) for name in data.names},
        bias=bias if data.read else None,
        components=components,
        n=len(data.read),
        missing=len(data.outcomes) - len(data.read),
        notes=tuple(notes),
        log_likelihood=log_likelihood,
    )


def _averaged(
    method: str,
    outcomes: Iterable[Outcome],
    candidates: Iterable[Candidate] | None,
    value: Callable[[float], float],
) -> Ranking:
    data = _read(outcomes, candidates)
    won: dict[Candidate, list[float]] = {name: [] for name in data.compared}
    for a, b, p in data.read:
        won[a].append(value(p))
        won[b].append(1 - value(p))
    scores = np.array([fsum(shares) / len(shares) for shares in won.values()])
    errors = [stdev(won[name]) / math.sqrt(len(won[name])) if len(won[name]) > 1 else None for name in won]
    return _ranking(method, data, scores, errors)


def _design(first: NDArray[np.intp], second: NDArray[np.intp], n: int) -> Array:
    """A row per comparison: +1 for the first, -1 for the second, 1 in the last column for the bias."""
    x, rows = np.zeros((len(first), n + 1)), np.arange(len(first))
    x[rows, first], x[rows, second], x[:, n] = 1, -1, 1
    return x


def _fit(x: Array, p: Array, n: int, ridge: float) -> tuple[Array, Array]:
    """Newton's method on the penalised likelihood of `bradley_terry`; the estimate and its covariance."""
    prior = 2 * ridge * np.eye(n + 1)
    gauge = np.zeros((n + 1, n + 1))
    gauge[:n, :n] = 1  # holds sum(s) = 0, which the comparisons leave open
    if not x[:, n].any():
        prior[n, n] = 1  # no bias term: any curvature keeps it at 0

    def loss(theta: Array) -> float:
        eta = x @ theta
        return float(np.logaddexp(0, eta).sum() - p @ eta + theta @ prior @ theta / 2)

    def curvature(theta: Array) -> Array:
        q = expit(x @ theta)
        return np.asarray((x.T * (q * (1 - q))) @ x + prior + gauge)

    theta = np.zeros(n + 1)
    for _ in range(200):
        gradient = x.T @ (expit(x @ theta) - p) + prior @ theta
        step = np.linalg.solve(curvature(theta), gradient)
        size = 1.0
        # Far from the optimum a full step may overshoot; near it, the loss is flat to within rounding.
        while size * (gradient @ step) > 1e-9 and loss(theta - size * step) > loss(theta):
            size /= 2
        theta = theta - size * step
        if np.abs(step).max() < 1e-11:
            break
    within = np.eye(n + 1)
    within[:n, :n] -= 1 / max(n, 1)  # the projection onto sum(s) = 0
    return theta, within @ np.linalg.inv(curvature(theta)) @ within


def _has_maximum(x: Array, p: Array) -> bool:
    """Whether the likelihood has a finite and unique maximum: the data overlap (Albert and Anderson 1984).

    It has none when some direction in parameter space agrees with every hard outcome, contradicts no soft
    one, and is strict for at least one; and it is not unique when the comparisons leave more open than the
    scores' common shift.
    """
    if not len(p):
        return True
    if np.linalg.matrix_rank(x) < x.shape[1] - 1:
        return False
    hard = (p == 0) | (p == 1)
    toward = np.where(p == 1, 1, -1)[:, None] * x
    found = linprog(
        -toward[hard].sum(axis=0),
        A_ub=-toward[hard],
        b_ub=np.zeros(int(hard.sum())),
        A_eq=x[~hard],
        b_eq=np.zeros(int((~hard).sum())),
        bounds=(-1, 1),
    )
    return found.fun is not None and found.fun > -1e-6


def _classes(start: Sequence[float], odds: Array) -> list[int]:
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


def _readable(outcomes: Iterable[Outcome]) -> list[Read]:
    return [(o.first, o.second, o.p_first) for o in outcomes if o.p_first is not None]


def _both_orders(read: list[Read]) -> dict[tuple[Candidate, Candidate], tuple[float, float]]:
    """The mean P(first) in one order and in the other, for each unordered pair seen in both."""
    asked: dict[tuple[Candidate, Candidate], list[float]] = {}
    for a, b, p in read:
        asked.setdefault((a, b), []).append(p)
    means = {pair: fsum(answers) / len(answers) for pair, answers in asked.items()}
    place = {pair: k for k, pair in enumerate(means)}
    return {(a, b): (p, means[b, a]) for (a, b), p in means.items() if place.get((b, a), -1) > place[a, b]}


def _verdict(p: float) -> float:
    """1 when the first is better, 0 when the second is, .5 for a tie."""
    return 0.5 + 0.5 * _sign(p, 0.5)


def _sign(a: float | None, b: float | None) -> int:
    if a is None or b is None or abs(a - b) <= _TIE:
        return 0
    return 1 if a > b else -1


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _distinct(candidates: Iterable[C]) -> list[C]:
    names = list(candidates)
    if len(set(names)) < len(names):
        raise ValueError("the candidates' names must differ from one another")
    return names
