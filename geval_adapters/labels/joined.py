"""What a judge and people said of the same items: ratings of `geval score` beside labels."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from ..criteria import Criterion, load_criteria
from ..errors import InputError, checked
from ..rows import read_rows
from ..signature import criterion_of, judge_of
from .prediction import Drawn, drawn
from .rows import Label, Text, read_labels


def _as_mapping(value: Any) -> Any:
    """What JSON has as an object, and Parquet as a list of pairs, or with a null for each score that has none."""
    pairs = isinstance(value, list) and all(isinstance(each, tuple) for each in value)
    given = dict(value) if pairs else value or {}
    return {key: p for key, p in given.items() if p is not None} if isinstance(given, Mapping) else given


Finite = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str | None, BeforeValidator(lambda value: None if value is None else str(value))]


@dataclass(frozen=True)
class RatingRow:
    """What a row of a ratings file must hold for people's labels to be set beside it."""

    criterion: Text
    score: Finite | None
    id: Name = None
    doc_id: Name = None
    system_id: Name = None
    human: Finite | None = None
    normalized: Finite | None = None
    distribution: Annotated[Mapping[float, float], BeforeValidator(_as_mapping)] = field(default_factory=dict)
    signature: Text = ""
    served: Annotated[tuple[str, ...], BeforeValidator(lambda value: value or ())] = ()
    output: Text = ""
    rationale: Text = ""


@dataclass(frozen=True)
class Rated:
    """One row of a ratings file, and what people said of the item.

    Attributes:
        id, document, system: the item's; an item without a document is one of its own.
        score: the judge's, None where it has none.
        distribution: the judge's, score to probability.
        signature: what could change the score.
        served: the models that the provider says gave it.
        human: people's score that came with the sample.
        output, rationale: texts to look at.
        people: score by annotator.
        probability: that with which the item was drawn for labelling; None where nobody knows.
        skipped: why annotators gave no score.
        notes: what annotators wrote.
    """

    id: str
    document: str
    system: str | None
    score: float | None
    distribution: Mapping[float, float]
    signature: str
    human: float | None
    output: str
    rationale: str
    people: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    served: tuple[str, ...] = ()

    @property
    def label(self) -> float:
        """The annotators' mean, NaN without one."""
        return fmean(self.people.values()) if self.people else math.nan


@dataclass(frozen=True)
class Joined:
    """A criterion's ratings with people's labels.

    Attributes:
        criterion: what it is called: its name, and where a file holds two of one name, the name with the hash.
        items: one for each rating.
        pairs: labels of pairs of these items.
        notes: what people must know about the labels, in words.
        key: its name with its hash (`name@hash`) where the ratings have that.
        scale: the lowest and the highest score, None where the ratings do not tell.
    """

    criterion: str
    items: Sequence[Rated]
    pairs: Sequence[Label] = ()
    notes: tuple[str, ...] = ()
    key: str = ""
    scale: tuple[float, float] | None = None

    def check_on_scale(self, what: str, value: float) -> None:
        """See to it that a number is one that a score can be.

        Raises:
            InputError: it is no number, or not on the scale.
        """
        if not math.isfinite(value):
            raise InputError(f"{what} must be a number, got {value:g}")
        if self.scale and not self.scale[0] - 1e-6 <= value <= self.scale[1] + 1e-6:
            low, high = self.scale
            raise InputError(
                f"{what}, {value:g}, is not on the scale of {self.criterion}, which is {low:g} to {high:g}"
            )

    @property
    def name(self) -> str:
        """The criterion's name alone."""
        return self.key.rpartition("@")[0] or self.criterion

    @property
    def hash(self) -> str:
        """Which wording of the criterion, empty where nobody knows."""
        return self.key.rpartition("@")[2] if "@" in self.key else ""

    @cached_property
    def scores(self) -> list[float]:
        """The judge's, NaN where it has none."""
        return [math.nan if item.score is None else item.score for item in self.items]

    @cached_property
    def drawn(self) -> Drawn:
        """The items as the estimators take them."""
        return self.as_drawn(self.scores, [item.label for item in self.items])

    def as_drawn(self, scores: Sequence[float], labels: Sequence[float]) -> Drawn:
        """The items with other scores and labels: shares, for example."""
        known = any(item.probability is not None for item in self.items)
        probabilities = [item.probability for item in self.items] if known else None
        return drawn(scores, labels, [item.document for item in self.items], probabilities)

    def above(self, threshold: float) -> Drawn:
        """The items with, for scores and labels, whether they reach a threshold."""
        scores = [math.nan if item.score is None else _mass(item, threshold) for item in self.items]
        labels = [math.nan if not item.people else float(item.label >= threshold) for item in self.items]
        return self.as_drawn(scores, labels)

    @property
    def systems(self) -> list[str]:
        """The systems, in order."""
        return sorted({item.system for item in self.items if item.system is not None})

    @property
    def signatures(self) -> list[str]:
        """The different signatures of the ratings that have a score."""
        return list(dict.fromkeys(item.signature for item in self.items if item.score is not None))


