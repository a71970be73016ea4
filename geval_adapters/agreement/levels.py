"""How well a judge's scores agree with people's, and whether one judge agrees better than another.

Levels, after Chiang & Lee (2023, "A Closer Look into Automatic Evaluation Using LLMs", Appendix C):
*dataset* pools all items, *document* averages the coefficients of the single documents, *system* compares
the means of the systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .coefficients import Coefficients, Ints, of_documents, of_rows, tie_threshold
from .intervals import RESAMPLES, Figure, Floats, Resampled, chunks, interval, resample

Score = float | None


@dataclass(frozen=True, slots=True)
class Coefficient(Figure):
    """A figure of agreement; n counts items (dataset), documents averaged (document) or systems (system).

    Attributes:
        skipped: documents left out because one side is constant there; 0 at the other levels.
        value_constant_as_zero: the figure under the other policy, where a constant side makes a 0.
        note: all that a reader must know about this figure, in words; "" if nothing.
    """

    skipped: int = 0
    value_constant_as_zero: float | None = None
    note: str = ""


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


assert tuple(field.name for field in fields(Level)) == Coefficients._fields


def agreement(
    predictions: Sequence[Score],
    humans: Sequence[Score],
    documents: Sequence[Hashable] | None = None,
    systems: Sequence[Hashable] | None = None,
    *,
    resamples: int = RESAMPLES,
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

    Intervals resample documents (items when no documents are given), as `intervals.interval` does; none for fewer
    than six. At system level they resample systems, too. The figures of a resample are those of a plain loop over
    the resampled data: a document drawn twice counts twice, and at dataset level an item and its copy are a pair
    tied on both sides. ε keeps its full-data value in the resamples. Intervals end at the coefficients' limits.

    Args:
        predictions: the judge's scores, one for each item, in any unit; None or NaN where there is none.
        humans: people's scores of the same items.
        documents: what each item was written for (the source text's id).
        systems: who wrote each item.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: seed of the resampling.
        confidence: how often an interval should hold the truth, between 0 and 1.

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
    check_lengths(predictions=predictions, humans=humans, documents=documents, systems=systems)
    all_x, all_y = numbers(predictions), numbers(humans)
    kept = np.flatnonzero(~np.isnan(all_x) & ~np.isnan(all_y))
    missing = all_x.size - kept.size
    document = np.arange(kept.size) if documents is None else codes(documents, kept)
    order = np.argsort(document, kind="stable")
    kept, document = kept[order], document[order]
    items = _Items(all_x[kept], all_y[kept], document)
    counts = resample(int(document.max(initial=-1)) + 1, resamples, seed)
    what = "items" if documents is None else "documents"
    level = partial(_level, confidence=confidence)

    notes = []
    if missing:
        notes.append(f"{missing} of {all_x.size} items have no prediction or no human score and are left out")
    document_level = system_level = None
    dataset_level = level(*_dataset(items, counts, what))
    if documents is None:
        notes.append("no documents given: no document level, and intervals resample items")
    else:
        document_level = level(*_documents(items, counts))
        if single := int((np.bincount(document) == 1).sum()):
            notes.append(f"documents with a single item, which take no part at document level: {single}")
    if systems is None:
        notes.append("no systems given: no system level")
    else:
        system_level = level(*_systems(items, codes(systems, kept), counts, what, seed))
    return Agreement(kept.size, missing, dataset_level, document_level, system_level, tuple(notes))


class _Items(NamedTuple):
    """Scores of both sides, sorted by document, which are numbered from 0."""

    x: Floats
    y: Floats
    document: Ints


@dataclass(frozen=True)
class _Words:
    """What a level says of its figures: what was resampled, why one is undefined, and the tie threshold."""

    resampled: str
    units: Mapping[str, int]
    undefined: str
    threshold: float
    remark: str = ""
    computable: bool = True


def _level(resampled: Mapping[str, Resampled], words: _Words, *, confidence: float) -> Level:
    """Give figures their intervals and their words."""
    made = []
    for name, each in resampled.items():
        range_ = (0.0, 1.0) if name.startswith("pairwise") else (-1.0, 1.0)
        figure = interval(each, words.units[name], confidence=confidence, within=range_, what=words.resampled)
        notes = [words.remark] if words.remark else []
        why_not = f"undefined: {words.undefined}" if figure.value is None else figure.why_not
        if figure.value is not None and name == "pairwise_accuracy_calibrated":
            ties = f"predictions at most {words.threshold:.6g} apart" if words.threshold else "only equal predictions"
            notes.append(f"{ties} count as tied")
        if why_not:
            notes.append(why_not)
        undefined = int(np.isnan(each.draws).sum())
        if figure.low is not None and undefined:
            notes.append(f"{undefined} resamples are undefined and not in the interval")
        share = each.n / (each.n + each.skipped) if each.n else 0.0
        made.append(
            Coefficient(
                **{**asdict(figure), "why_not": why_not},
                skipped=each.skipped,
                value_constant_as_zero=(figure.value or 0.0) * share if words.computable else None,
                note="; ".join(notes),
            )
        )
    return Level(*made)


def _pooled(
    x: Floats, y: Floats, figures_of: Callable[[Floats, float], Coefficients], counts: Floats, cells: int, what: str
) -> tuple[dict[str, Resampled], _Words]:
    """Dataset level (x, y: the items) or system level (x, y: the means): one coefficient, no averaging."""
    n, threshold = x.size, tie_threshold([(x, y)])
    figures, why = Coefficients(*np.full((6, len(counts)), np.nan)), f"fewer than two {what}"
    if n >= 2:
        figures = _joined(figures_of(part, threshold) for part in chunks(counts, cells))
        sides = {"the predictions": x, "the human scores": y}
        why = " and ".join(side for side, values in sides.items() if np.ptp(values) == 0) + " are constant"
    remark = f"only two {what}: correlations are -1 or 1, accuracies 0 or 1" if n == 2 else ""
    resampled = {name: Resampled(float(row[0]), row[1:], n) for name, row in zip(figures._fields, figures, strict=True)}
    units = dict.fromkeys(figures._fields, int(counts.shape[1]))
    return resampled, _Words("", units, why, threshold, remark, computable=n >= 2)


def _dataset(items: _Items, counts: Floats, resampled: str) -> tuple[dict[str, Resampled], _Words]:
    figures, words = _pooled(
        items.x, items.y, lambda part, threshold: of_documents(*items, part, threshold), counts, items.x.size, "items"
    )
    return figures, replace(words, resampled=resampled)


def _systems(
    items: _Items, system: Ints, counts: Floats, resampled: str, seed: int
) -> tuple[dict[str, Resampled], _Words]:
    """System level: other systems might have been compared, so that each resample draws them, too."""
    x, y, present = _system_means(items, system, counts[:1])
    n, units = present.size, counts.shape[1]
    cells = items.x.size + n**2
    drawn = np.random.default_rng([seed, 1]).integers(n, size=(len(counts), n)) if n else np.empty((len(counts), 0))
    drawn[:1] = np.arange(n)

    def by_system(part: Floats, threshold: float) -> Coefficients:
        places = part[:, units:].astype(np.int64)
        chosen_x, chosen_y, there = _system_means(items, system, part[:, :units])
        return of_rows(
            np.take_along_axis(chosen_x, places, axis=1),
            np.take_along_axis(chosen_y, places, axis=1),
            np.take_along_axis(there, places, axis=1),
            threshold,
        )

    both = np.concatenate([counts, drawn], axis=1)
    figures, words = _pooled(x[0], y[0], by_system, both, cells, "systems")
    fewer = "systems" if n < units else f"{resampled} (and systems)"
    return figures, replace(words, resampled=fewer, units=dict.fromkeys(words.units, min(n, units)))


def _documents(items: _Items, counts: Floats) -> tuple[dict[str, Resampled], _Words]:
    each, threshold = each_document(*items)
    usable = int((np.bincount(items.document) >= 2).sum())
    why = "one side is constant in every document" if usable else "no document has two items"
    resampled = {}
    for name, figures in zip(each._fields, each, strict=True):
        defined = ~np.isnan(figures)
        n = int(defined.sum())
        with np.errstate(invalid="ignore"):
            means = (counts @ np.nan_to_num(figures)) / (counts @ defined)
        resampled[name] = Resampled(float(means[0]), means[1:], n, usable - n)
    units = {name: each.n for name, each in resampled.items()}
    return resampled, _Words("documents", units, why, threshold, computable=usable > 0)


def each_document(x: Floats, y: Floats, document: Ints) -> tuple[Coefficients, float]:
    """The coefficients of single documents (items sorted by document), and their common tie threshold."""
    sizes = np.bincount(document)
    starts = np.cumsum(sizes) - sizes
    slices = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    threshold = tie_threshold([(x[items], y[items]) for items in slices])
    each = np.full((6, sizes.size), np.nan)
    for size in np.unique(sizes[sizes >= 2]):
        members = np.flatnonzero(sizes == size)
        items = starts[members, None] + np.arange(size)
        each[:, members] = _joined(
            of_rows(x[part], y[part], np.ones(part.shape, dtype=bool), threshold) for part in chunks(items, size**2)
        )
    return Coefficients(*each), threshold


def _joined(parts: Iterable[Coefficients]) -> Coefficients:
    return Coefficients(*map(np.concatenate, zip(*parts, strict=True)))


def _system_means(items: _Items, system: Ints, counts: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Resamples by systems: the means of both sides, and which systems the resample holds."""
    order = np.argsort(system, kind="stable")
    starts = np.searchsorted(system[order], np.arange(system.max(initial=-1) + 1))
    weights = counts[:, items.document[order]]
    copies = np.add.reduceat(weights, starts, axis=1)
    means = []
    for values in (items.x, items.y):
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        unit = high - low if high > low else 1.0
        shares = (values - low)[order] / unit
        # Equal means of differently ordered terms differ in the last bits; rounding lets them tie.
        mean = np.round(np.add.reduceat(weights * shares, starts, axis=1) / np.maximum(copies, 1), 12)
        means.append(mean * unit)  # the zero point does not matter to any figure
    return means[0], means[1], copies > 0


def check_lengths(**columns: Sequence[Any] | None) -> None:
    """Raise ValueError where columns differ in length."""
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        raise ValueError("different lengths: " + ", ".join(f"{n} {name}" for name, n in lengths.items()))


def numbers(scores: Sequence[Score]) -> Floats:
    """Scores as an array, None as NaN; ValueError where one is infinite."""
    found = np.array([math.nan if score is None else float(score) for score in scores], dtype=np.float64)
    if np.isinf(found).any():
        raise ValueError(f"score {int(np.flatnonzero(np.isinf(found))[0])} is infinite")
    return found


def codes(labels: Sequence[Hashable], kept: Ints) -> Ints:
    """Number the labels of the kept items from 0 in their own order, so that the items' order does not matter."""
    distinct = sorted({labels[i] for i in kept}, key=lambda label: (type(label).__name__, label))
    by_label = {label: number for number, label in enumerate(distinct)}
    return np.array([by_label[labels[i]] for i in kept], dtype=np.int64)
