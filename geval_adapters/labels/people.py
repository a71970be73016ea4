"""How good a judge is among people: their agreement with each other, and the judge in one's place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from ..agreement.alpha import krippendorff_alpha

Floats = npt.NDArray[np.float64]
FEWEST = 30
"""Items that the judge and an annotator must share for the alternative annotator test (Calderon et al. 2025, §3)."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Agreement between annotators, and the judge's with them.

    Attributes:
        annotators: how many.
        items: items that two of them scored.
        alpha: Krippendorff's α between them, for distances.
        people: mean correlation of one annotator with the mean of the others; None where undefined.
        judge: mean correlation of the judge with the same means.
        r: Pearson r of the judge with the annotators' mean.
        reliability: that of the annotators' mean, k·α / (1 + (k − 1)·α) for a mean k annotators an item.
        r_corrected: r / √reliability: what r would be if people's mean were without error; only to be read beside r.
    """

    annotators: int
    items: int
    alpha: float | None
    people: float | None
    judge: float | None
    r: float | None
    reliability: float | None
    r_corrected: float | None


def ceiling(judge: Floats, table: Floats) -> Ceiling:
    """How well people agree with each other, which no judge can be shown to surpass by much.

    Args:
        judge: the judge's score of each item, NaN where there is none.
        table: annotators by items, NaN where an annotator gave no score.

    >>> table = np.array([[1, 2, 3, 4, 5.0], [1, 3, 3, 4, 4], [2, 2, 3, 5, 5]])
    >>> found = ceiling(np.array([1, 2, 3, 3, 5.0]), table)
    >>> f"{found.alpha:.2f} {found.people:.2f} {found.judge:.2f} {found.r:.2f} {found.r_corrected:.2f}"
    '0.85 0.91 0.90 0.91 0.93'
    """
    scored = (~np.isnan(table)).sum(axis=0)
    together = scored >= 2
    alpha = krippendorff_alpha(_lists(table), "interval") if together.any() else None
    pairs = []
    for one in range(len(table)):
        others = _mean(np.delete(table, one, axis=0))
        pairs.append((_r(table[one], others), _r(np.where(np.isnan(table[one]), np.nan, judge), others)))
    known = [(own, judges) for own, judges in pairs if own is not None and judges is not None]
    k = float(scored[scored > 0].mean()) if scored.any() else 0.0
    reliability = None if alpha is None or alpha <= 0 else k * alpha / (1 + (k - 1) * alpha)
    r = _r(judge, _mean(table))
    return Ceiling(
        len(table),
        int(together.sum()),
        alpha,
        float(np.mean([own for own, _ in known])) if known else None,
        float(np.mean([judges for _, judges in known])) if known else None,
        r,
        reliability,
        None if r is None or reliability is None else r / math.sqrt(reliability),
    )


@dataclass(frozen=True, slots=True)
class AlternativeAnnotator:
    """Result of `alternative_annotator_test`.

    Attributes:
        winning_rate: share of the annotators whom the judge could stand in for: ω, passed at .5.
        advantage: mean over annotators of the share of items on which the judge is no worse: ρ.
        annotators: annotators compared, and `items` a mean number of items each.
        why_not: why there is none.
    """

    winning_rate: float | None
    advantage: float | None
    annotators: int
    items: float
    why_not: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the judge may stand in for an annotator."""
        return None if self.winning_rate is None else self.winning_rate >= 0.5


def alternative_annotator_test(judge: Floats, table: Floats, *, epsilon: float = 0.2) -> AlternativeAnnotator:
    """Test whether the judge may stand in for one of the annotators (Calderon et al. 2025, arXiv 2501.10970).

    Annotator j is left out. On each item the judge wins where its root mean square distance to the others is no larger
    than j's; a tie is a win of both. H0: ρ_j(judge) ≤ ρ_j(annotator) − ε, one-sided paired t, Benjamini & Yekutieli's
    correction at .05. ω is the share of annotators for whom H0 falls. Where people agree by giving the same score most
    of the time, a constant judge wins by ties: show one beside the judge (`np.full_like(judge, constant)`).

    Args:
        judge: the judge's score of each item, NaN where there is none.
        table: annotators by items, NaN where an annotator gave no score.
        epsilon: how much worse the judge may be for being cheaper: .2 beside experts, .15 beside skilled, .1 beside
            crowd workers.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(1, 6, 100)
    >>> table = truth + rng.integers(-1, 2, (4, 100))
    >>> alternative_annotator_test(truth.astype(float), table.astype(float)).winning_rate
    1.0
    >>> alternative_annotator_test(np.full(100, 3.0), table.astype(float)).winning_rate
    0.0
    """
    p_values, advantages, counts = [], [], []
    for one in range(len(table)):
        others = np.delete(table, one, axis=0)
        here = np.flatnonzero(~np.isnan(table[one]) & ~np.isnan(judge) & (~np.isnan(others)).any(axis=0))
        if here.size < FEWEST:
            continue
        far = [np.sqrt(np.nanmean((others[:, here] - each[here]) ** 2, axis=0)) for each in (judge, table[one])]
        wins = (far[0] <= far[1] + 1e-9).astype(float)
        margin = (far[1] <= far[0] + 1e-9).astype(float) - wins
        spread = float(margin.std(ddof=1)) / math.sqrt(here.size)
        gap = float(margin.mean()) - epsilon
        p_values.append(float(gap >= 0) if spread < 1e-12 else float(stdtr(here.size - 1, gap / spread)))
        advantages.append(float(wins.mean()))
        counts.append(here.size)
    if len(p_values) < 2:
        few = f"it takes three annotators, or two who share {FEWEST} items with others and the judge"
        return AlternativeAnnotator(None, None, len(p_values), 0.0, few)
    rejected = _benjamini_yekutieli(p_values)
    return AlternativeAnnotator(
        float(np.mean(rejected)), float(np.mean(advantages)), len(p_values), float(np.mean(counts))
    )


def _benjamini_yekutieli(p_values: Sequence[float], level: float = 0.05) -> list[bool]:
    m = len(p_values)
    harmonic = sum(1 / i for i in range(1, m + 1))
    order = sorted(range(m), key=p_values.__getitem__)
    last = max((rank for rank, i in enumerate(order, 1) if p_values[i] <= rank * level / (m * harmonic)), default=0)
    return [p_values[i] <= (p_values[order[last - 1]] if last else -1) for i in range(m)]


def _mean(table: Floats) -> Floats:
    n = (~np.isnan(table)).sum(axis=0)
    return np.where(n > 0, np.nansum(table, axis=0) / np.maximum(n, 1), np.nan)


def _r(one: Floats, other: Floats) -> float | None:
    here = ~np.isnan(one) & ~np.isnan(other)
    a, b = one[here], other[here]
    if a.size < 3 or np.ptp(a) < 1e-12 or np.ptp(b) < 1e-12:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _lists(table: Floats) -> list[list[Any]]:
    return [[None if math.isnan(each) else float(each) for each in row] for row in table]
