"""Whether an output is rated by its dress: a model's name, a badge, Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...criteria import Criterion
from ...prompts import render, wording
from ...samples import Sample
from .. import measures
from ..asking import Asking, Plan, Question
from ..ratings import MATTERS, Ratings
from ..results import Check, Statistic
from .common import rated, tampered

BARE = "bare"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Outputs as they are, and dressed."""
    plain = await asking.plain(criterion)
    dresses = wording("dress")

    def ask(sample: Sample) -> Mapping[str, Question]:
        asked = {BARE: asking.rating(plain, sample)}
        for name, template in dresses.items():
            dressed = render(template, {"output": sample.output})
            asked[name] = asking.rating(plain, tampered(sample, dressed))
        return asked

    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale), list(dresses)))


def conclude(ratings: Ratings, names: Sequence[str]) -> Check:
    """Dress may not change ratings, by a size that matters."""
    confidence = 1 - 0.05 / len(names)
    before = ratings.scores[BARE]
    return Check(
        did="Rated the same outputs with a model's name, a badge, or Markdown around them.",
        statistics=[
            Statistic(
                name,
                "shift",
                ratings.over(measures.shift, before, ratings.scores[name], confidence=confidence),
                (-MATTERS, MATTERS),
            )
            for name in names
        ],
        fault="swayed by dress",
        advice="Strip names, badges and Markdown from outputs before they are judged.",
    )
