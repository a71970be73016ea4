"""Whether evaluation steps (auto chain of thought) change ratings, and for the better (Chiang & Lee 2023, Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from ...criteria import Criterion
from ..asking import Asking, Plan
from ..ratings import RETEST, Ratings
from ..results import Check
from .common import rated

BASE, WRITTEN, STORED_STEPS = "no steps", "written by the judge", "stored"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """The same outputs without steps, twice, with steps that the judge wrote, and with stored ones."""
    plans: dict[str, Sequence[str]] = {WRITTEN: await asking.steps(criterion)}
    if criterion.steps:
        plans[STORED_STEPS] = criterion.steps
    plain = await asking.plain(criterion)
    others = {name: await asking.plain(criterion, steps=list(steps)) for name, steps in plans.items()}
    return rated(
        asking,
        criterion,
        lambda sample: {
            BASE: asking.rating(plain, sample),
            RETEST: asking.rating(plain, sample, draw=1),
            **{name: asking.rating(geval, sample) for name, geval in others.items()},
        },
        lambda each: conclude(each.ratings(criterion.scale), criterion),
    )


def conclude(ratings: Ratings, criterion: Criterion) -> Check:
    """Steps may move ratings no further than asking again does, by a size that matters."""
    names = [name for name in (WRITTEN, STORED_STEPS) if name in ratings.scores]
    gains = ratings.gains(BASE, dict.fromkeys(names, _AUTO_COT.get(criterion.short_name, "")))
    return Check(
        did="Rated the same outputs without evaluation steps, once more, and with steps.",
        statistics=[*ratings.changes(BASE, dict.fromkeys(names, "")), *gains],
        fault="sensitive",
        advice="Fix the steps for good (the signature names them), and use them only where they gain agreement.",
    )


_AUTO_COT = {
    "coherence": "r .344 → .450 (ChatGPT)",
    "consistency": "r .328 → .370 (ChatGPT)",
    "fluency": "r .361 → .319 (ChatGPT)",
    "relevance": "r .353 → .403 (ChatGPT)",
}
"""Chiang & Lee (2023), Table 1, score only, without and with auto-CoT on SummEval."""
