"""Whether the judge likes long outputs better than people do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...agreement.intervals import Floats
from ...agreement.judged import Item
from ...criteria import Criterion
from ...samples import length_of
from .. import measures
from ..asking import Asking, Plan, Unmeasurable
from ..ratings import MATTERS, Ratings, Reliability
from ..results import Check, Statistic
from .common import rated
from .favour import favour

BASE = "rating"
SUBJECT, CONTROL = "log of characters", "the same, equally good pairs of a document"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """One plain rating each."""
    plain = await asking.plain(criterion)
    return rated(
        asking,
        criterion,
        lambda sample: {BASE: asking.rating(plain, sample)},
        lambda each: stored_check(each.items[BASE], criterion, each.reliability),
    )


def stored_check(items: Sequence[Item], criterion: Criterion, reliability: Reliability = None) -> Check:
    """What ratings that are there say of it."""
    if any(item.output is None for item in items):
        raise Unmeasurable("the ratings do not hold the rated texts")
    characters = np.array([float(length_of(item.output or "")) for item in items])
    return conclude(Ratings.of({BASE: items}, criterion.scale, reliability), characters)


def conclude(ratings: Ratings, characters: Floats) -> Check:
    """Length may raise ratings no further than quality does, by a size that matters.

    Beside the regression stands a control that is balanced for length and quality: pairs of one document that are
    about equally good.
    """
    x, scores = np.log1p(characters), ratings.scores[BASE]
    document = np.unique([str(each) for each in ratings.documents], return_inverse=True)[1].astype(float)
    made = favour(SUBJECT, x, scores, ratings, "length")
    if not np.isnan(ratings.people).all():
        in_pairs = partial(measures.effect_in_pairs, near=MATTERS)
        control, _ = ratings.beside_people(in_pairs, scores, x, document)
        made = replace(made, statistics=[*made.statistics, Statistic(SUBJECT, CONTROL, control)])
    return replace(
        made,
        did="Measured how much higher longer outputs are rated than equally good short ones: by a regression on"
        " people's scores and the log of the number of characters that allows for noise in people's scores; and, as a"
        " control, among pairs of one document that are about equally good.",
        advice="Report agreement beside that of length alone (`geval meta-eval`), say in the criterion that length does"
        " not count, and compare systems of equal length.",
    )
