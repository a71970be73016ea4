"""Whether the judge looks at the source (Stureborg et al. 2024, Table 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...agreement.intervals import Floats
from ...criteria import Criterion
from ...samples import Sample
from .. import measures
from ..asking import Asking, Plan, Question, Unmeasurable
from ..ratings import GAIN, RETEST, SMALL, Ratings
from ..results import Check, Statistic
from .common import rated, stureborg

LOOKS = (0.15, 1.0)
"""By how much ratings must change with another document's source where the criterion is about it."""
BASE, WITHOUT, ANOTHER = "with source", "without source", "with another's source"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """The same outputs with their source, twice, without it, and with the source of another document."""
    sources = {sample.doc_id: sample.source for sample in asking.samples if sample.source}
    if not sources:
        raise Unmeasurable("the samples have no source")
    needed = "source" in criterion.needs
    shows = needed or "source" in criterion.optional
    shown = criterion if shows else replace(criterion, optional=(*criterion.optional, "source"))
    without = replace(
        criterion,
        needs=tuple(name for name in criterion.needs if name != "source"),
        optional=tuple(name for name in criterion.optional if name != "source"),
    )
    full, bare = await asking.plain(shown), await asking.plain(without)
    others = _others(sources)

    def ask(sample: Sample) -> Mapping[str, Question]:
        asked = {
            BASE: asking.rating(full, sample),
            RETEST: asking.rating(full, sample, draw=1),
            WITHOUT: asking.rating(bare, sample),
        }
        if needed and sample.doc_id in others:
            asked[ANOTHER] = asking.rating(full, replace(sample, source=others[sample.doc_id]))
        return asked

    samples = [sample for sample in asking.samples if sample.source]
    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale), criterion), samples)


def conclude(ratings: Ratings, criterion: Criterion) -> Check:
    """What is judged against the source must move without it, beyond what a retest does; what is not must stay."""
    needed = "source" in criterion.needs
    statistics = ratings.changes(BASE, {WITHOUT: ""}, None if needed else SMALL)
    statistics += ratings.gains(BASE, {WITHOUT: stureborg(WITHOUT, criterion)})
    notes = [f"The criterion {'is' if needed else 'is not'} about the source."]
    if needed:
        before, again = ratings.scores[BASE], ratings.scores[RETEST]
        changed = ANOTHER if ANOTHER in ratings.scores else WITHOUT
        figure = ratings.over(measures.changed, before, again, ratings.scores[changed])
        statistics.insert(0, Statistic(changed, "changed", figure, LOOKS))
        gained = next(each for each in statistics if each.name == GAIN)
        notes.append(
            f"The ratings of a judge that looks change by at least {LOOKS[0]:g} of the scale: together, or one by one"
            f" beyond what asking again does. {_lost(gained.figure.value)}".rstrip()
        )
    return Check(
        did="Rated the same outputs with their source, with it once more, without it"
        + (", and with the source of another document." if needed else "."),
        statistics=statistics,
        fault="blind to the source" if needed else "sensitive",
        advice="Do not trust this judge with what depends on the source."
        if needed
        else "Show the source also where the criterion does not need it (Stureborg et al., Table 6), and never compare"
        " ratings that were given with it and without.",
        notes=notes,
    )


def _lost(gained: float | None) -> str:
    return "" if gained is None else f"Without the source τ with people changes by {gained:+.2f}."


def _others(sources: Mapping[str | None, str | None]) -> dict[str | None, str]:
    """For each document the source of the next one that has another."""
    documents: Sequence[str | None] = list(sources)
    others = {}
    for place, document in enumerate(documents):
        after = [*documents[place + 1 :], *documents[:place]]
        other = next((sources[each] for each in after if sources[each] != sources[document]), None)
        if other is not None:
            others[document] = other
    return others


def by_level(scores: Floats, values: Floats) -> list[tuple[float, float]]:
    """The mean value of the items at each whole score."""
    kept = ~np.isnan(scores) & ~np.isnan(values)
    levels = np.rint(scores[kept])
    return [(float(level), float(values[kept][levels == level].mean())) for level in np.unique(levels)]
