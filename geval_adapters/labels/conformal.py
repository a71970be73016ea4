"""Intervals for people's score of single items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .prediction import Drawn, folds, isotonic

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Intervals:
    """An interval for each item that holds people's score of it with a stated probability.

    Attributes:
        level: that probability.
        low, high: one for each item, on the scale.
        coverage: share of the labelled items whose label lies in the interval that the labels of other documents make.
        width: mean over all items.
        n: labels.
        why_not: why there are none.
    """

    level: float
    low: Floats
    high: Floats
    coverage: float | None
    width: float | None
    n: int
    why_not: str = ""


def conformal(items: Drawn, scale: tuple[float, float], level: float = 0.9) -> Intervals:
    """Cross-conformal intervals: the calibrated judge's score g, and as far beside it as labels of other documents lie.

    With residuals |Y − g| of the labelled items, each g fitted on other documents, the half width is their
    ⌈(n + 1) · level⌉-th smallest (Vovk 2015, cross-conformal predictors). Where items were not drawn with equal
    chances, it is the quantile weighted by 1 / probability (Tibshirani et al. 2019, arXiv 1904.06019), an item of mean
    weight standing for the one that is predicted. They hold on average over items drawn like the labelled ones, and
    are wide: that is the truth about single ratings.

    Args:
        items: judge's scores and labels.
        scale: the lowest and the highest score, where intervals end.
        level: the probability, between 0 and 1.

    >>> from .prediction import drawn
    >>> rng = np.random.default_rng(0)
    >>> people = rng.uniform(1, 5, 300)
    >>> judge = people + rng.normal(0, 0.5, 300)
    >>> labels = np.where(np.arange(300) < 100, people, np.nan)
    >>> made = conformal(drawn(judge, labels, range(300)), (1, 5))
    >>> held = (made.low[100:] <= people[100:]) & (people[100:] <= made.high[100:])
    >>> f"{held.mean():.2f} {made.coverage:.2f} {made.width:.1f}"
    '0.90 0.90 1.4'
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    low, high = scale
    everything = np.full(len(items.scores), low), np.full(len(items.scores), high)
    needed = math.ceil(level / (1 - level) - 1e-9)
    if items.n < needed:
        few = f"no interval: at {level:.0%} it needs {needed} labels, and there are {items.n}"
        return Intervals(level, *everything, None, None, items.n, few)
    predictions = isotonic(items)
    residuals = np.abs(items.labels - predictions)[items.labelled]
    reach = _quantile(residuals, items.weights, level)
    fold = folds(items)[items.labelled]
    held = []
    for number in np.unique(fold):
        here = fold == number
        if (~here).any():
            within = residuals[here] <= _quantile(residuals[~here], items.weights[~here], level)
            held += list(zip(within, items.weights[here], strict=True))
    total = sum(weight for _, weight in held)
    lows, highs = np.maximum(predictions - reach, low), np.minimum(predictions + reach, high)
    coverage = sum(weight for inside, weight in held if inside) / total if total else None
    return Intervals(level, lows, highs, coverage, float((highs - lows).mean()), items.n)


def _quantile(residuals: Floats, weights: Floats, level: float) -> float:
    """The least residual at or below which lies the share `level` of the weight, that of a further item at infinity."""
    order = np.argsort(residuals)
    reached = np.cumsum(weights[order]) / (weights.sum() + weights.mean())
    place = int(np.searchsorted(reached, level - 1e-9))
    return float(residuals[order[place]]) if place < len(order) else math.inf
