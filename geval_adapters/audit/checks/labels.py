"""Whether ratings hang on how the scores are called: letters or Roman numerals (Li et al. 2025, arXiv 2506.22316)."""

from __future__ import annotations

from collections.abc import Mapping

from ...criteria import Criterion, Scale
from ...samples import Sample
from ..asking import Asking, Plan, Question
from ..ratings import RETEST, Ratings
from ..results import Check
from .common import rated

FIGURES = "1-5"
LABELS = {
    "letters": Scale.of({letter: value for value, letter in enumerate("EDCBA", start=1)}),
    "Roman numerals": Scale.of({label: value for value, label in enumerate(("I", "II", "III", "IV", "V"), start=1)}),
}


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """The same outputs on a scale of five with figures, twice, and with each kind of label."""
    scale = Scale.of(FIGURES)
    figures = await asking.plain(criterion.on(scale))
    others = {name: asking.geval(criterion.on(labels)) for name, labels in LABELS.items()}

    def ask(sample: Sample) -> Mapping[str, Question]:
        return {
            FIGURES: asking.rating(figures, sample),
            RETEST: asking.rating(figures, sample, draw=1),
            **{name: asking.rating(geval, sample) for name, geval in others.items()},
        }

    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(scale)))


def conclude(ratings: Ratings) -> Check:
    """Labels may move ratings no further than asking again does, by a size that matters."""
    return Check(
        did="Rated the same outputs from 1 to 5, once more, and with letters (A is best) and Roman numerals instead.",
        statistics=ratings.changes(FIGURES, dict.fromkeys(LABELS, "scores shift (2506.22316)")),
        fault="sensitive",
        advice="Keep to one kind of label, and compare only ratings with equal signatures.",
    )
