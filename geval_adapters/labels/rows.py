"""What people said of an item, one row for each label, and reading such rows from files of ours and of others."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ..criteria import Criterion
from ..errors import InputError, checked
from ..rows import read_rows

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "doc_id": ("doc_id",),
    "system_id": ("system_id",),
    "other": ("other",),
    "other_system": ("other_system",),
    "criterion": ("criterion",),
    "score": ("scores", "human", "label", "score"),
    "annotator": ("annotator", "worker", "rater"),
    "seconds": ("seconds",),
    "probability": ("probability",),
    "skipped": ("skipped",),
    "note": ("note",),
}
"""The names under which a field is looked for in labels that people already have, first match first."""


class Draw(BaseModel):
    """How the wave that an item came in was drawn.

    After wave k an item has been drawn with probability `min(1, rate_k · weight)`.

    Attributes:
        weight: the item's weight; the mean over all items is 1.
        before, rate: the rate up to which the waves before had drawn, and up to which this wave draws.
        queued: how many items the wave holds.
    """

    model_config = ConfigDict(frozen=True)

    weight: float = Field(gt=0, allow_inf_nan=False)
    before: float = Field(ge=0, allow_inf_nan=False)
    rate: float = Field(gt=0, allow_inf_nan=False)
    queued: int = Field(ge=1)


def _parsed(value: object) -> object:
    return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value


Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else str(value))]


class Label(BaseModel):
    """What one person said of one item, or of one pair of items, by one criterion.

    Attributes:
        id: the item's; of a pair, the first item's.
        doc_id, system_id: the item's document and system.
        other, other_system: of a pair, the second item's id and system.
        criterion: the criterion's name.
        score: on the criterion's scale; of a pair, 1 where the first is better, 0 where the other is, .5 for a tie;
            None where the item was skipped.
        annotator: who said it.
        seconds: how long that took.
        probability: that with which the item was drawn to be labelled; None where nobody knows.
        design: how items were drawn: `random`, `stratified` or `active`.
        seed, wave: of the drawing; the first wave is 1, and 0 is no wave at all.
        criterion_hash: which wording of the criterion was read.
        skipped: why there is no score.
        repeat: 0 where the annotator saw the item for the first time, 1 for the second.
        note: what the annotator wrote beside it.
        marked: the sentences that the annotator marked: field, and where in it they begin and end.
        swapped: of a pair, whether the second item was shown first.
        draw: what is needed to work `probability` out for a wave that was cut short.

    >>> Label(id="a", criterion="summeval/coherence", score=4, annotator="ann").score
    4.0
    """

    model_config = ConfigDict(frozen=True)

    id: Text
    doc_id: str | None = None
    system_id: str | None = None
    other: Text = ""
    other_system: str | None = None
    criterion: Text = ""
    score: float | None = Field(default=None, allow_inf_nan=False)
    annotator: Text = ""
    seconds: float | None = Field(default=None, ge=0)
    probability: float | None = Field(default=None, gt=0, le=1)
    design: Text = ""
    seed: int = 0
    wave: int = Field(default=0, ge=0)
    criterion_hash: Text = ""
    skipped: Text = ""
    repeat: int = Field(default=0, ge=0)
    note: Text = ""
    marked: Annotated[tuple[tuple[str, int, int], ...], BeforeValidator(_parsed)] = ()
    swapped: bool = False
    draw: Annotated[Draw | None, BeforeValidator(_parsed)] = None

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, row: Any) -> Any:
        names = ("doc_id", "system_id", "other_system")
        return row | {name: str(row[name]) for name in names if row.get(name) is not None}

    @model_validator(mode="after")
    def _scored_or_skipped(self) -> Label:
        if self.score is None and not self.skipped:
            raise ValueError("a label has a score, or says in skipped why it has none")
        if self.score is not None and self.skipped:
            raise ValueError("a label has a score or was skipped, not both")
        if self.other and self.score is not None and not 0 <= self.score <= 1:
            raise ValueError("the score of a pair is 1 (the first is better), 0 (the other is) or between (0.5, a tie)")
        return self

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What it is about, and whose: of labels with the same key the last one counts."""
        return self.criterion, self.id, self.other, self.annotator, self.repeat


