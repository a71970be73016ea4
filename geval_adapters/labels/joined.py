"""What a judge and people said of the same items: ratings of `geval score` beside labels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ..criteria import Criterion, load_criteria
from ..errors import InputError
from ..rows import read_rows
from .prediction import Drawn, drawn
from .rows import Label, read_labels


@dataclass(frozen=True)
class Rated:
    """One row of a ratings file, and what people said of the item.

    Attributes:
        id, document, system: the item's; an item without a document is one of its own.
        score: the judge's, None where it has none.
        distribution: the judge's, score to probability.
        signature: what could change the score.
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

    @property
    def label(self) -> float:
        """The annotators' mean, NaN without one."""
        return fmean(self.people.values()) if self.people else math.nan


@dataclass(frozen=True)
class Joined:
    """A criterion's ratings with people's labels.

    Attributes:
        criterion: its name.
        items: one for each rating.
        pairs: labels of pairs of these items.
        notes: what people must know about the labels, in words.
    """

    criterion: str
    items: Sequence[Rated]
    pairs: Sequence[Label] = ()
    notes: tuple[str, ...] = ()

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
    """The ratings of a file that `geval score` wrote, criterion by criterion.

    Raises:
        InputError: the file cannot be read, a row is no rating, or an item stands there twice.
    """
    found: dict[str, dict[str, Rated]] = defaultdict(dict)

    def take(row: Mapping[str, Any], number: int) -> None:
        if "score" not in row or "criterion" not in row:
            raise InputError("is no rating of geval score: it has no score or no criterion")
        name = str(row["criterion"])
        made = _rated(row, number)
        if made.id in found[name]:
            raise InputError(f"the id {made.id!r} stands here a second time")
        found[name][made.id] = made

    for _ in read_rows(path, take):
        pass
    return [Joined(name, list(items.values())) for name, items in found.items()]


def _rated(row: Mapping[str, Any], number: int) -> Rated:
    identity = str(row.get("id", number))
    try:
        score = None if row["score"] is None else float(row["score"])
        human = None if row.get("human") is None else float(row["human"])
        distribution = {
            float(value): float(p) for value, p in dict(row.get("distribution") or {}).items() if p is not None
        }
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"score, human and distribution must be numbers, found {str(row['score'])[:60]!r}") from None
    if score is not None and not math.isfinite(score):
        raise InputError(f"score must be a number, found {score}")
    document, system = row.get("doc_id"), row.get("system_id")
    return Rated(
        identity,
        f"item {identity}" if document is None else str(document),
        None if system is None else str(system),
        score,
        distribution,
        str(row.get("signature") or ""),
        human,
        str(row.get("output") or ""),
        str(row.get("rationale") or ""),
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
    items = [replace(item, people={} if item.human is None else {"": item.human}) for item in ratings.items]
    return replace(ratings, items=items)


def _with_labels(
    ratings: Joined, path: str | Path, columns: Mapping[str, str] | None, taken: set[tuple[str, str | None]] | None
) -> Joined:
    given = read_labels(path, _criterion(ratings), columns=columns)
    own = {item.id: item for item in ratings.items if not taken or (item.id, item.system) not in taken}
    about: dict[str, list[Label]] = defaultdict(list)
    pairs, unknown = [], 0
    for label in given:
        if {label.id, label.other or label.id} - own.keys() or _elsewhere(label, own[label.id]):
            unknown += 1
        elif label.other:
            pairs.append(label)
        elif not label.repeat:
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
    notes = []
    if unknown and taken is None:
        notes.append(f"{unknown} labels are of items that have no rating here, and are left out")
    skipped = sum(bool(label.skipped) for labels in about.values() for label in labels)
    if skipped:
        notes.append(f"{skipped} labels were skipped, and count as missing")
    if wordings := _other_wordings(ratings, about):
        notes.append(f"the labels were given under another wording of the criterion ({wordings}) than the ratings")
    if about and not any(knowing):
        notes.append("nobody knows how the labelled items were chosen: taken as drawn at random")
    items = [_labelled(item, about[item.id]) if item.id in about else item for item in ratings.items]
    return replace(ratings, items=items, pairs=pairs, notes=tuple(notes))


def _criterion(ratings: Joined) -> Criterion | str:
    """The registered criterion, whose scale labels are checked by; its name where the ratings are on another scale."""
    known = load_criteria().get(ratings.criterion)
    if known is None:
        return ratings.criterion
    given = [score for item in ratings.items for score in (item.score, *item.distribution) if score is not None]
    inside = all(known.scale.low <= score <= known.scale.high for score in given)
    return known if inside else ratings.criterion


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


def _other_wordings(ratings: Joined, labels: Mapping[str, Sequence[Label]]) -> str:
    from ..signature import Signature

    told = {label.criterion_hash for each in labels.values() for label in each if label.criterion_hash}
    try:
        rated = {Signature.parse(each).parts.get("criterion", "").partition("@")[2] for each in ratings.signatures}
    except InputError:
        return ""
    return ", ".join(sorted(told - rated)) if rated - {""} else ""


def table_of(items: Sequence[Rated]) -> tuple[list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """The annotators, and their scores: annotators by items, NaN where one gave none."""
    annotators = sorted({name for item in items for name in item.people})
    scores = [[item.people.get(name, math.nan) for item in items] for name in annotators]
    return annotators, np.array(scores, dtype=np.float64).reshape(len(annotators), len(items))
