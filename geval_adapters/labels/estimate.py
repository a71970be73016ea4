"""From ratings and labels to what `geval estimate` says: means, differences, shares, and how good the judge is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ..agreement.significance import holm
from ..agreement.soft_accuracy import soft_pairwise_accuracy
from ..errors import InputError
from .alike import differing
from .conformal import conformal
from .correction import UNLABELLED, Estimate, by_system, estimated, judged, rectified, within
from .estimation import Difference, Estimation, Judge, Mean
from .joined import Joined, Rated, table_of
from .people import alternative_annotator_test, ceiling
from .prediction import Drawn
from .transport import Transport, along_the_scale, transport
from .wins import wins


def estimate(
    data: Joined,
    *,
    by: bool = False,
    against: str | None = None,
    threshold: float | None = None,
    scale: tuple[float, float] | None = None,
    level: float | None = None,
    method: str = "auto",
) -> Estimation:
    """What judge and people together say about the items of one criterion.

    Args:
        data: ratings with labels.
        by: whether to estimate each system, and the differences between them.
        against: a system that the others are compared with; by default each is compared with each.
        threshold: also estimate the share of items at or above it.
        scale: the lowest and the highest score, for `level`.
        level: also make intervals for single items, of this level.
        method: see `corrected_mean`.

    Raises:
        InputError: there are no labels, no such system, or a threshold that is not on the scale.
    """
    items = data.drawn
    if not items.n and not data.pairs:
        raise InputError(f"no item of {data.criterion} has a label")
    systems = data.systems
    if against is not None and against not in systems:
        raise InputError(f"no rating is of system {against!r}; there are {', '.join(systems) or 'none'}")
    by = by or against is not None
    if by and not systems:
        raise InputError(f"the ratings of {data.criterion} name no systems (system_id)")
    if threshold is not None:
        data.check_on_scale("--share-at-least", threshold)
    mixed = differing([data])
    moved = transport(items, [item.system for item in data.items]) if len(systems) > 1 and items.n else None
    means, differences = _means(data, items, by, against, threshold, moved, method) if items.n else ([], [])
    return Estimation(
        criterion=data.criterion,
        systems=means,
        differences=differences,
        transport=moved,
        scale=along_the_scale(items),
        judge=_judge(data),
        wins=list(wins(data)),
        apart=differ_most(data.items),
        intervals=conformal(items, scale, level) if level is not None and scale is not None else None,
        items=data.items,
        threshold=threshold,
        notes=(*data.notes, *([mixed] if mixed else [])),
    )


def differ_most(items: Sequence[Rated], most: int = 20) -> list[Rated]:
    """The items on which judge and people differ most, for people to read: there a criterion's wording is mended."""
    both = [item for item in items if item.people and item.score is not None and item.score != item.label]
    return sorted(both, key=lambda item: -abs((item.score or 0.0) - item.label))[:most]


def _means(
    data: Joined,
    items: Drawn,
    by: bool,
    against: str | None,
    threshold: float | None,
    moved: Transport | None,
    method: str,
) -> tuple[list[Mean], list[Difference]]:
    above = None if threshold is None else data.above(threshold)
    if not by:
        whole = refused(estimated(items, method), moved)
        share = None if above is None else refused(estimated(above, method), moved)
        return [_mean(None, items, whole, share)], []
    names = [item.system for item in data.items]
    found = by_system(items, names, method)
    shares = by_system(above, names, method) if above is not None else {}
    means = []
    for system in data.systems:
        places = np.array([place for place, name in enumerate(names) if name == system])
        if not found[system].n and (moved is None or moved.p is None or moved.differs):
            found[system] = replace(found[system], value=None, why_not=f"{UNLABELLED}, and {moved}")
        means.append(_mean(system, items.part(places), found[system], shares.get(system)))
    pairs = [(a, against) for a in data.systems if a != against] if against else list(combinations(data.systems, 2))
    return means, _differences([(a, b, found[a].minus(found[b])) for a, b in pairs])


def refused(whole: Estimate, moved: Transport | None) -> Estimate:
    """The mean of all items, without a value where labels of some systems speak for others on which the judge errs
    otherwise.
    """
    if moved is None or not moved.missed or not moved.differs:
        return whole
    why_not = f"{moved}: labels of {', '.join(moved.missed)} are needed, too"
    return Estimate(None, whole.errors, whole.labelled, whole.n, whole.method, why_not)


def _mean(system: str | None, items: Drawn, found: Estimate, share: Estimate | None) -> Mean:
    alone = rectified(items, np.zeros(len(items.scores)), "labels") if items.n else found
    own = judged(items)
    error, error_alone = found.std_error, alone.std_error
    return Mean(
        system=system,
        n=len(items.scores),
        unrated=int(np.isnan(items.scores).sum()),
        labels=items.n,
        judge_mean=own.value,
        labels_mean=alone.figure(),
        corrected=found.figure(),
        effective_n=items.n * (error_alone / error) ** 2 if error and error_alone else None,
        bias=own.minus(found).figure(),
        labels_for_half=_labels_for_half(items, found),
        share=None if share is None else within(share.figure(), 0.0, 1.0),
    )


def _labels_for_half(items: Drawn, found: Estimate) -> int | None:
    """Labels in all at which the standard error is half of what it is."""
    needed = found.labels_for(found.std_error / 2) if found.std_error else None
    return needed if needed and needed <= len(items.scores) else None


def _differences(pairs: Sequence[tuple[str, str, Estimate]]) -> list[Difference]:
    tested = [estimate.p() for _, _, estimate in pairs]
    corrected = iter(holm([p for p in tested if p is not None]))
    return [
        Difference(a, b, estimate.figure(), p, None if p is None else next(corrected))
        for (a, b, estimate), p in zip(pairs, tested, strict=True)
    ]


def _judge(data: Joined) -> Judge:
    labelled = [item for item in data.items if item.people]
    _, table = table_of(labelled)
    scores = np.array([math.nan if item.score is None else item.score for item in labelled])
    commonest = _commonest(table)
    systems = soft_pairwise_accuracy(
        [item.score for item in labelled],
        [item.label for item in labelled],
        [item.document for item in labelled],
        [item.system for item in labelled],
    )
    return Judge(
        ceiling(scores, table),
        alternative_annotator_test(scores, table),
        alternative_annotator_test(np.full(len(labelled), commonest), table),
        systems,
    )


def _commonest(table: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    values, counts = np.unique(table[~np.isnan(table)], return_counts=True)
    return float(values[counts.argmax()]) if values.size else math.nan