def _mass(item: Rated, threshold: float) -> float:
    """The judge's probability that the score reaches the threshold."""
    total = sum(item.distribution.values())
    if not total:
        return float(item.score is not None and item.score >= threshold)
    return sum(p for score, p in item.distribution.items() if score >= threshold - 1e-9) / total


def read_ratings(path: str | Path) -> list[Joined]:
    """The ratings of a file that `geval score` wrote, criterion by criterion; two of one name are told apart by hash.

    Raises:
        InputError: the file cannot be read, a row is no rating, or an item stands there twice.
    """
    by_key: dict[str, dict[str, Rated]] = defaultdict(dict)
    names: dict[str, str] = {}
    normalized: dict[str, dict[float, float]] = defaultdict(dict)

    def take(row: Mapping[str, Any], number: int) -> None:
        rating = checked(RatingRow, row)
        key = criterion_of(rating.signature, rating.criterion)
        names[key] = rating.criterion
        made = _rated(rating, number)
        if made.id in by_key[key]:
            one, other = (judge_of(each.signature) for each in (by_key[key][made.id], made))
            if one != other:
                raise InputError(
                    f"the id {made.id!r} was rated by {one} and by {other}: take their panel's ratings, NAME.jury.jsonl"
                )
            raise InputError(f"the id {made.id!r} stands here a second time")
        by_key[key][made.id] = made
        if rating.score is not None and rating.normalized is not None:
            normalized[key][rating.normalized] = rating.score

    for _ in read_rows(path, take):
        pass
    alone = {name for name, keys in Counter(names.values()).items() if keys == 1}
    return [
        Joined(
            names[key] if names[key] in alone else key,
            list(items.values()),
            key=key if key != names[key] else "",
            scale=_ends(normalized[key]),
        )
        for key, items in by_key.items()
    ]


def _ends(scores: Mapping[float, float]) -> tuple[float, float] | None:
    """The ends of a scale, from scores by what they are when it is brought to 0 to 1: two of them tell.

    >>> _ends({0.25: 2.0, 1.0: 5.0})
    (1.0, 5.0)
    """
    least, most = min(scores, default=0.0), max(scores, default=0.0)
    if most - least < 1e-6:
        return None
    span = (scores[most] - scores[least]) / (most - least)
    low = scores[least] - least * span
    return round(low, 6), round(low + span, 6)


def counterparts(old: Sequence[Joined], new: Sequence[Joined]) -> list[tuple[Joined, Joined]]:
    """The ratings of two runs by the same criteria: alike in name and hash, else each run's only ones of a name."""

    def counterpart(run: Joined) -> Joined | None:
        alike = [each for each in new if (each.key or each.criterion) == (run.key or run.criterion)]
        named = [[each for each in runs if each.name == run.name] for runs in (old, new)]
        return alike[0] if alike else named[1][0] if list(map(len, named)) == [1, 1] else None

    return [(run, other) for run in old if (other := counterpart(run))]


def _rated(row: RatingRow, number: int) -> Rated:
    identity = str(number) if row.id is None else row.id
    return Rated(
        id=identity,
        document=f"item {identity}" if row.doc_id is None else row.doc_id,
        system=row.system_id,
        score=row.score,
        distribution=row.distribution,
        signature=row.signature,
        human=row.human,
        output=row.output,
        rationale=row.rationale,
        served=row.served,
    )


def join(
    ratings: Iterable[Joined],
    labels: str | Path | None,
    columns: Mapping[str, str] | None = None,
    *,
    newer: Joined | None = None,
) -> list[Joined]:
    """Ratings with people's labels beside them.

    Args:
        ratings: by criterion.
        labels: a file of labels (see `read_labels`); None takes the scores that came with the samples.
        columns: field to column name, for labels that name a field otherwise.
        newer: where `ratings` are of former outputs, the ratings of the present ones. Labels of items that both name
            alike, by id and system, are of the present ones, and former outputs need have none.

    Raises:
        InputError: the labels cannot be read, fit no item, or only some of them know how they were drawn.
    """
    if labels is None:
        return [_with_human(each) for each in ratings]
    taken = {(item.id, item.system) for item in newer.items} if newer else None
    return [_with_labels(each, labels, columns, taken) for each in ratings]


