"""Whether judges go together: correlations of many columns at once, and how many judges like-minded ones are worth."""

from __future__ import annotations

import numpy as np

from .intervals import Floats


def correlations(columns: Floats, weights: Floats) -> Floats:
    """Weighted Pearson r between each two of some columns (columns by items), for rows of weights: rows by columns by
    columns; NaN where a column is constant.

    >>> correlations(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]), np.ones((1, 3)))[0].round(3).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    centred = columns - columns.mean(axis=1, keepdims=True)
    centred = centred / np.maximum(np.abs(centred).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    total = np.maximum(weights.sum(axis=1), 1e-12)
    means = weights @ centred.T / total[:, None]
    products = np.stack([weights @ (one * centred).T for one in centred], axis=1) / total[:, None, None]
    covariance = products - means[:, :, None] * means[:, None, :]
    variance = np.einsum("rii->ri", covariance)
    spread = np.sqrt(np.where(variance > 1e-12, variance, np.nan))
    return np.asarray(np.clip(covariance / (spread[:, :, None] * spread[:, None, :]), -1, 1))


def mean_of_pairs(matrices: Floats) -> Floats:
    """The mean over each two columns, for matrices as `correlations` gives them.

    >>> mean_of_pairs(np.array([[[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]]])).round(3).tolist()
    [0.4]
    """
    above = np.triu_indices(matrices.shape[1], k=1)
    return np.asarray(matrices[:, above[0], above[1]].mean(axis=1))


def effective_number(k: int, r: float | None) -> float | None:
    """`k / (1 + (k − 1)·r)`: judges with independent errors that k are worth whose errors correlate by r on average.

    None where r is not known, or as far below 0 as no k errors can be for long.

    >>> effective_number(3, 0.5), effective_number(3, -0.5)
    (1.5, None)
    """
    if r is None or 1 + (k - 1) * r <= 1e-9:
        return None
    return k / (1 + (k - 1) * r)
