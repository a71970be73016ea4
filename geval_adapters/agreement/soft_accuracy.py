"""Soft pairwise accuracy: does a judge order systems as surely as people do."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from .intervals import Figure

Floats = npt.NDArray[np.float64]


def soft_pairwise_accuracy(
    judge: Sequence[float | None],
    people: Sequence[float | None],
    documents: Sequence[Hashable],
    systems: Sequence[Hashable],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Figure:
    """SPA = 1 − mean over pairs of systems of |p_people − p_judge| (Thompson et al. 2024, arXiv 2409.09598).

    p is the one-sided p-value of the first system being better, from a permutation test that swaps the two systems
    within documents: the share of swaps whose difference of means is at least the observed one, equal ones counting
    half. The documents that both systems have are compared, and judge and people are given the same swaps. A constant
    judge, all of whose p are .5, is at .5 where people are sure of every pair.

    Args:
        judge, people: scores of the same items; an item that misses one is left out.
        documents, systems: of each item.
        resamples: swaps to draw.
        seed: seed of the drawing.

    Returns:
        The accuracy; `n` counts pairs of systems. No value where no two systems share two documents.

    >>> people = [1, 2, 3, 1, 2, 3, 2, 2, 3, 1, 1, 3]
    >>> where = [d for d in "abcd" for _ in range(3)], [0, 1, 2] * 4
    >>> soft_pairwise_accuracy(people, people, *where).value
    1.0
    >>> round(soft_pairwise_accuracy([-each for each in people], people, *where).value, 2)
    0.11
    """
    columns = [np.array(side, dtype=np.float64) for side in (judge, people)]
    kept: list[int] = np.flatnonzero(~np.isnan(columns[0]) & ~np.isnan(columns[1])).tolist()
    names = [sorted({side[i] for i in kept}, key=str) for side in (documents, systems)]
    place = [{name: number for number, name in enumerate(each)} for each in names]
    tables = np.full((2, len(names[0]), len(names[1])), np.nan)
    for i in kept:
        tables[:, place[0][documents[i]], place[1][systems[i]]] = columns[0][i], columns[1][i]
    signs = 1.0 - 2.0 * np.random.default_rng(seed).integers(2, size=(resamples, len(names[0])))
    gaps = []
    for first in range(len(names[1])):
        differences = tables[:, :, first, None] - tables[:, :, first + 1 :]
        shared = ~np.isnan(differences[0])
        swapped = signs @ np.nan_to_num(differences)
        observed = np.nan_to_num(differences).sum(axis=1)[:, None, :]
        slack = 1e-9 * (1 + np.abs(observed))
        p = ((swapped > observed + slack) + 0.5 * (np.abs(swapped - observed) <= slack)).mean(axis=1)
        gaps += list(np.abs(p[0] - p[1])[shared.sum(axis=0) >= 2])
    if not gaps:
        return Figure(None, None, None, 0, why_not="undefined: no two systems share two documents")
    return Figure(1 - float(np.mean(gaps)), None, None, len(gaps), f"{resamples} swaps within documents")
