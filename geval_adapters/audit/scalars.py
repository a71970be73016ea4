"""Statistics that show a judge's biases and inconsistencies: scores in, an estimate with its interval out.

All are plain functions of arrays; `bootstrap` puts a bootstrap interval around any of them. What the numbers are taken
from, and which of them count against a judge, is told in `audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from ..agreement.intervals import FEWEST, Figure

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_NOISE = 1e-12  # spread below which numbers are the same


def kendall(x: Floats, y: Floats) -> float | None:
    """Kendall's τ-b of pooled items; None where a side is constant."""
    first, second = (np.sign(side[:, None] - side[None, :]) for side in (x, y))
    norm = math.sqrt((first**2).sum() * (second**2).sum())
    return float((first * second).sum() / norm) if norm else None


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's r; None where a side is constant."""
    dx, dy = x - x.mean(), y - y.mean()
    norm = math.sqrt(float((dx**2).sum() * (dy**2).sum()))
    return float((dx * dy).sum()) / norm if norm > _NOISE else None


def midranks(x: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs.

    >>> midranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def spearman(x: Floats, y: Floats, given: Floats | None = None) -> float | None:
    """Spearman's ρ, or, with a third variable, the partial ρ that is left when its part is taken out.

    ρ(x, y | z) = (ρ_xy − ρ_xz·ρ_yz) / √((1 − ρ_xz²)(1 − ρ_yz²)), the first-order partial correlation of the ranks.
    None where it is undefined: a side is constant, or z says all about one of them. A constant z takes nothing out.

    >>> length, human = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 2.0, 2.0])
    >>> round(spearman(length, human), 3), round(spearman(np.array([1.0, 2.0, 3.0, 4.0]), length, human), 3)
    (0.894, 1.0)
    """
    ranks = [midranks(side) for side in (x, y)]
    whole = pearson(*ranks)
    if given is None or whole is None:
        return whole
    third = midranks(given)
    xz, yz = (pearson(side, third) or 0.0 for side in ranks)
    rest = (1 - xz**2) * (1 - yz**2)
    return (whole - xz * yz) / math.sqrt(rest) if rest > _NOISE else None


def bootstrap(
    statistic: Callable[[Ints], float | None],
    documents: Sequence[Hashable],
    *,
    resamples: int = 500,
    seed: int = 0,
    confidence: float = 0.95,
) -> Figure:
    """A statistic of items with an interval that resamples the documents which the items belong to.

    Args:
        statistic: takes the indices of items (in a resample some of them several times); None where undefined.
        documents: the document of each item.
        resamples: bootstrap resamples; the interval leaves out those in which the statistic is undefined.
        seed: seed of the resampling.
        confidence: share of the resamples that the interval holds.

    >>> scores = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> result = bootstrap(lambda items: float(scores[items].mean()), range(6))
    >>> result.value, round(result.low, 1), round(result.high, 1), result.n
    (3.5, 2.0, 5.2, 6)
    >>> bootstrap(lambda items: float(scores[items].mean()), "aaabbb").low is None
    True
    """
    groups: dict[Hashable, list[int]] = {}
    for item, document in enumerate(documents):
        groups.setdefault(document, []).append(item)
    members = [np.array(items, dtype=np.int64) for items in groups.values()]
    n = len(documents)
    value = statistic(np.arange(n)) if n else None
    if value is None:
        return Figure(None, None, None, n, why_not="undefined for these items" if n else "there are no items")
    if len(members) < FEWEST:
        few = f"no interval: it needs {FEWEST} documents, and there are {len(members)}"
        return Figure(value, None, None, n, why_not=few)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(members), size=(resamples, len(members)))
    figures = [statistic(np.concatenate([members[group] for group in row])) for row in drawn]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return Figure(value, None, None, n, why_not="no interval: undefined in every resample")
    # Hesterberg (2014, arXiv 1411.5279), expanded percentiles: with few groups the percentiles must lie farther out.
    m = len(members)
    tail = float(ndtr(stdtrit(m - 1, (1 - confidence) / 2) * math.sqrt(m / (m - 1))))
    low, high = np.quantile(known, [tail, 1 - tail])
    return Figure(value, float(low), float(high), n, f"bootstrap over {m} documents (expanded percentiles)")
