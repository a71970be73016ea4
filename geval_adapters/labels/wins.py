"""Win rates of systems from labels of pairs, corrected like means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from .correction import estimated, judged, within
from .estimation import WinRate
from .joined import Joined, Rated
from .prediction import drawn


def wins(data: Joined) -> Iterator[WinRate]:
    """Win rates of two systems from labels of pairs, over all documents that both have."""
    own = {item.id: item for item in data.items}
    given: dict[tuple[str, str], dict[str, list[tuple[float, float | None]]]] = {}
    for label in data.pairs:
        first, second = own[label.id], own[label.other]
        if label.score is None or label.repeat or first.system is None or second.system is None:
            continue
        a, b = sorted((first.system, second.system))
        score = label.score if first.system == a else 1 - label.score
        given.setdefault((a, b), {}).setdefault(first.document, []).append((score, label.probability))
    for (a, b), labels in sorted(given.items()):
        both = [{item.document: item for item in data.items if item.system == system} for system in (a, b)]
        documents = sorted(both[0].keys() & both[1].keys())
        judge = [_better(both[0][document], both[1][document]) for document in documents]
        said = [[score for score, _ in labels.get(document, [])] for document in documents]
        people = [fmean(scores) if scores else math.nan for scores in said]
        chances = [labels[document][0][1] if document in labels else None for document in documents]
        known = any(each is not None for each in chances)
        items = drawn(judge, people, documents, chances if known else None)
        figure = within(estimated(items).figure(), 0.0, 1.0)
        yield WinRate(a, b, len(documents), items.n, judged(items).value, figure)


def _better(one: Rated, other: Rated) -> float:
    """The judge's probability that the one is better, half of it for a tie."""
    if one.score is None or other.score is None:
        return math.nan
    pairs = [
        (p * q, (s > t) + 0.5 * (s == t))
        for s, p in (one.distribution or {one.score: 1.0}).items()
        for t, q in (other.distribution or {other.score: 1.0}).items()
    ]
    return sum(p * better for p, better in pairs) / sum(p for p, _ in pairs)
