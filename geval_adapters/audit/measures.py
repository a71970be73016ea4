"""Statistics that show a judge's biases and inconsistencies: scores in, an estimate with its interval out.

All are plain functions of arrays; `bootstrap` puts a bootstrap interval around any of them. What the numbers are taken
from, and which of them count against a judge, is told in `audit`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..agreement.alpha import krippendorff_alpha
from ..criteria import Scale
from .scalars import Floats

_NOISE = 1e-12  # spread below which numbers are the same


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
