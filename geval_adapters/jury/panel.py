"""The panel: several judges' ratings of the same items as one, with what the judges differ by as its error."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..agreement.intervals import FEWEST, Floats
from ..labels.prediction import drawn, folds
from .scale import CommonScale, common_scale

How = Literal["plain", "standardized", "weighted"]
"""How judges were averaged: as they are (for want of items), on the common scale, and there weighted."""

LABELS = 30
"""Labelled items from which judges are weighted."""
MOST = 0.95
"""The correlation with people beyond which a judge's weight grows no more."""


@dataclass(frozen=True)
class Ballots:
    """What judges said of the same items by one criterion.

    Attributes:
        judges: their names.
        scores: judges by items, NaN where there is none.
        documents: that of each item.
        people: people's mean score of each item, NaN where there is none.
        noise: `s² / k` of the k annotators that this mean is of; NaN where that is not known.
        scale: the lowest and the highest score.
    """

    judges: tuple[str, ...]
    scores: Floats
    documents: Sequence[Hashable]
    people: Floats
    noise: Floats
    scale: tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """The judges' common rating of each item.

    Attributes:
        ballots: what it was made of.
        how: how the judges were averaged, and `why_not` weighted or standardized.
        common: each judge's ratings on the common scale, with their means and spreads.
        weights: of each judge, those that all labels together give; they sum to one, 0 for one that carries nothing.
        weights_range: lowest and highest weight of each judge over the folds in which they were fitted.
        score: of each item, NaN where no judge that carries something rated it.
        std_error: between the judges: `√(k / (k − 1) · Σ_j w_j² (x_ij − x̄_i)²)` over the k judges that rated the item,
            which is `s / √k` where all weigh the same; NaN for fewer than two.
        number: how many judges' ratings are in each item's.
        beyond: how many items lay beyond an end of the scale, and were put there.
    """

    ballots: Ballots
    how: How
    why_not: str
    common: CommonScale
    weights: Floats
    weights_range: tuple[Floats, Floats]
    score: Floats
    std_error: Floats
    number: Floats
    beyond: int


def panel_of(ballots: Ballots) -> Panel:
    """The mean of the judges' ratings on their common scale (`common_scale`), weighted where people's scores tell.

    A judge's weight is `w_j ∝ r_j / (1 − r_j²)`, r_j its correlation with people, at least 0 and at most `MOST`: the
    best weights for judges whose errors are independent (Bartlett 1937, factor scores). An item's weights come from
    labels of other documents only. It takes `LABELS` labelled items of `FEWEST` documents; else all weigh the same.

    >>> scores = np.array([[1, 2, 3, 4, 5] * 3, [2, 2, 3, 4, 4] * 3], dtype=float)
    >>> unknown = np.full(15, np.nan)
    >>> made = panel_of(Ballots(("a", "b"), scores, range(15), unknown, unknown, (1, 5)))
    >>> made.how, made.score[:5].round(2).tolist(), made.std_error[:2].round(2).tolist()
    ('standardized', [1.54, 1.95, 3.0, 4.05, 4.46], [0.17, 0.24])
    """
    common = common_scale(ballots.scores)
    carries = np.array([not why for why in common.why_not])
    equal = carries / max(carries.sum(), 1)
    if common.plain:
        few = "no judge tells the items apart" if ballots.scores.shape[1] >= 10 else "there are too few items"
        return _panel(ballots, "plain", f"{few}: scores are as the judges gave them", common, equal, equal[:, None])
    labelled = ~np.isnan(ballots.people) & ~np.isnan(common.ratings).all(axis=0)
    documents = len({ballots.documents[int(place)] for place in np.flatnonzero(labelled)})
    if carries.sum() < 2 or labelled.sum() < LABELS or documents < FEWEST:
        n = int(labelled.sum())
        need = f"{LABELS} items of {FEWEST} documents"
        why = f"weights need people's scores of {need}, and there are {n} of {documents}" if n else ""
        return _panel(ballots, "standardized", why, common, equal, equal[:, None])
    people = np.where(labelled, ballots.people, np.nan)
    fold = folds(drawn(people, people, ballots.documents))
    by_fold = np.array([_fitted(ballots.scores, people, carries, fold != each) for each in range(int(fold.max()) + 1)])
    everything = _fitted(ballots.scores, people, carries, np.ones(len(fold), dtype=bool))
    ends = (by_fold.min(axis=0), by_fold.max(axis=0))
    return _panel(ballots, "weighted", "", common, everything, by_fold[fold].T, ends)


def _fitted(scores: Floats, people: Floats, carries: Floats, some: Floats) -> Floats:
    """The judges' weights by people's scores of some items; the same for all where no judge goes along with people."""
    weights = np.zeros(len(scores))
    for j in np.flatnonzero(carries):
        both = some & ~np.isnan(people) & ~np.isnan(scores[j])
        x, y = scores[j][both], people[both]
        if both.sum() > 2 and min(x.std(), y.std()) > 1e-9:
            r = float(np.clip(np.corrcoef(x, y)[0, 1], 0, MOST))
            weights[j] = r / (1 - r * r)
    return np.asarray(weights / weights.sum() if weights.sum() else carries / carries.sum())


def _panel(
    ballots: Ballots,
    how: How,
    why_not: str,
    common: CommonScale,
    told: Floats,
    weights: Floats,
    ends: tuple[Floats, Floats] | None = None,
) -> Panel:
    rated = ~np.isnan(common.ratings)
    own = np.where(rated, np.broadcast_to(weights, rated.shape), 0.0)
    total = own.sum(axis=0)
    own = np.divide(own, total, out=np.zeros_like(own), where=total > 0)
    number = (own > 0).sum(axis=0)
    x = np.where(rated, common.ratings, 0.0)
    score = np.where(number > 0, (own * x).sum(axis=0), np.nan)
    squares = (own**2 * (x - np.nan_to_num(score)) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(number > 1, np.sqrt(number / (number - 1) * squares), np.nan)
    low, high = ballots.scale
    beyond = int(((score < low - 1e-9) | (score > high + 1e-9)).sum())
    return Panel(
        ballots, how, why_not, common, told, ends or (told, told), np.clip(score, low, high), error, number, beyond
    )
