"""Whether the judge likes long outputs better than people do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...agreement.intervals import Floats
from ...agreement.judged import Item
from ...criteria import Criterion
from ...samples import length_of
from ..asking import Asking, Plan, Unmeasurable
from ..ratings import Ratings, Reliability
from ..results import Check
from .common import rated
from .favour import favour

BASE = "rating"


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
    """Length may raise ratings no further than quality does, by a size that matters."""
    return replace(
        favour("log of characters", np.log1p(characters), ratings.scores[BASE], ratings, "length"),
        did="Measured how much higher longer outputs are rated than equally good short ones (a regression on people's"
        " scores and the logarithm of the number of characters that allows for noise in people's scores).",
        advice="Report agreement beside that of length alone (`geval meta-eval`), say in the criterion that length does"
        " not count, and compare systems of equal length.",
    )