def read_labels(
    path: str | Path,
    criterion: Criterion | str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    bad_rows: list[str] | None = None,
) -> list[Label]:
    """The labels of a file, one for each item, criterion, annotator and repeat.

    Rows that `geval label` wrote (corrections take the place of what they correct; the probabilities of a wave cut
    short are scaled by shown / queued), or labels from elsewhere, in any file that `read_samples` reads:

    - a column with one score a row (or one score for each criterion: `{"coherence": 4, "fluency": 5}`);
    - *long*: a row for each label, with a column that names the annotator. An annotator's second label of the same
      item is a repeat. Where none is named, the labels of an item count as those of annotators 1, 2, ...;
    - *wide*: a column for each annotator, named by `columns={"score": "ann,ben,cleo"}`, or a list in one column.

    Empty cells are no labels.

    Args:
        path: the file.
        criterion: keep only the labels of this one; with a `Criterion` its scale is checked, and its words are read.
            Rows that name no criterion are taken to be about it.
        columns: field (see `COLUMNS`) to column name.
        bad_rows: where given, a row that cannot be used is described here and passed over.

    Raises:
        InputError: the file cannot be read, with file and line a row cannot be used, or nothing is about the criterion.
    """
    if unknown := set(columns or ()) - set(COLUMNS):
        raise InputError(f"unknown field {', '.join(sorted(unknown))}; a label has {', '.join(COLUMNS)}")
    names = {**COLUMNS, **{name: (column,) for name, column in (columns or {}).items()}}
    wanted = criterion.name if isinstance(criterion, Criterion) else criterion
    others: Counter[str] = Counter()
    columns_seen: set[str] = set()

    def labels(row: Mapping[str, Any], number: int) -> list[tuple[Label, bool]]:
        columns_seen.update(row)
        own = "criterion_hash" in row and not columns
        made = []
        for fields in [dict(row)] if own else _foreign(row, number, names):
            name = str(fields.get("criterion") or "")
            if wanted is not None and name not in ("", wanted, wanted.rpartition("/")[2]):
                others[name] += 1
                continue
            fields["criterion"] = wanted or name
            made.append((_label(fields, criterion if isinstance(criterion, Criterion) else None), own))
        return made

    found: dict[tuple[object, ...], Label] = {}  # labels of two wordings are both kept
    times: Counter[tuple[str, str, str, str]] = Counter()
    for label, own in (each for group in read_rows(path, labels, bad_rows) for each in group):
        label = label if own else _told_apart(label, times)
        found[(*label.key, label.criterion_hash)] = label
    for name, column in (columns or {}).items():
        if absent := [each for each in column.split(",") if each not in columns_seen]:
            there = ", ".join(sorted(columns_seen))
            raise InputError(f"{path}: no column {absent[0]!r} for {name}; there are {there}")
    if not found:
        about = f" of {wanted!r}" if wanted else ""
        instead = f", but of {', '.join(others)}" if others else f"; looked for a score in {', '.join(names['score'])}"
        raise InputError(f"{path}: holds no labels{about}{instead}")
    return as_drawn(found.values())


def _told_apart(label: Label, times: Counter[tuple[str, str, str, str]]) -> Label:
    """A label from elsewhere as that of the next unnamed annotator, or as a named one's repeat."""
    key = (label.criterion, label.id, label.other, label.annotator)
    times[key] += 1
    if not label.annotator:
        return label.model_copy(update={"annotator": str(times[key])})
    return label.model_copy(update={"repeat": times[key] - 1})


def _label(fields: Mapping[str, Any], criterion: Criterion | None) -> Label:
    score = fields.get("score")
    if criterion and isinstance(score, str):
        score = criterion.scale.words.get(score.strip().lower(), score)
    label = checked(Label, {**fields, "score": score})
    scale = criterion.scale if criterion and not label.other else None
    if scale and label.score is not None and not scale.low <= label.score <= scale.high:
        assert criterion is not None
        raise InputError(f"score {label.score:g} is not on the scale of {criterion.name} ({scale})")
    return label


