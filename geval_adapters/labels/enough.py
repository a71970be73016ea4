"""How many labels are enough: what the wished width of an interval needs, by the labels that there are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..criteria import Criterion
from .correction import estimated
from .prediction import drawn
from .queue import Distribution, Item, mean
from .rows import Label, as_drawn

PILOT = 30
"""How many items are labelled before anything is said about how many are needed."""


@dataclass(frozen=True)
class Enough:
    """How many items to label for an interval of a certain width.

    Attributes:
        n: how many, those that are labelled included.
        words: how that comes about.
    """

    n: int
    words: str


def enough(
    items: Sequence[Item],
    labels: Sequence[Label],
    criteria: Sequence[Criterion],
    judged: Sequence[Mapping[str, Distribution]],
    width: float | None = None,
) -> Enough:
    """How many items the wished width of the corrected mean's 95 % interval needs, by the widest criterion.

    What labels add to the squared standard error falls with their number (`Estimate.labels_for`); items that were
    skipped are needed on top. As this is a guess while labels are few, no more than twice those that there are.

    Args:
        items: all that can be labelled.
        labels: those that there are.
        criteria: what they are about.
        judged: for each criterion the judge's distributions by sample id; empty where there are none.
        width: from end to end, in units of the score; by default a tenth of the scale's range.
    """
    found = [
        _needed(items, labels, criterion, judged[place] if judged else {}, width)
        for place, criterion in enumerate(criteria)
    ]
    return max(found, key=lambda each: each.n)


def _needed(
    items: Sequence[Item],
    labels: Sequence[Label],
    criterion: Criterion,
    ratings: Mapping[str, Distribution],
    width: float | None,
) -> Enough:
    pairs = any(item.other for item in items)
    wished = width or (1.0 if pairs else criterion.scale.high - criterion.scale.low) / 10
    last = {each.key: each for each in labels if each.criterion == criterion.name and not each.repeat}
    given: dict[tuple[str, str], list[Label]] = defaultdict(list)
    for label in as_drawn(last.values()):
        given[label.id, label.other].append(label)
    means = {
        key: fmean(scores)
        for key, group in given.items()
        if (scores := [each.score for each in group if each.score is not None])
    }
    rated = {} if pairs else ratings
    found = estimated(
        drawn(
            [mean(rated[item.sample.id]) if item.sample.id in rated else None for item in items],
            [means.get(item.key) for item in items],
            [item.document for item in items],
            [given[item.key][0].probability if item.key in means else None for item in items],
        ),
        "auto" if rated else "labels",
    )
    figure, shown = found.figure(), len(given)
    so_far = f"{criterion.label}: {shown} items shown, {len(means)} of them labelled"
    if figure.low is None or figure.high is None or found.std_error is None:
        return Enough(max(PILOT, 2 * shown), f"{so_far}: {figure.why_not}")
    now = figure.high - figure.low
    wanted = f"{so_far}: the 95 % interval is {now:.2g} wide, {wished:.2g} is wished for"
    if now <= wished:
        return Enough(shown, f"{wanted}: that is enough")
    labels_needed = found.labels_for(found.std_error * wished / now)
    need = math.inf if labels_needed is None else math.ceil(labels_needed * shown / len(means))
    if need > len(items):
        return Enough(2 * shown, f"{wanted}: labels of all {len(items)} items are too few for that")
    return Enough(min(int(need), 2 * shown), f"{wanted}, which needs about {need}")
