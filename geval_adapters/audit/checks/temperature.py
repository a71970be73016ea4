"""Which temperature is best, and whether an analysis before the rating helps (Stureborg et al. 2024, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping

from ...criteria import Criterion
from ...samples import Sample
from ..asking import REPLIES, Asking, Plan, Question
from ..ratings import RETEST, TAU, Ratings
from ..results import Check, Picture
from .common import TEMPERATURES, rated

FORMS = {"rating first": "rate_explain", "analysis first": "analyze_rate"}
BASE = "rating first, temperature 0"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Both forms at each temperature; above 0 several replies are averaged."""
    settings = {
        f"{name}, temperature {each:g}": asking.geval(criterion, form=form, temperature=each, n=REPLIES if each else 1)
        for name, form in FORMS.items()
        for each in TEMPERATURES
    }

    def ask(sample: Sample) -> Mapping[str, Question]:
        asked = {name: asking.rating(geval, sample) for name, geval in settings.items()}
        return asked | {RETEST: asking.rating(settings[BASE], sample, draw=1)}

    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale)))


def conclude(ratings: Ratings) -> Check:
    """A setting may move ratings no further than asking again does, by a size that matters."""
    names = dict.fromkeys([name for name in ratings.scores if name not in (BASE, RETEST)], "")
    statistics = [*ratings.changes(BASE, names), *ratings.gains(BASE, names)]
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in FORMS}
    for each in statistics:
        form, _, temperature = each.subject.partition(", temperature ")
        if each.name == TAU and each.figure.value is not None:
            lines[form].append((float(temperature), each.figure.value))
    drawn = {name: sorted(pairs) for name, pairs in lines.items() if pairs}
    return Check(
        did=f"Rated with the rating first and after an analysis, at three temperatures; above 0, {REPLIES} replies are"
        " averaged.",
        statistics=statistics,
        fault="sensitive",
        advice="Without an analysis temperature 0 is best, with one about .5 and several replies (Stureborg et al.,"
        " Figure 6), unless the figures say otherwise here.",
        pictures=[Picture("lines", "agreement by temperature", "temperature", TAU, drawn)] if drawn else [],
    )
