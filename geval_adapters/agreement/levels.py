"""How well a judge's scores agree with people's, and whether one judge agrees better than another.

Levels, after Chiang & Lee (2023, "A Closer Look into Automatic Evaluation Using LLMs", Appendix C):
*dataset* pools all items, *document* averages the coefficients of the single documents, *system* compares
the means of the systems. Inside this module a *figures* array has one row for each of the six fields of
`Level`, in their order; NaN stands for "undefined" there and never leaves the module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Score = float | None

_CELLS = 2_000_000  # numbers that one temporary array may hold
_CALIBRATION_ITEMS = 2048  # items whose pairs choose a tie threshold: 2 million pairs
_NOISE = 1e-12  # relative difference below which two computed numbers are the same
_TIE_SLACK = 1 + 1e-8  # a tie threshold reaches a little further, past the rounding of means of systems
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One figure with its interval.

    Attributes:
        value: the figure, or None where it is undefined; `note` then says why.
        low, high: bootstrap interval (percentile method); None without a value or without resamples.
        n: what the figure rests on: items (dataset), documents averaged (document) or systems (system).
        skipped: documents left out because one side is constant there; 0 at the other levels.
        value_constant_as_zero: the figure under the other policy, where a constant side makes a 0.
        note: what a reader must know about this figure, in words; "" if nothing.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    skipped: int
    value_constant_as_zero: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Level:
    """The six coefficients at one level: r, rho, τ-b and τ-c in [-1, 1], the two accuracies in [0, 1]."""

    pearson: Coefficient
    spearman: Coefficient
    kendall_b: Coefficient
    kendall_c: Coefficient
    pairwise_accuracy: Coefficient
    pairwise_accuracy_calibrated: Coefficient


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of one judge with people.

    Attributes:
        n: items used.
        missing: items left out because the prediction or the human score is None or NaN.
        dataset, document, system: the three levels; None where no documents or no systems were given.
        notes: what holds for the whole result, in words.
    """

    n: int
    missing: int
    dataset: Level
    document: Level | None
    system: Level | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dicts, lists, numbers, strings and None, ready for `json.dumps`."""
        return {**asdict(self), "notes": list(self.notes)}


_NAMES = tuple(field.name for field in fields(Level))


def agreement(
    predictions: Sequence[Score],
    humans: Sequence[Score],
    documents: Sequence[Hashable] | None = None,
    systems: Sequence[Hashable] | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Agreement:
    """Agreement between a judge's scores and people's at dataset, document and system level.

    Pearson r, Spearman rho (midranks), Kendall τ-b and τ-c are those of `scipy.stats`. Pairwise accuracy is
    acc_eq of Deutsch et al. (2023, "Ties Matter", arXiv:2305.14324): of all pairs, the share that both sides
    order alike or both tie. Its calibrated variant counts predictions that differ by at most ε as tied; ε
    maximises the figure itself, one ε for each level, and stands in `note`. Where more than 2,048 items form
    pairs, 2,048 of them, evenly spread over the predictions, choose ε; the accuracy is that of all pairs.

    Level "document" averages over documents. A correlation skips the documents where a side is constant, and
    counts them; accuracy is defined there and skips none. Documents of a single item take part in neither.

    Intervals resample documents (items when no documents are given): `resamples` rows of counts from
    `numpy.random.default_rng(seed).multinomial`, documents in their labels' order. Their figures are
    those of a plain loop over the resampled data: a document drawn twice counts twice, and at dataset level
    an item and its copy are a pair tied on both sides, which lifts resampled accuracies by up to one part in
    the number of items. ε keeps its full-data value in the resamples.

    Args:
        predictions: the judge's scores, one for each item, in any unit; None or NaN where there is none.
        humans: people's scores of the same items.
        documents: what each item was written for (the source text's id).
        systems: who wrote each item.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: seed of the resampling.
        confidence: share of the resamples that an interval holds, between 0 and 1.

    Raises:
        ValueError: different lengths, an infinite score, negative `resamples`, `confidence` outside (0, 1).

    >>> result = agreement([1, 2, 3, 3, 2, 4], [1, 2, 2, 4, 3, 5], ["a", "a", "a", "b", "b", "b"])
    >>> result.n, round(result.dataset.pearson.value, 3), round(result.document.kendall_b.value, 3)
    (6, 0.842, 0.908)
    >>> agreement([3, 3, 3], [1, 2, 3]).dataset.pearson.note
    'undefined: the predictions are constant'
    """
    if resamples < 0:
        raise ValueError(f"resamples must be 0 or more, not {resamples}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    _check_lengths(predictions=predictions, humans=humans, documents=documents, systems=systems)
    all_x, all_y = _numbers(predictions), _numbers(humans)
    kept = np.flatnonzero(~np.isnan(all_x) & ~np.isnan(all_y))
    missing = all_x.size - kept.size
    document = np.arange(kept.size) if documents is None else _codes(documents, kept)
    order = np.argsort(document, kind="stable")
    kept, document = kept[order], document[order]
    x, y = all_x[kept], all_y[kept]

    units = int(document.max(initial=-1)) + 1
    counts = np.ones((1, units))
    if resamples and units > 1:
        drawn = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=resamples)
        counts = np.concatenate([counts, drawn])
    alpha = (1 - confidence) / 2

    def pooled(part: Floats, threshold: float) -> Floats:
        return _pooled(x, y, document, part, threshold)

    dataset_level = _plain_level("items", x, y, pooled, counts, x.size, alpha)
    document_level = system_level = None
    notes = []
    if missing:
        notes.append(f"{missing} of {all_x.size} items have no prediction or no human score and are left out")
    if documents is None:
        notes.append("no documents given: no document level, and intervals resample items")
    else:
        document_level = _document_level(x, y, document, counts, alpha)
        if single := int((np.bincount(document) == 1).sum()):
            notes.append(f"documents with a single item, which take no part at document level: {single}")
    if systems is None:
        notes.append("no systems given: no system level")
    else:
        system = _codes(systems, kept)
        means_x, means_y, present = _system_means(x, y, document, system, counts[:1])

        def by_system(part: Floats, threshold: float) -> Floats:
            return _rows(*_system_means(x, y, document, system, part), threshold)

        cells = x.size + present.size**2
        system_level = _plain_level("systems", means_x[0], means_y[0], by_system, counts, cells, alpha)
    return Agreement(kept.size, missing, dataset_level, document_level, system_level, tuple(notes))


def _check_lengths(**columns: Sequence[Any] | None) -> None:
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        raise ValueError("different lengths: " + ", ".join(f"{n} {name}" for name, n in lengths.items()))


def _numbers(scores: Sequence[Score]) -> Floats:
    numbers = np.array([math.nan if score is None else float(score) for score in scores], dtype=np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"score {int(np.flatnonzero(np.isinf(numbers))[0])} is infinite")
    return numbers


def _codes(labels: Sequence[Hashable], kept: Ints) -> Ints:
    """Number the labels of the kept items from 0 in their own order, so that the items' order does not matter."""
    distinct = sorted({labels[i] for i in kept}, key=lambda label: (type(label).__name__, label))
    numbers = {label: number for number, label in enumerate(distinct)}
    return np.array([numbers[labels[i]] for i in kept], dtype=np.int64)


def _plain_level(
    what: str,
    x: Floats,
    y: Floats,
    figures_of: Callable[[Floats, float], Floats],
    counts: Floats,
    cells: int,
    alpha: float,
) -> Level:
    """Dataset level (x, y: the items) or system level (x, y: the means): one coefficient, no averaging."""
    n, threshold = x.size, _tie_threshold([(x, y)])
    figures, zeroed, why = np.full((6, len(counts)), np.nan), np.full(6, np.nan), f"fewer than two {what}"
    if n >= 2:
        figures = _chunked(lambda part: figures_of(part, threshold), counts, cells)
        zeroed = np.nan_to_num(figures[:, 0])
        sides = {"the predictions": x, "the human scores": y}
        why = " and ".join(side for side, values in sides.items() if np.ptp(values) == 0) + " are constant"
    remark = f"only two {what}: correlations are -1 or 1, accuracies 0 or 1" if n == 2 else ""
    return _level(figures, zeroed, np.full(6, n), np.zeros(6), why, remark, threshold, counts, alpha)


def _document_level(x: Floats, y: Floats, document: Ints, counts: Floats, alpha: float) -> Level:
    each, threshold = _each_document(x, y, document)
    defined = ~np.isnan(each)
    n, usable = defined.sum(axis=1), (np.bincount(document) >= 2).sum()
    why = "one side is constant in every document" if usable else "no document has two items"
    with np.errstate(invalid="ignore"):
        figures = (np.nan_to_num(each) @ counts.T) / (defined @ counts.T)
        zeroed = np.nan_to_num(figures[:, 0]) * (n / usable)
    return _level(figures, zeroed, n, usable - n, why, "", threshold, counts, alpha)


def _level(
    figures: Floats,
    zeroed: Floats,
    n: npt.NDArray[Any],
    skipped: npt.NDArray[Any],
    why: str,
    remark: str,
    threshold: float,
    counts: Floats,
    alpha: float,
) -> Level:
    """Give the figures (column 0: the data; the others: resamples) their names, and NaN its words."""
    coefficients = []
    for row, name in enumerate(_NAMES):
        value, resampled = figures[row, 0], figures[row, 1:]
        valid = resampled[~np.isnan(resampled)]
        low = high = None
        notes = [remark] if remark else []
        if np.isnan(value):
            notes = [f"undefined: {why}"]
        elif name == "pairwise_accuracy_calibrated":
            which = f"predictions at most {threshold:.6g} apart" if threshold else "only equal predictions"
            notes.append(f"{which} count as tied")
        if counts.shape[1] == 1:
            notes.append("no interval: a single document (or item) cannot be resampled")
        if valid.size and not np.isnan(value):
            low, high = (float(limit) for limit in np.quantile(valid, [alpha, 1 - alpha]))
            if valid.size < resampled.size:
                notes.append(f"{resampled.size - valid.size} resamples are undefined and not in the interval")
        shown, zero = (None if np.isnan(figure) else float(figure) for figure in (value, zeroed[row]))
        coefficients.append(Coefficient(shown, low, high, int(n[row]), int(skipped[row]), zero, "; ".join(notes)))
    return Level(*coefficients)


def _chunked(figures_of: Callable[[Any], Floats], rows: npt.NDArray[Any], cells: int) -> Floats:
    """Figures of all rows, a few rows at a time to bound memory; cells is what one row needs."""
    step = max(1, _CELLS // cells)
    return np.concatenate([figures_of(rows[i : i + step]) for i in range(0, len(rows), step)], axis=1)


def _pooled(x: Floats, y: Floats, document: Ints, counts: Floats, threshold: float) -> Floats:
    """Figures over all items (sorted by document), each item counted as often as its document.

    counts is resamples by documents. A sum over pairs is a quadratic form in the counts, Σ w_i w_j s_ij. Its
    diagonal is right as well: an item and its own copy are a pair that both sides tie.
    """
    weights = counts[:, document]
    rank_x, distinct_x, tied_x = _weighted_ranks(x, weights)
    rank_y, distinct_y, tied_y = _weighted_ranks(y, weights)
    first_items = np.searchsorted(document, np.arange(counts.shape[1]))
    sums = np.zeros((3, len(counts)))
    step = max(1, _CELLS // x.size)
    for start in range(0, x.size, step):
        block = slice(start, start + step)
        scores = _pair_scores(x[block, None], x, y[block, None], y, threshold)
        for total, score in zip(sums, scores, strict=True):
            by_document = np.add.reduceat(score, first_items, axis=1, dtype=np.float64)
            total += ((counts @ by_document.T) * weights[:, block]).sum(axis=1)
    pearson, spearman = _pearson(x, y, weights), _pearson(rank_x, rank_y, weights)
    sums = np.stack([*sums, tied_x, tied_y])
    return _figures(pearson, spearman, sums, weights.sum(axis=1), np.minimum(distinct_x, distinct_y))


def _rows(x: Floats, y: Floats, present: npt.NDArray[np.bool_], threshold: float) -> Floats:
    """Figures of each row of items on its own; x, y and present are rows by items."""
    pairs = present[:, :, None] & present[:, None, :]
    sides = [(side[:, :, None], side[:, None, :]) for side in (x, y)]
    scores = _pair_scores(*sides[0], *sides[1], threshold)
    tied = [(first == second) & pairs for first, second in sides]
    sums = np.stack([(score * pairs).sum(axis=(1, 2), dtype=np.float64) for score in (*scores, *tied)])
    # Items below minus items above is twice the midrank, up to a constant.
    rank_x, rank_y = ((_signs(*side) * pairs).sum(axis=2, dtype=np.float64) for side in sides)
    # Each of k tied items adds 1/k, so that the sum is the number of distinct values.
    distinct_x, distinct_y = (np.round((present / np.maximum(t.sum(axis=2), 1)).sum(axis=1)) for t in tied)
    weights = present.astype(np.float64)
    pearson, spearman = _pearson(x, y, weights), _pearson(rank_x, rank_y, weights)
    return _figures(pearson, spearman, sums, weights.sum(axis=1), np.minimum(distinct_x, distinct_y))


def _figures(pearson: Floats, spearman: Floats, sums: Floats, n: Floats, distinct: Floats) -> Floats:
    """Put together the figures of each column: n items, `distinct` values on the side that has fewer.

    sums are over ordered pairs, each item with itself included: the three of `_pair_scores`, tied in x, tied
    in y. With P = n(n-1)/2 pairs, S = concordant - discordant and m = distinct:
    τ-b = S / √((P - tied_x)(P - tied_y)) (Kendall 1945) and τ-c = 2 S m / (n² (m - 1)) (Stuart 1953).
    """
    pairs = n * (n - 1) / 2
    concordance = sums[0] / 2
    agreeing, calibrated, tied_x, tied_y = (sums[1:] - n) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        kendall_b = concordance / np.sqrt((pairs - tied_x) * (pairs - tied_y))
        kendall_c = 2 * concordance * distinct / (n**2 * (distinct - 1))
        accuracies = np.stack([agreeing, calibrated]) / pairs
    correlations = np.clip(np.stack([pearson, spearman, kendall_b, kendall_c]), -1, 1)
    correlations[:, distinct < 2] = np.nan
    return np.concatenate([correlations, accuracies])


def _pair_scores(x1: Floats, x2: Floats, y1: Floats, y2: Floats, threshold: float) -> tuple[npt.NDArray[Any], ...]:
    """Of each pair: product of the signs; whether the sides agree; whether they do after tie calibration."""
    sign_x, sign_y = _signs(x1, x2), _signs(y1, y2)
    near = np.abs(x1 - x2) <= threshold
    calibrated = np.where(near, sign_y == 0, sign_x == sign_y)
    return sign_x * sign_y, sign_x == sign_y, calibrated


def _signs(a: Floats, b: Floats) -> npt.NDArray[np.int8]:
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)


def _weighted_ranks(values: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """For each row of weights: midranks (up to a constant), distinct values, and ordered pairs that tie."""
    distinct, codes = np.unique(values, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(distinct.size))
    copies = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(copies, axis=1) - copies / 2
    return ranks[:, codes], (copies > 0).sum(axis=1).astype(np.float64), (copies**2).sum(axis=1)


def _pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted r of each row; centred and scaled before squaring, so that no unit of scores is too small."""
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1)
    dx = x - (weights * x).sum(axis=1, keepdims=True) / total
    dy = y - (weights * y).sum(axis=1, keepdims=True) / total
    dx, dy = (d / np.maximum(np.abs(d).max(axis=1, keepdims=True), _TINY) for d in (dx, dy))
    xy, xx, yy = (np.einsum("ij,ij,ij->i", weights, a, b) for a, b in ((dx, dy), (dx, dx), (dy, dy)))
    with np.errstate(divide="ignore", invalid="ignore"):
        r: Floats = xy / np.sqrt(xx) / np.sqrt(yy)
    return r


def _each_document(x: Floats, y: Floats, document: Ints) -> tuple[Floats, float]:
    """Figures of the single documents (items sorted by document), and their common tie threshold."""
    sizes = np.bincount(document)
    starts = np.cumsum(sizes) - sizes
    slices = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    threshold = _tie_threshold([(x[items], y[items]) for items in slices])
    each = np.full((6, sizes.size), np.nan)
    for size in np.unique(sizes[sizes >= 2]):
        members = np.flatnonzero(sizes == size)
        items = starts[members, None] + np.arange(size)
        each[:, members] = _chunked(
            lambda part: _rows(x[part], y[part], np.ones(part.shape, dtype=bool), threshold), items, size**2
        )
    return each, threshold


def _system_means(
    x: Floats, y: Floats, document: Ints, system: Ints, counts: Floats
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Resamples by systems: the means of both sides, and which systems the resample holds."""
    order = np.argsort(system, kind="stable")
    starts = np.searchsorted(system[order], np.arange(system.max(initial=-1) + 1))
    weights = counts[:, document[order]]
    items = np.add.reduceat(weights, starts, axis=1)
    means = []
    for values in (x, y):
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        unit = high - low if high > low else 1.0
        shares = (values - low)[order] / unit
        # Equal means of differently ordered terms differ in the last bits; rounding lets them tie.
        mean = np.round(np.add.reduceat(weights * shares, starts, axis=1) / np.maximum(items, 1), 12)
        means.append(mean * unit)  # the zero point does not matter to any figure
    return means[0], means[1], items > 0


def _tie_threshold(groups: Iterable[tuple[Floats, Floats]]) -> float:
    """The ε ≥ 0 that maximises the mean, over the groups, of the calibrated pairwise accuracy."""
    differences, gains = [np.zeros(1)], [np.zeros(1)]
    for x, y in groups:
        order = np.argsort(x, kind="stable")[:: max(1, -(-x.size // _CALIBRATION_ITEMS))]
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
