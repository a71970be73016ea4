"""Scores from comparisons: win ratio, average probability, soft Bradley-Terry, product of experts, the likeliest order.

Outcomes go in, a `Ranking` comes out. Results depend neither on what the candidates are called nor on the order in
which the outcomes are listed.

Sources: Liusie, Manakul and Gales (2024), "LLM Comparative Assessment", arXiv 2307.07889, cited below as LMG;
Liusie, Fathullah and Gales (2024), product of experts, arXiv 2405.05894, cited as LFG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from statistics import stdev

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, stdtrit

from .outcomes import TIE, Array, Candidate, Outcome, Ranking, Read, classes_of, distinct, readable, verdict_of

RIDGE = 0.05  # a prior with a standard deviation of 3.2 logits: weak beside a handful of comparisons


# Ranking methods


def win_ratio(outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None = None) -> Ranking:
    """Wins divided by comparisons, in [0, 1]; a tie is half a win. LMG eqs. 2 and 6.

    The standard error is s / sqrt(n) over the candidate's own comparisons (None for a single one); it knows
    nothing of who the opponents were. `candidates` adds some that no outcome mentions; leaving out one that
    an outcome does mention raises ValueError. Both hold for every method.

    >>> win_ratio([Outcome("a", "b", 0.8), Outcome("b", "a", 0.1)]).scores
    {'a': 1.0, 'b': 0.0}
    """
    return _averaged("win-ratio", outcomes, candidates, verdict_of)


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
    groups: Sequence[Hashable] | None = None,
) -> Ranking:
    """Soft Bradley-Terry scores with a position bias: the logistic product of experts. LFG.

    Maximises sum_k [p_k log q_k + (1 - p_k) log(1 - q_k)] - ridge (sum_i s_i^2 + b^2), q_k = sigma(s_i - s_j
    + b) for i shown first. Scores and b are in logits, scores sum to 0. `bias=False` fixes b = 0.

    The penalty is a Gaussian prior of variance 1 / (2 ridge) on each parameter. It keeps the result finite
    and unique where no maximum-likelihood estimate exists (a candidate that always wins, a disconnected
    graph, a position that always wins); a note says so. With ridge=0 such data raise ValueError.

    Standard errors are the sandwich's, H^-1 (sum_g u_g u_g') H^-1 G / (G - r), where u_g is the gradient of the
    outcomes of one group, G the number of groups and r that of parameters, times t / 1.96 for few groups (Liang
    and Zeger 1986). `groups` names each outcome's group, such as its document; by default both orders of a
    pair are one. Where that leaves no spare group, or all outcomes are verdicts and no groups are given, they
    come from the inverse observed information H^-1, which takes each outcome for one Bernoulli trial: for
    probabilities read from a model that is several times too wide.

    >>> result = bradley_terry([Outcome("a", "b", 0.9), Outcome("b", "a", 0.5)], ridge=0)
    >>> round(result.scores["a"], 3), round(result.bias, 3)
    (0.549, 1.099)
    """
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge must be 0 or more, not {ridge!r}")
    data = table_of(outcomes, candidates)
    n = len(data.compared)
    x = design_of(data.first, data.second, n)
    if not bias:
        x[:, n] = 0
    notes = []
    if not _has_maximum(x if bias else x[:, :n], data.p):
        if ridge == 0:
            raise ValueError("no finite and unique maximum-likelihood scores exist here: use ridge > 0")
        notes.append(f"the outcomes leave some scores open: only the prior (ridge={ridge:g}) bounds them")
    theta, covariance = fit(x, data.p, n, ridge)
    if groups is None and not np.isin(data.p, (0, 0.5, 1)).all():
        groups = [None if each.p_first is None else frozenset((each.first, each.second)) for each in data.outcomes]
    if groups is not None:
        kept = [group for group, each in zip(groups, data.outcomes, strict=True) if each.p_first is not None]
        covariance = _sandwich(covariance, x, data.p - expit(x @ theta), kept)
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
    data = table_of(outcomes, candidates)
    n = len(data.compared)
    x, y = design_of(data.first, data.second, n), data.p - 0.5
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
    data = table_of(outcomes, candidates)
    n = len(data.compared)
    p = np.clip(data.p, clip, 1 - clip)
    # [i, j]: what placing i above j rather than below adds to the log-likelihood
    odds = net_of(data, np.log(p) - np.log1p(-p))

    ratios = win_ratio(data.outcomes).scores
    classes = classes_of([-(ratios[name] or 0) for name in data.compared], odds)
    start = classes
    while len(set(start)) < n:
        # Where the outcomes do not choose, pick any, and let them order the others around it.
        picked = next(k for k in range(n) if start.count(start[k]) > 1)
        start = classes_of([2 * own - (k == picked) for k, own in enumerate(start)], odds)
    order = sorted(range(n), key=start.__getitem__)
    while n:
        # [k, gap]: the gain when the candidate at place k of the order moves into that gap
        passed = np.pad(odds[np.ix_(order, order)].cumsum(axis=1), ((0, 0), (1, 0)))
        gains = np.diag(passed)[:, None] - passed
        k, gap = divmod(int(gains.argmax()), n + 1)
        if gains[k, gap] <= TIE:
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


# Shared parts


@dataclass(frozen=True, slots=True)
class Table:
    """Outcomes as numbers: which candidates there are, which were compared, and what was read of each comparison."""

    outcomes: list[Outcome]
    names: list[Candidate]
    read: list[Read]
    compared: list[Candidate]
    first: NDArray[np.intp]  # places in `compared`, one for each entry of `read`
    second: NDArray[np.intp]
    p: Array


def table_of(outcomes: Iterable[Outcome], candidates: Iterable[Candidate] | None) -> Table:
    """The outcomes as numbers. Raises ValueError where one is about something that is no candidate."""
    outcomes = list(outcomes)
    mentioned = dict.fromkeys(chain.from_iterable((o.first, o.second) for o in outcomes))
    names = list(mentioned) if candidates is None else distinct(candidates)
    if strangers := mentioned.keys() - set(names):
        raise ValueError(f"compared but not among the candidates: {', '.join(sorted(map(repr, strangers)))}")
    read = readable(outcomes)
    seen = {name for a, b, _ in read for name in (a, b)}
    compared = [name for name in names if name in seen]
    index = {name: k for k, name in enumerate(compared)}
    first = np.array([index[a] for a, _, _ in read], dtype=np.intp)
    second = np.array([index[b] for _, b, _ in read], dtype=np.intp)
    return Table(outcomes, names, read, compared, first, second, np.array([p for _, _, p in read]))


def comparison_graph(data: Table) -> NDArray[np.bool_]:
    """Which of the compared candidates were compared with which."""
    graph = np.zeros((len(data.compared),) * 2, dtype=np.bool_)
    graph[data.first, data.second] = graph[data.second, data.first] = True
    return graph


def net_of(data: Table, values: Array) -> Array:
    """[i, j]: the sum of `values` where i was shown first and j second, less that of the other order."""
    sums: Array = np.zeros((len(data.compared),) * 2)
    np.add.at(sums, (data.first, data.second), values)
    net: Array = np.round(sums - sums.T, 9)  # rounded, lest the order of the outcomes show
    return net


def _components(data: Table) -> tuple[frozenset[Candidate], ...]:
    labels = connected_components(comparison_graph(data))[1].tolist() if data.read else []
    parts: dict[int, set[Candidate]] = {}
    for name, label in zip(data.compared, labels, strict=True):
        parts.setdefault(label, set()).add(name)
    return tuple(sorted(map(frozenset, parts.values()), key=len, reverse=True))


def _ranking(
    method: str,
    data: Table,
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
    data = table_of(outcomes, candidates)
    won: dict[Candidate, list[float]] = {name: [] for name in data.compared}
    for a, b, p in data.read:
        won[a].append(value(p))
        won[b].append(1 - value(p))
    scores = np.array([fsum(shares) / len(shares) for shares in won.values()])
    errors = [stdev(won[name]) / math.sqrt(len(won[name])) if len(won[name]) > 1 else None for name in won]
    return _ranking(method, data, scores, errors)


def design_of(first: NDArray[np.intp], second: NDArray[np.intp], n: int) -> Array:
    """A row per comparison: +1 for the first, -1 for the second, 1 in the last column for the statistics."""
    x, rows = np.zeros((len(first), n + 1)), np.arange(len(first))
    x[rows, first], x[rows, second], x[:, n] = 1, -1, 1
    return x


def fit(x: Array, p: Array, n: int, ridge: float) -> tuple[Array, Array]:
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


def _sandwich(inverse: Array, x: Array, residuals: Array, groups: Sequence[Hashable]) -> Array:
    """The covariance of `bradley_terry`'s parameters when only the groups are independent; `inverse` with too few."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    gradients = np.zeros((len(numbers), x.shape[1]))
    np.add.at(gradients, [numbers[group] for group in groups], x * residuals[:, None])
    spare = len(numbers) - int(np.linalg.matrix_rank(x)) if len(x) else 0
    if spare < 1:
        return inverse
    half = inverse @ gradients.T
    return np.asarray(half @ half.T * len(numbers) / spare * (float(stdtrit(spare, 0.975)) / 1.959964) ** 2)


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
    solution = linprog(
        -toward[hard].sum(axis=0),
        A_ub=-toward[hard],
        b_ub=np.zeros(int(hard.sum())),
        A_eq=x[~hard],
        b_eq=np.zeros(int((~hard).sum())),
        bounds=(-1, 1),
    )
    return solution.fun is not None and solution.fun > -1e-6
