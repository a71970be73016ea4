"""Statistics that show a judge's biases and inconsistencies: scores in, an estimate with its interval out.

All are plain functions of arrays; `bootstrap` puts a bootstrap interval around any of them. What the numbers are taken
from, and which of them count against a judge, is told in `audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from .agreement import krippendorff_alpha
from .criteria import Scale

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST = 6
"""Documents below which there is no interval: five that agree by chance all lie on one side once in sixteen times."""
_NOISE = 1e-12  # spread below which numbers are the same


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and how sure it is.

    Attributes:
        value: the figure, None where it is undefined.
        low, high: bootstrap interval (expanded percentiles); None for fewer than `FEWEST` documents.
        n: items that the figure rests on.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


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
    if value is None or len(members) < FEWEST:
        return Figure(value, None, None, n)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(members), size=(resamples, len(members)))
    figures = [statistic(np.concatenate([members[group] for group in row])) for row in drawn]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return Figure(value, None, None, n)
    # Hesterberg (2014, arXiv 1411.5279), expanded percentiles: with few groups the percentiles must lie farther out.
    m = len(members)
    tail = float(ndtr(stdtrit(m - 1, (1 - confidence) / 2) * math.sqrt(m / (m - 1))))
    low, high = np.quantile(known, [tail, 1 - tail])
    return Figure(value, float(low), float(high), n)


# --- how a scale is used ---------------------------------------------------------------------------------------------


def granularity(scores: Floats) -> float:
    """Effective granularity: how many different scores are given (Stureborg et al. 2024, §3.2, "G" in Table 2)."""
    return float(len(np.unique(scores.round(2))))


def range_used(scores: Floats, scale: Scale) -> float:
    """The share of the scale between the lowest and the highest score given, in [0, 1]."""
    return float((scores.max() - scores.min()) / (scale.high - scale.low))


def entropy(scores: Floats) -> float:
    """Entropy of the scores given, in bits; 0 for a judge that always gives the same.

    >>> entropy(np.array([1.0, 1.0, 5.0, 5.0]))
    1.0
    """
    _, counts = np.unique(scores.round(2), return_counts=True)
    p = counts / counts.sum()
    return float(-(p * np.log2(p)).sum()) + 0.0


def round_number_excess(scores: Floats, scale: Scale) -> float | None:
    """How much more often round scores are given than their share of the scale (Stureborg et al. 2024, Fig. 3).

    Round are the multiples of five on a scale of more than twenty whole numbers, and the whole numbers on one that has
    steps between them; on other scales nothing is round, and the result is None. Unlike a test against uniform scores
    this asks nothing of the scores' shape: on either side of a round score there are others as good.

    >>> round_number_excess(np.array([80.0, 85.0, 90.0, 91.0]), Scale.of("1-100"))
    0.55
    """
    if len(scale.values) > 20:
        unit = 5
    elif any(value != int(value) for value in scale.values):
        unit = 1
    else:
        return None
    values = np.array(scale.values)
    return float((scores % unit == 0).mean() - (values % unit == 0).mean())


def binned(scores: Floats, scale: Scale, levels: int = 5) -> Floats:
    """Scores of any scale as levels 1 … `levels` of equal width (Stureborg et al. 2024, Table 7).

    >>> binned(np.array([1.0, 20.0, 21.0, 100.0]), Scale.of("1-100")).tolist()
    [1.0, 1.0, 2.0, 5.0]
    """
    share = (scores - scale.low) / (scale.high - scale.low)
    return np.asarray(np.minimum(np.floor(share * levels + _NOISE), levels - 1) + 1)


# --- how scores go together ------------------------------------------------------------------------------------------


def alpha(table: Sequence[Floats]) -> float | None:
    """Krippendorff's α for interval data between the rows of a table (raters × items; NaN where missing)."""
    return krippendorff_alpha([list(row) for row in table], "interval")


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


def system_gaps(judge: Floats, human: Floats, system: Floats, systems: int) -> Floats:
    """How much higher the judge rates each system than the others, people's scores being equal.

    Analysis of covariance: judge = a_s + b·human, with b from the differences within systems; the gap of a system is
    its a_s minus the mean of the others'. A lenient judge, or one that uses less of the scale, favours nobody for it.

    Args:
        judge, human: scores of items.
        system: the number of each item's system, from 0.
        systems: how many there are.

    Returns:
        One gap for each system, in units of the judge's scores; NaN for a system without items, or without others.

    >>> judge, human = np.array([2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 2.0, 3.0])
    >>> system_gaps(judge, human, np.array([0.0, 0.0, 1.0, 1.0]), 2).tolist()
    [-1.0, 1.0]
    """
    codes = system.astype(np.int64)
    counts = np.bincount(codes, minlength=systems)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(codes, weights=side, minlength=systems) / counts for side in (judge, human)]
    within = [side - mean[codes] for side, mean in zip((judge, human), means, strict=True)]
    spread = float((within[1] ** 2).sum())
    slope = float((within[0] * within[1]).sum()) / spread if spread > _NOISE else 0.0
    level = means[0] - slope * means[1]
    others = int((counts > 0).sum()) - 1
    return np.asarray(level - (np.nansum(level) - level) / others if others > 0 else np.full(systems, np.nan))
