"""Coefficients of agreement, for many resamples at once: rows of weights in, one figure a row out; NaN is undefined.

A weight says how often an item is there. SciPy has all of these coefficients but takes no weights; a loop over its
functions gives the same to 1e-13 and takes some 500 times as long (`benchmarks/agreement.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .intervals import CELLS, Floats

Ints = npt.NDArray[np.int64]

NOISE = 1e-12
"""Relative difference below which two computed numbers are the same."""
CALIBRATION_ITEMS = 2048
"""Items whose pairs choose a tie threshold: 2 million pairs."""
_TIE_SLACK = 1 + 1e-8  # a tie threshold reaches a little further, past the rounding of means of systems
_TINY = np.finfo(np.float64).tiny


class Coefficients(NamedTuple):
    """The six coefficients, one number for each row of weights."""

    pearson: Floats
    spearman: Floats
    kendall_b: Floats
    kendall_c: Floats
    pairwise_accuracy: Floats
    pairwise_accuracy_calibrated: Floats


# --- single coefficients ---------------------------------------------------------------------------------------------


def mean(values: Floats, weights: Floats) -> Floats:
    """The weighted mean of each row.

    >>> mean(np.array([1.0, 4.0]), np.array([[1.0, 1.0], [2.0, 1.0]])).tolist()
    [2.5, 2.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


def pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted r of each row; centred and scaled before squaring, so that no unit of scores is too small.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.ones((1, 3))).round(3).tolist()
    [0.5]
    """
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1)
    dx = x - (weights * x).sum(axis=1, keepdims=True) / total
    dy = y - (weights * y).sum(axis=1, keepdims=True) / total
    dx, dy = (d / np.maximum(np.abs(d).max(axis=1, keepdims=True), _TINY) for d in (dx, dy))
    xy, xx, yy = (np.einsum("ij,ij,ij->i", weights, a, b) for a, b in ((dx, dy), (dx, dx), (dy, dy)))
    with np.errstate(divide="ignore", invalid="ignore"):
        r: Floats = xy / np.sqrt(xx) / np.sqrt(yy)
    return r


def spearman(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted Spearman's ρ of each row: Pearson's r of the midranks.

    >>> spearman(np.array([1.0, 2.0, 9.0]), np.array([1.0, 3.0, 2.0]), np.ones((1, 3))).round(3).tolist()
    [0.5]
    """
    one, other = weighted_ranks(x, weights), weighted_ranks(y, weights)
    return np.where(np.minimum(one.distinct, other.distinct) > 1, pearson(one.ranks, other.ranks, weights), np.nan)


def alpha(table: Floats, weights: Floats) -> Floats:
    """Weighted Krippendorff's α for interval data of each row; a unit that is there twice is two units.

    Args:
        table: raters by units, NaN where one did not rate; see `alpha.krippendorff_alpha`.
        weights: rows by units.

    >>> alpha(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]]), np.ones((1, 3))).round(3).tolist()
    [0.878]
    """
    rated = ~np.isnan(table)
    raters = rated.sum(axis=0)
    values = np.where(rated, table - (table[rated].mean() if rated.any() else 0.0), 0.0)
    sums, squares = values.sum(axis=0), (values**2).sum(axis=0)
    within = 2 * (raters * squares - sums**2) / np.maximum(raters - 1, 1)
    n, s, q, observed = (weights @ np.where(raters >= 2, each, 0.0) for each in (raters, sums, squares, within))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = 2 * (n * q - s**2) / (n - 1)
        return np.asarray(np.where(expected > NOISE * n * q, 1 - observed / expected, np.nan))


