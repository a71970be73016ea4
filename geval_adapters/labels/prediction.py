"""People's scores predicted from a judge's, for each document from labels of other documents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FOLDS = 10
MOST = 1e100
"""What is larger could not be squared."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Items with the judge's scores, of which some were drawn for labelling.

    Attributes:
        scores, labels: one for each item, NaN where there is none.
        document: the number of each item's document, below `groups`.
        groups: how many documents there are.
        labelled: the places of the items that have a label.
        weights: 1 / probability of being drawn, of each labelled item; only their ratios count.
    """

    scores: Floats
    labels: Floats
    document: Ints
    groups: int
    labelled: Ints
    weights: Floats

    @property
    def n(self) -> int:
        """Labels."""
        return len(self.labelled)

    @property
    def filled(self) -> Floats:
        """The scores, with their mean where there is none."""
        missing = np.isnan(self.scores)
        if not missing.any():
            return self.scores
        return np.where(missing, 0.0 if missing.all() else self.scores[~missing].mean(), self.scores)

    def part(self, places: Ints) -> Drawn:
        """Some of the items, in the same documents."""
        where = np.full(len(self.scores), -1, dtype=np.int64)
        where[places] = np.arange(len(places))
        kept = where[self.labelled] >= 0
        return Drawn(
            self.scores[places], self.labels[places], self.document[places], self.groups,
            where[self.labelled[kept]], self.weights[kept],
        )  # fmt: skip

    def slope(self) -> float:
        """PPI++'s λ for a mean over all M items: Cov_n(Y, f) / Var_M(f), held in [0, M / (M − n)].

        The published λ multiplies the mean over the N = M − n unlabelled items, so that it is N / M of this one and
        lies in [0, 1] (Angelopoulos et al. 2023, §6).
        """
        x, y, weights = self.filled[self.labelled], self.labels[self.labelled], self.weights
        size, total = len(self.scores), weights.sum()
        variance = float(self.filled.var(ddof=1)) if size > 1 else 0.0
        if variance < 1e-12:
            return 0.0
        covariance = float(weights @ ((x - weights @ x / total) * y)) / total
        return float(min(max(covariance / variance, 0.0), size / max(size - self.n, 1)))


def drawn(
    scores: Sequence[float | None] | Floats,
    labels: Sequence[float | None] | Floats,
    documents: Sequence[Hashable],
    probabilities: Sequence[float | None] | Floats | None = None,
) -> Drawn:
    """Items from columns of equal length.

    Raises:
        ValueError: different lengths, an infinite value, no document, or a label whose probability is not in (0, 1].
    """
    columns = {"scores": np.asarray(scores, dtype=np.float64), "labels": np.asarray(labels, dtype=np.float64)}
    if probabilities is not None:
        columns["probabilities"] = np.asarray(probabilities, dtype=np.float64)
    lengths = {**{name: len(column) for name, column in columns.items()}, "documents": len(documents)}
    if len(set(lengths.values())) > 1:
        raise ValueError("different lengths: " + ", ".join(f"{n} {name}" for name, n in lengths.items()))
    for name, column in columns.items():
        if column.ndim != 1:
            raise ValueError(f"{name} must be one number for each item, got an array of shape {column.shape}")
        if (large := np.flatnonzero(np.abs(column) > MOST)).size:
            raise ValueError(f"{name}: item {int(large[0])} is infinite, or as good as that")
    if nowhere := [place for place, name in enumerate(documents) if name != name]:
        raise ValueError(f"documents: item {nowhere[0]} has NaN")
    labelled = np.flatnonzero(~np.isnan(columns["labels"]))
    weights = np.ones(len(labelled))
    if probabilities is not None:
        given = columns["probabilities"][labelled]
        if wrong := [int(place) for place, p in zip(labelled, given, strict=True) if not 0 < p <= 1]:
            raise ValueError(f"item {wrong[0]} has a label, but no probability above 0 and up to 1 of being drawn")
        weights = given.min(initial=1.0) / given  # only their ratios count
    numbers = {name: number for number, name in enumerate(_ordered(documents))}
    document = np.fromiter((numbers[name] for name in documents), dtype=np.int64, count=len(documents))
    return Drawn(columns["scores"], columns["labels"], document, len(numbers), labelled, weights)


def _ordered(documents: Sequence[Hashable]) -> list[Hashable]:
    """The documents in an order that does not depend on the items'."""
    names = set(documents)
    try:
        return sorted(names, key=lambda name: (type(name).__name__, name))
    except TypeError:  # such as tuples, of which one holds None
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def folds(items: Drawn) -> Ints:
    """A fold for each item: documents are dealt out at random, those with labels evenly; always alike."""
    labelled = np.bincount(items.document[items.labelled], minlength=items.groups) > 0
    order = np.random.default_rng(0).permutation(items.groups)
    order = np.concatenate([order[labelled[order]], order[~labelled[order]]])
    count = min(FOLDS, max(int(labelled.sum()), 1))
    of_document = np.empty(items.groups, dtype=np.int64)
    of_document[order] = np.arange(items.groups) % count
    return of_document[items.document]


def cross_fitted(items: Drawn, fit: Callable[[npt.NDArray[np.bool_], Floats], Floats]) -> Floats:
    """Predictions of all items, each fold's by `fit` from the labels of the other folds.

    Args:
        items: with labels of two documents at the least; from those of a single one, that one predicts itself.
        fit: takes which of the labelled items it may look at, and the scores to predict from.
    """
    fold, scores = folds(items), items.filled
    predictions = np.empty(len(scores))
    for number in range(int(fold.max()) + 1):
        here = fold == number
        others = fold[items.labelled] != number
        predictions[here] = fit(others if others.any() else ~others, scores[here])
    return predictions


def line(items: Drawn) -> Floats:
    """Predictions by a straight line through the labels (weighted least squares), cross-fitted over documents."""
    x, y = items.filled[items.labelled], items.labels[items.labelled]

    def fit(some: npt.NDArray[np.bool_], scores: Floats) -> Floats:
        weights = items.weights[some] / items.weights[some].sum()
        mean_x, mean_y = (float(weights @ each[some]) for each in (x, y))
        spread = float(weights @ (x[some] - mean_x) ** 2)
        slope = float(weights @ ((x[some] - mean_x) * y[some])) / spread if spread > 1e-12 else 0.0
        return np.asarray(mean_y + max(slope, 0.0) * (scores - mean_x))

    return cross_fitted(items, fit)


def isotonic(items: Drawn) -> Floats:
    """Predictions E[Y | f] by isotonic regression, cross-fitted over documents: the judge calibrated to people.

    Between two scores that have labels it goes straight, beyond them it stays level. An item that the judge did not
    score is predicted by the mean of the labels.
    """
    x, y = items.filled[items.labelled], items.labels[items.labelled]

    def fit(some: npt.NDArray[np.bool_], scores: Floats) -> Floats:
        steps, place = np.unique(x[some], return_inverse=True)
        weights = np.bincount(place, items.weights[some])
        means = np.bincount(place, items.weights[some] * y[some]) / weights
        return np.asarray(np.interp(scores, steps, isotonic_regression(means, weights=weights).x))

    return cross_fitted(items, fit)
