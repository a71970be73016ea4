"""Whether ratings hang on how the scores are listed: the rubric's order (Li et al. 2025, arXiv 2506.22316) and the
options' (Xu et al. 2026, arXiv 2602.02219).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...criteria import Criterion, Scale
from ...samples import Sample
from ..asking import Asking, Plan, Question
from ..ratings import RETEST, Ratings
from ..results import Check
from .common import rated

UPWARD, DOWNWARD, SHUFFLED = "upward", "downward", "middle first"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """The same outputs with a rubric listed upward, twice, downward, and from the middle out."""
    orders = {UPWARD: 1, DOWNWARD: -1, SHUFFLED: 0}
    gevals = {name: await asking.plain(listed(criterion, order)) for name, order in orders.items()}

    def ask(sample: Sample) -> Mapping[str, Question]:
        asked = {name: asking.rating(geval, sample) for name, geval in gevals.items()}
        return asked | {RETEST: asking.rating(gevals[UPWARD], sample, draw=1)}

    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale)))


def conclude(ratings: Ratings) -> Check:
    """The order may move ratings no further than asking again does, by a size that matters."""
    return Check(
        did="Rated the same outputs with a rubric that lists the scores upward, once more, downward, and from the"
        " middle out.",
        statistics=ratings.changes(UPWARD, _PAPERS),
        fault="sensitive",
        advice="Keep to one order, or average over several: a few random orders take most of the error out"
        " (2602.02219).",
    )


_PAPERS = {
    DOWNWARD: "scores shift with the rubric's order (2506.22316)",
    SHUFFLED: "some judges favour the first option, others the last (2602.02219)",
}


def listed(criterion: Criterion, order: int) -> Criterion:
    """The criterion with a rubric of its scores: upward (1), downward (−1), or from the middle out (0).

    >>> print(listed(Criterion("polite", "Is it polite?", Scale.of("1-3")), -1).definition)
    Is it polite?
    Rubric:
    3: very good
    2: fair
    1: very poor
    """
    values = _few(criterion.scale)
    grades = ("very poor", "poor", "fair", "good", "very good")
    lines = [f"{value:g}: {grades[round(4 * criterion.scale.normalize(value))]}" for value in values]
    if order == 0:
        places = sorted(range(len(lines)), key=lambda place: (abs(place - (len(lines) - 1) / 2), place))
        lines = [lines[place] for place in places]
    return replace(criterion, definition="\n".join([criterion.definition, "Rubric:", *lines[:: order or 1]]))


def _few(scale: Scale) -> list[float]:
    """At most five values, evenly spread."""
    places = np.linspace(0, len(scale.values) - 1, min(5, len(scale.values))).round().astype(int)
    return [scale.values[place] for place in places]
