"""Whether the score shown with a reference output pulls ratings along (Li et al. 2025, arXiv 2506.22316)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...criteria import Criterion
from ...samples import Sample
from ..asking import LEAST, Asking, Plan, Question, Unmeasurable
from ..ratings import RETEST, Ratings
from ..results import Check
from .common import rated

HIGH, LOW = "reference scored high", "reference scored low"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """The same outputs beside another document's output that is said to be the best, twice, or the worst."""
    if len(asking.samples) < LEAST:
        raise Unmeasurable(f"needs {LEAST} samples, and there are {len(asking.samples)}")
    shown = replace(criterion, optional=tuple(dict.fromkeys((*criterion.optional, "reference"))))
    plain = await asking.plain(shown)
    following = dict(zip((s.id for s in asking.samples), [*asking.samples[1:], asking.samples[0]], strict=True))
    words = {score: word for word, score in criterion.scale.words.items()} if criterion.scale.worded else {}

    def beside(sample: Sample, score: float) -> Sample:
        said = words.get(score, f"{score:g}")
        return replace(sample, reference=f"{following[sample.id].output}\n(Score of this reference: {said})")

    def ask(sample: Sample) -> Mapping[str, Question]:
        high, low = (beside(sample, score) for score in (criterion.scale.high, criterion.scale.low))
        return {
            HIGH: asking.rating(plain, high),
            RETEST: asking.rating(plain, high, draw=1),
            LOW: asking.rating(plain, low),
        }

    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale)))


def conclude(ratings: Ratings) -> Check:
    """The score may move ratings no further than asking again does, by a size that matters."""
    return Check(
        did="Rated the same outputs beside a reference that is said to have the highest score, once more, and the"
        " lowest.",
        statistics=ratings.changes(HIGH, {LOW: "scores shift (2506.22316)"}),
        fault="anchored",
        advice="Show references without scores, or none.",
    )
