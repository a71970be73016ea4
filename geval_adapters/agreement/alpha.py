"""Krippendorff's alpha: how far raters, or the replies of one judge, agree beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .levels import Score, numbers


def krippendorff_alpha(
    ratings: Sequence[Sequence[Score]], level: Literal["nominal", "ordinal", "interval"] = "ordinal"
) -> float | None:
    """Krippendorff's alpha: how far raters (or a judge's samples) agree with each other beyond chance.

    alpha = 1 - observed / expected disagreement, over the pairable values: those in units that two or more
    raters rated (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"). The disagreement of two
    values is 1 (nominal), their squared difference (interval), or the squared number of pairable values from
    one to the other, both ends counted half (ordinal).

    Args:
        ratings: raters by units; None or NaN where a rater did not rate a unit.
        level: level of measurement.

    Returns:
        alpha, 1 for perfect agreement and 0 for chance; None when there are fewer than two pairable values or
        when all of them are equal, since without variation alpha is undefined.

    Raises:
        ValueError: raters with different numbers of units, an infinite rating, or an unknown level.

    >>> round(krippendorff_alpha([[1, 2, 3, 3, None], [1, 2, 3, 4, 2]], "nominal"), 3)
    0.696
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise ValueError(f"unknown level {level!r}: choose nominal, ordinal or interval")
    lengths = sorted({len(row) for row in ratings})
    if len(lengths) > 1:
        raise ValueError(f"raters have different numbers of units: {lengths}")
    table = np.array([numbers(row) for row in ratings]).reshape(len(ratings), sum(lengths))
    table = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    rated = ~np.isnan(table)
    values, codes = np.unique(table[rated], return_inverse=True)
    if values.size < 2:
        return None
    by_unit = np.zeros((table.shape[1], values.size))
    np.add.at(by_unit, (np.nonzero(rated)[1], codes), 1)
    per_unit = by_unit.sum(axis=1, keepdims=True)
    coincidences = (by_unit / (per_unit - 1)).T @ by_unit
    coincidences -= np.diag((by_unit / (per_unit - 1)).sum(axis=0))
    totals = by_unit.sum(axis=0)
    if level == "nominal":
        distance = 1 - np.eye(values.size)
    else:
        position = values if level == "interval" else np.cumsum(totals) - totals / 2
        distance = (position[:, None] - position) ** 2
    expected = (np.outer(totals, totals) * distance).sum() / (totals.sum() - 1)
    return float(1 - (coincidences * distance).sum() / expected)
