"""The one figure with its interval, and the one bootstrap that makes intervals: documents are resampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from .coefficients import Ints

FEWEST = 6
"""Documents below which there is no interval: five that agree by chance all lie on one side once in sixteen times."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and how sure it is: the one value object for every number with an interval.

    Attributes:
        value: the figure, None where it is undefined.
        low, high: its interval, both None where there is none.
        n: what the figure rests on: items, documents or systems, as its owner says.
        method: how the interval was made, in words; "" without one.
        why_not: why there is no value, or no interval, in words; "" where there are both, or nobody asked for one.

    >>> Figure(0.5, 0.4, 0.6, 100, method="bootstrap over 20 documents")
    Figure(value=0.5, low=0.4, high=0.6, n=100, method='bootstrap over 20 documents', why_not='')
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str = ""
    why_not: str = ""


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
    if value is None:
        return Figure(None, None, None, n, why_not="undefined for these items" if n else "there are no items")
    if len(members) < FEWEST:
        few = f"no interval: it needs {FEWEST} documents, and there are {len(members)}"
        return Figure(value, None, None, n, why_not=few)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(members), size=(resamples, len(members)))
    figures = [statistic(np.concatenate([members[group] for group in row])) for row in drawn]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return Figure(value, None, None, n, why_not="no interval: undefined in every resample")
    # Hesterberg (2014, arXiv 1411.5279), expanded percentiles: with few groups the percentiles must lie farther out.
    m = len(members)
    tail = float(ndtr(stdtrit(m - 1, (1 - confidence) / 2) * math.sqrt(m / (m - 1))))
    low, high = np.quantile(known, [tail, 1 - tail])
    return Figure(value, float(low), float(high), n, f"bootstrap over {m} documents (expanded percentiles)")
