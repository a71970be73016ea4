"""The one figure with its interval, and the one bootstrap behind it: documents are resampled, never single items."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Floats = npt.NDArray[np.float64]
T = TypeVar("T", bound=np.generic)

FEWEST = 6
"""Documents below which there is no interval: five that agree by chance all lie on one side once in sixteen times."""
RESAMPLES = 1000
CELLS = 2_000_000
"""Numbers that one temporary array may hold."""
ANYWHERE = (-math.inf, math.inf)


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


@dataclass(frozen=True, slots=True)
class Resampled:
    """A statistic of the data and of resamples of them.

    Attributes:
        value: that of the data; NaN where it is undefined.
        draws: those of the resamples, NaN among them where undefined; empty where nothing was resampled.
        n: what it rests on: items, documents averaged, or systems.
        skipped: documents left out because one side is constant there.
    """

    value: float
    draws: Floats
    n: int
    skipped: int = 0


def resample(units: int, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """How often each of some units (documents) is in the data, in the first row, and in the resamples after it.

    >>> resample(6, 2).tolist()
    [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0, 4.0, 1.0], [2.0, 1.0, 1.0, 1.0, 1.0, 0.0]]
    """
    data = np.ones((1, units))
    if not resamples or units < FEWEST:
        return data
    drawn = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=resamples)
    return np.concatenate([data, drawn])


def interval(
    resampled: Resampled,
    units: int,
    *,
    confidence: float = 0.95,
    within: tuple[float, float] = ANYWHERE,
    what: str = "documents",
) -> Figure:
    """The figure of a resampled statistic: `value ± t(units − 1) · √(units / (units − 1)) · sd(draws)`.

    Student's t with the bootstrap's standard error, whose factor undoes the bias of few units (Hesterberg 2014, arXiv
    1411.5279, §4). Of nominal 95 % intervals over documents of five items, scored from 1 to 5, this many held the truth
    (in brackets percentiles of the same resamples; `benchmarks/agreement.py`):

    | documents | mean difference | r | document-level τ-b | α |
    | --: | --- | --- | --- | --- |
    | 6 | .94 (.86) | .96 (.88) | .91 (.82) | .97 (.85) |
    | 12 | .95 (.90) | .95 (.92) | .92 (.89) | .95 (.91) |
    | 50 | .96 (.94) | .94 (.93) | .95 (.95) | .94 (.93) |

    Where nearly all scores are equal no kind holds its level for correlations and α below some fifty documents: too few
    documents differ. Means keep it.

    Args:
        resampled: the statistic.
        units: how many documents were resampled; from `FEWEST` on there is an interval.
        confidence: how often the interval should hold the truth.
        within: the statistic's range, where the interval ends.
        what: what the units are called.

    >>> interval(Resampled(3.5, np.array([3.0, 4.0, 3.25, 3.75]), 6), 6)
    Figure(value=3.5, low=2.3..., high=4.6..., n=6, method='t(5), bootstrap over 6 documents', why_not='')
    >>> interval(Resampled(3.5, np.array([]), 4), 4).why_not
    'no interval: it needs 6 documents, and there are 4'
    """
    value, n = resampled.value, resampled.n
    if math.isnan(value):
        return Figure(None, None, None, n, why_not="undefined for these items" if n else "there are no items")
    if units < FEWEST:
        why_not = f"no interval: it needs {FEWEST} {what}, and there {'is' if units == 1 else 'are'} {units}"
        return Figure(value, None, None, n, why_not=why_not)
    if not resampled.draws.size:
        return Figure(value, None, None, n)
    known = resampled.draws[~np.isnan(resampled.draws)]
    if 2 * known.size < resampled.draws.size:
        return Figure(value, None, None, n, why_not="no interval: undefined in most resamples")
    reach = float(stdtrit(units - 1, (1 + confidence) / 2) * math.sqrt(units / (units - 1)) * known.std())
    method = f"t({units - 1}), bootstrap over {units} {what}"
    return Figure(value, max(within[0], value - reach), min(within[1], value + reach), n, method)


def bootstrap(
    statistic: Callable[[Floats], Floats],
    documents: Sequence[Hashable],
    *,
    within: tuple[float, float] = ANYWHERE,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Figure:
    """A statistic of items, with an interval that resamples the documents which the items belong to.

    Args:
        statistic: takes rows of weights (how often each item is there) and returns one figure a row, NaN where it is
            undefined.
        documents: the document of each item.
        within, confidence: see `interval`.
        resamples: how many; 0 for no interval.
        seed: seed of the resampling.

    >>> scores = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> figure = bootstrap(lambda weights: weights @ scores / weights.sum(axis=1), range(6))
    >>> figure.value, round(figure.low, 1), round(figure.high, 1), figure.n
    (3.5, 1.6, 5.4, 6)
    """
    codes = {document: code for code, document in enumerate(dict.fromkeys(documents))}
    if not codes:
        return interval(Resampled(math.nan, np.array([]), 0), 0)
    document = np.array([codes[each] for each in documents])
    counts = resample(len(codes), resamples, seed)
    figures = np.concatenate([statistic(rows[:, document]) for rows in chunks(counts, document.size)])
    return interval(
        Resampled(float(figures[0]), figures[1:], document.size), len(codes), confidence=confidence, within=within
    )


def chunks(rows: npt.NDArray[T], cells: int) -> Iterator[npt.NDArray[T]]:
    """A few rows at a time, to bound memory; cells is what one row needs."""
    step = max(1, CELLS // max(1, cells))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]