def kendall(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted Kendall's τ-b of each row: `Σ w_i w_j s_ij / √(pairs not tied in x · pairs not tied in y)`.

    >>> kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.ones((1, 3))).round(3).tolist()
    [0.333]
    """
    sums = np.zeros((3, len(weights)))
    step = max(1, CELLS // max(1, x.size))
    for start in range(0, x.size, step):
        block = slice(start, start + step)
        sign_x, sign_y = signs(x[block, None], x), signs(y[block, None], y)
        for total, score in zip(sums, (sign_x * sign_y, np.abs(sign_x), np.abs(sign_y)), strict=True):
            total += ((weights @ score.T.astype(np.float64)) * weights[:, block]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        tau: Floats = sums[0] / np.sqrt(sums[1] * sums[2])
    return tau


class Ranks(NamedTuple):
    """Midranks up to a constant (rows by items), distinct values and ordered pairs that tie (each by row)."""

    ranks: Floats
    distinct: Floats
    tied: Floats


def weighted_ranks(values: Floats, weights: Floats) -> Ranks:
    """Midranks of items that are there as often as each row of weights says."""
    distinct, codes = np.unique(values, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(distinct.size))
    copies = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(copies, axis=1) - copies / 2
    return Ranks(ranks[:, codes], (copies > 0).sum(axis=1).astype(np.float64), (copies**2).sum(axis=1))


# --- all six ---------------------------------------------------------------------------------------------------------


def of_documents(x: Floats, y: Floats, document: Ints, counts: Floats, threshold: float) -> Coefficients:
    """Coefficients over all items (sorted by document), each item counted as often as its document.

    counts is resamples by documents. A sum over pairs is a quadratic form in the counts, Σ w_i w_j s_ij. Its
    diagonal is right as well: an item and its own copy are a pair that both sides tie.
    """
    weights = counts[:, document]
    one, other = weighted_ranks(x, weights), weighted_ranks(y, weights)
    first_items = np.searchsorted(document, np.arange(counts.shape[1]))
    sums = np.zeros((3, len(counts)))
    step = max(1, CELLS // x.size)
    for start in range(0, x.size, step):
        block = slice(start, start + step)
        scores = _pair_scores(x[block, None], x, y[block, None], y, threshold)
        for total, score in zip(sums, scores, strict=True):
            by_document = np.add.reduceat(score, first_items, axis=1, dtype=np.float64)
            total += ((counts @ by_document.T) * weights[:, block]).sum(axis=1)
    r, rho = pearson(x, y, weights), pearson(one.ranks, other.ranks, weights)
    sums = np.stack([*sums, one.tied, other.tied])
    return _coefficients(r, rho, sums, weights.sum(axis=1), np.minimum(one.distinct, other.distinct))


def of_rows(x: Floats, y: Floats, present: npt.NDArray[np.bool_], threshold: float) -> Coefficients:
    """Coefficients of each row of items on its own; x, y and present are rows by items."""
    pairs = present[:, :, None] & present[:, None, :]
    sides = [(side[:, :, None], side[:, None, :]) for side in (x, y)]
    scores = _pair_scores(*sides[0], *sides[1], threshold)
    tied = [(first == second) & pairs for first, second in sides]
    sums = np.stack([(score * pairs).sum(axis=(1, 2), dtype=np.float64) for score in (*scores, *tied)])
    # Items below minus items above is twice the midrank, up to a constant.
    rank_x, rank_y = ((signs(*side) * pairs).sum(axis=2, dtype=np.float64) for side in sides)
    # Each of k tied items adds 1/k, so that the sum is the number of distinct values.
    distinct_x, distinct_y = (np.round((present / np.maximum(t.sum(axis=2), 1)).sum(axis=1)) for t in tied)
    weights = present.astype(np.float64)
    r, rho = pearson(x, y, weights), pearson(rank_x, rank_y, weights)
    return _coefficients(r, rho, sums, weights.sum(axis=1), np.minimum(distinct_x, distinct_y))


def _coefficients(r: Floats, rho: Floats, sums: Floats, n: Floats, distinct: Floats) -> Coefficients:
    """Put together the coefficients of each column: n items, `distinct` values on the side that has fewer.

    sums are over ordered pairs, each item with itself included: the three of `_pair_scores`, tied in x, tied
    in y. With P = n(n-1)/2 pairs, S = concordant - discordant and m = distinct:
    τ-b = S / √((P - tied_x)(P - tied_y)) (Kendall 1945) and τ-c = 2 S m / (n² (m - 1)) (Stuart 1953).
    """
    pairs = n * (n - 1) / 2
    concordance = sums[0] / 2
    agreeing, calibrated, tied_x, tied_y = (sums[1:] - n) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        tau_b = concordance / np.sqrt((pairs - tied_x) * (pairs - tied_y))
        tau_c = 2 * concordance * distinct / (n**2 * (distinct - 1))
        accuracies = [agreeing / pairs, calibrated / pairs]
    correlations = [np.where(distinct < 2, np.nan, np.clip(each, -1, 1)) for each in (r, rho, tau_b, tau_c)]
    return Coefficients(*correlations, *accuracies)


def _pair_scores(x1: Floats, x2: Floats, y1: Floats, y2: Floats, threshold: float) -> tuple[npt.NDArray[Any], ...]:
    """Of each pair: product of the signs; whether the sides agree; whether they do after tie calibration."""
    sign_x, sign_y = signs(x1, x2), signs(y1, y2)
    near = np.abs(x1 - x2) <= threshold
    calibrated = np.where(near, sign_y == 0, sign_x == sign_y)
    return sign_x * sign_y, sign_x == sign_y, calibrated


def signs(a: Floats, b: Floats) -> npt.NDArray[np.int8]:
    """The sign of a − b."""
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)


def tie_threshold(groups: Iterable[tuple[Floats, Floats]]) -> float:
    """The ε ≥ 0 that maximises the mean, over the groups, of the calibrated pairwise accuracy."""
    differences, gains = [np.zeros(1)], [np.zeros(1)]
    for x, y in groups:
        order = np.argsort(x, kind="stable")[:: max(1, -(-x.size // CALIBRATION_ITEMS))]
        i, j = np.triu_indices(order.size, 1)
        dx, dy = x[order[j]] - x[order[i]], y[order[j]] - y[order[i]]
        # Tying a pair wins it where people tie, and loses it where it was ordered as people order it.
        gain = (dy == 0).astype(float) - ((dx > 0) & (dy > 0))
        differences.append(dx)
        gains.append(gain / max(1, gain.size))
    dx = np.concatenate(differences)
    order = np.argsort(dx, kind="stable")
    dx = dx[order]
    accuracy = np.round(np.cumsum(np.concatenate(gains)[order]), 12)
    complete = np.append(dx[1:] > dx[:-1] * _TIE_SLACK, True)  # equal differences tie together or not at all
    return float(dx[np.argmax(np.where(complete, accuracy, -np.inf))] * _TIE_SLACK)