def _foreign(row: Mapping[str, Any], number: int, names: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """The fields of each label in a row that is not ours."""
    fields = {
        name: next((row[key] for key in keys if not _empty(row.get(key))), None)
        for name, keys in names.items()
        if name != "score"
    }
    if fields["id"] is None:
        placed = fields["doc_id"] is not None and fields["system_id"] is not None
        if not placed and fields["annotator"] is not None:
            raise InputError("no id; name the column with --field id=COLUMN")
        fields["id"] = f"{fields['doc_id']}/{fields['system_id']}" if placed else str(number)
    fields = {name: value for name, value in fields.items() if value is not None}
    # A row of `geval score` holds the judge's score, which is no label.
    among = [key for key in names["score"] if key != "score" or "signature" not in row]
    cells: list[tuple[str | None, Any]]
    wide = among[0].split(",") if among else []
    if len(wide) > 1:
        cells = [(column, row.get(column)) for column in wide]
    else:
        cells = [(None, next((row[key] for key in among if not _empty(row.get(key))), None))]
    for annotator, cell in cells:
        for own, about, score in _scores(cell):
            if not _empty(score) or fields.get("skipped"):  # an empty cell is no label
                who = annotator or fields.get("annotator") or own
                yield fields | {"score": score, "annotator": who, "criterion": about or fields.get("criterion")}


def _scores(cell: Any, annotator: str = "", criterion: str = "") -> Iterator[tuple[str, str, Any]]:
    """Annotator, criterion and score of each score in a cell: a score, a list of annotators', a mapping of criteria."""
    try:
        cell = _parsed(cell)
    except ValueError:
        raise InputError(f"score: {str(cell)[:60]!r} is not valid JSON") from None
    if isinstance(cell, Mapping):
        for name, each in cell.items():
            yield from _scores(each, annotator, str(name))
    elif isinstance(cell, list):
        for number, each in enumerate(cell, start=1):
            yield from _scores(each, str(number), criterion)
    else:
        yield annotator, criterion, cell


def _empty(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def mean_scores(labels: Iterable[Label]) -> dict[str, float]:
    """By item, the mean of what people gave it when they saw it first; pairs and skipped items are left out.

    >>> mean_scores([Label(id="a", score=4), Label(id="a", score=5), Label(id="b", skipped="unclear")])
    {'a': 4.5}
    """
    scores: dict[str, list[float]] = {}
    for label in labels:
        if label.score is not None and not label.repeat and not label.other:
            scores.setdefault(label.id, []).append(label.score)
    return {key: fmean(given) for key, given in scores.items()}


def as_drawn(labels: Iterable[Label]) -> list[Label]:
    """The labels with the probabilities that their items were drawn with, given how far the last wave was shown.

    Waves are drawn one after the other, each from what the ones before left, so that after wave k an item has been
    drawn with `π_k = min(1, rate_k · weight)`. Each item of a wave is as likely as any other to come early: where only
    some have been shown, an item has been shown with `π_{k-1} + shown / queued · (π_k − π_{k-1})`.
    """
    labels = list(labels)
    shown: dict[Queue, dict[int, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    last: dict[Queue, Label] = {}
    for label in labels:
        if label.draw is not None:
            shown[_queue(label)][label.wave].add((label.id, label.other))
            if label.wave >= last.setdefault(_queue(label), label).wave:
                last[_queue(label)] = label

    def probability(label: Label) -> float | None:
        end = last[_queue(label)] if label.draw else None
        if end is None or end.draw is None or label.draw is None:
            return label.probability
        low, high = (min(1.0, rate * label.draw.weight) for rate in (end.draw.before, end.draw.rate))
        return low + len(shown[_queue(label)][end.wave]) / end.draw.queued * (high - low)

    return [label.model_copy(update={"probability": probability(label)}) for label in labels]


Queue = tuple[str, str, int, bool]


def _queue(label: Label) -> Queue:
    """What sets apart labels that were drawn together."""
    return label.criterion, label.design, label.seed, bool(label.other)