def _with_human(ratings: Joined) -> Joined:
    for item in ratings.items:
        if item.human is not None:
            ratings.check_on_scale(f"people's score of {item.id!r}", item.human)
    items = [replace(item, people={} if item.human is None else {"": item.human}) for item in ratings.items]
    return replace(ratings, items=items)


def _with_labels(
    ratings: Joined, path: str | Path, columns: Mapping[str, str] | None, taken: set[tuple[str, str | None]] | None
) -> Joined:
    given, notes = _of_its_wording(ratings, path, read_labels(path, _criterion(ratings), columns=columns))
    own = {item.id: item for item in ratings.items if not taken or (item.id, item.system) not in taken}
    about: dict[str, list[Label]] = defaultdict(list)
    pairs, unknown = [], 0
    for label in given:
        if {label.id, label.other or label.id} - own.keys() or _elsewhere(label, own[label.id]):
            unknown += 1
        elif label.other:
            pairs.append(label)
        elif not label.repeat:
            if label.score is not None:
                ratings.check_on_scale(f"{path}: the label of {label.id!r}", label.score)
            about[label.id].append(label)
    if not about and not pairs and taken is None:
        raise InputError(
            f"{path}: none of its {len(given)} labels of {ratings.criterion} is of an item with a rating;"
            " they are matched by id"
        )
    knowing = [label.probability is not None for labels in about.values() for label in labels]
    if any(knowing) and not all(knowing):
        raise InputError(
            f"{path}: {sum(knowing)} labels of {ratings.criterion} say with which probability their item was drawn,"
            f" and {len(knowing) - sum(knowing)} do not: estimate them apart"
        )
    if unknown and taken is None:
        notes.append(f"{unknown} labels are of items that have no rating here, and are left out")
    skipped = sum(bool(label.skipped) for labels in about.values() for label in labels)
    if skipped:
        notes.append(f"{skipped} labels were skipped, and count as missing")
    if about and not any(knowing):
        notes.append("nobody knows how the labelled items were chosen: taken as drawn at random")
    items = [_labelled(item, about[item.id]) if item.id in about else item for item in ratings.items]
    return replace(ratings, items=items, pairs=pairs, notes=tuple(notes))


def _criterion(ratings: Joined) -> Criterion | str:
    """The registered criterion, whose scale labels are checked by; its name where the ratings are on another scale."""
    known = load_criteria().get(ratings.name)
    if known is None:
        return ratings.name
    given = [score for item in ratings.items for score in (item.score, *item.distribution) if score is not None]
    inside = all(known.scale.low <= score <= known.scale.high for score in given)
    return known if inside else ratings.name


def _elsewhere(label: Label, item: Rated) -> bool:
    return None not in (label.system_id, item.system) and label.system_id != item.system


def _labelled(item: Rated, labels: Sequence[Label]) -> Rated:
    people = {label.annotator: label.score for label in labels if label.score is not None}
    # An item that several queues could draw was drawn unless none of them did.
    queues = {(label.design, label.seed): label.probability for label in labels}
    missed = math.prod(1 - p for p in queues.values() if p is not None)
    return replace(
        item,
        people=people,
        probability=1 - missed if any(queues.values()) and people else None,
        skipped=tuple(label.skipped for label in labels if label.skipped),
        notes=tuple(label.note for label in labels if label.note),
    )


def _of_its_wording(ratings: Joined, path: str | Path, labels: list[Label]) -> tuple[list[Label], list[str]]:
    """Those labels that were given under the ratings' wording of the criterion, and what is to be said of others."""
    others = sorted({label.criterion_hash for label in labels} - {"", ratings.hash})
    if not others or (len(others) == 1 and not ratings.hash):
        return labels, []
    named = f"another wording of the criterion ({', '.join(others)})"
    own = [label for label in labels if label.criterion_hash in ("", ratings.hash)]
    if any(label.criterion_hash for label in own):
        return own, [f"{len(labels) - len(own)} labels were given under {named} than the ratings, and are left out"]
    if len(others) > 1:
        raise InputError(
            f"{path}: the labels of {ratings.criterion} were given under {len(others)} wordings of the criterion"
            f" ({', '.join(others)}), none of which is that of the ratings"
        )
    return labels, [f"the labels were given under {named} than the ratings"]


def table_of(items: Sequence[Rated]) -> tuple[list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """The annotators, and their scores: annotators by items, NaN where one gave none."""
    annotators = sorted({name for item in items for name in item.people})
    scores = [[item.people.get(name, math.nan) for item in items] for name in annotators]
    return annotators, np.array(scores, dtype=np.float64).reshape(len(annotators), len(items))
