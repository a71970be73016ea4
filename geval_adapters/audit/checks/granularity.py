"""How much of a scale the judge uses, and which agrees best with people (Stureborg et al. 2024, §3.2, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...agreement.coefficients import kendall
from ...agreement.intervals import Figure, Floats
from ...agreement.judged import Item
from ...criteria import Criterion, Scale
from ...samples import Sample
from .. import measures
from ..asking import REPLIES, SAMPLED, Asking, Plan, Question
from ..ratings import GAIN, TAU, Ratings, Reliability, documents_of
from ..results import Check, Picture, Statistic
from .common import PREFERRED, SCALES, Rated, rated, stureborg

WAYS = ("single", "averaged")
REFERENCE = f"{PREFERRED}, single"
ROUND = (-1.0, 0.15)
"""How much more often than by chance round numbers may be given."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Five scales, each with one reply at temperature 0 and averaged."""
    averaged = await asking.averaged(criterion)
    averaging = f"{REPLIES} replies at temperature 1" if averaged == SAMPLED else "weighted by log-probabilities"
    gevals = {
        f"{name}, {way}": asking.geval(criterion.on(scale), **options)
        for name, scale in SCALES.items()
        for way, options in zip(WAYS, ({}, averaged), strict=True)
    }

    def ask(sample: Sample) -> Mapping[str, Question]:
        return {name: asking.rating(geval, sample) for name, geval in gevals.items()}

    return rated(asking, criterion, ask, lambda each: conclude(each, criterion, averaging))


def conclude(rated: Rated, criterion: Criterion, averaging: str) -> Check:
    """The use that is made of each scale; round numbers may be given little more often than others."""
    ratings = rated.ratings(criterion.scale)
    scores = {
        name: np.array([np.nan if item.score is None else item.score for item in items])
        for name, items in rated.items.items()
    }
    confidence = 1 - 0.05 / (len(scores) - 1)
    statistics: list[Statistic] = []
    for name, own in scores.items():
        statistics += _use_of_scale(
            name, SCALES[name.rpartition(", ")[0]], ratings, own, single=name.endswith("single")
        )
        agreed = ratings.over(kendall, own, ratings.people, within=(-1, 1))
        statistics.append(Statistic(name, TAU, agreed, None, stureborg(name, criterion)))
        if name != REFERENCE:
            gained = ratings.over(measures.gain, ratings.people, own, scores[REFERENCE], confidence=confidence)
            statistics.append(Statistic(name, GAIN, gained))
    notes = []
    if criterion.scale.words and not criterion.scale.worded and str(criterion.scale) != "0-1":
        notes = ["The criterion's definition names the steps of its own scale, which other scales contradict."]
    return replace(
        _GRANULAR,
        did=f"Rated on five scales, each once at temperature 0 and averaged ({averaging}).",
        statistics=statistics,
        notes=[*notes, f"“{GAIN}” is over {REFERENCE}, the papers' choice, and allows for the number of settings."],
        pictures=[_histogram(name, {way: rated.items[f"{name}, {way}"] for way in WAYS}) for name in SCALES],
    )


_GRANULAR = Check(
    advice="Take the scale that agrees best with people, and average: that gives more different scores than a wider"
    " scale does.",
)


def _use_of_scale(subject: str, scale: Scale, ratings: Ratings, scores: Floats, single: bool) -> list[Statistic]:
    given = scores[~np.isnan(scores)]

    def counted(value: float) -> Figure:
        # A resample never sees more, so there is no interval around it.
        return Figure(value, None, None, given.size, why_not="a count of what was seen")

    used = [
        Statistic(subject, "different scores", counted(measures.granularity(given))),
        Statistic(subject, "range used", counted(measures.range_used(given, scale))),
        Statistic(subject, "entropy (bits)", ratings.over(measures.entropy, scores)),
    ] if given.size else []  # fmt: skip
    excess = ratings.over(lambda each, weights: measures.round_number_excess(each, scale, weights), scores)
    if single and excess.value is not None:
        used.append(Statistic(subject, "round-number excess", excess, ROUND))
    return used


def _histogram(title: str, columns: Mapping[str, Sequence[Item]]) -> Picture:
    series = {name: [item.score for item in items if item.score is not None] for name, items in columns.items()}
    return Picture("histogram", title, "score", "items", {name: scores for name, scores in series.items() if scores})


def stored_check(items: Sequence[Item], criterion: Criterion, reliability: Reliability = None) -> Check:
    """How much of their scale ratings that are there use."""
    scale = criterion.scale
    ratings = Ratings.of({"rating": items}, scale, reliability)
    scores, people = (scale.low + ratings.span * each for each in (ratings.scores["rating"], ratings.people))
    replies = np.array([score for item in items for score in item.replies if score is not None])
    statistics = _use_of_scale("ratings", scale, ratings, scores, single=not len(replies))
    if len(replies):
        owners = [d for item, d in zip(items, documents_of(items), strict=True) for s in item.replies if s is not None]
        statistics += _use_of_scale("single replies", scale, replace(ratings, documents=owners), replies, single=True)
    if not np.isnan(people).all():
        statistics += _use_of_scale("people", scale, ratings, people, single=False)
        statistics.append(Statistic("ratings", TAU, ratings.over(kendall, scores, people, within=(-1, 1))))
    judged = [replace(item, score=item.human) for item in items]
    return replace(
        _GRANULAR,
        did="Looked at which scores were given.",
        statistics=statistics,
        pictures=[_histogram("how often each score is given", {"judge": items, "people": judged})],
    )
