"""Whether it matters who the judge is told to be (Chiang & Lee 2023, §3.4.2)."""

from __future__ import annotations

from ...criteria import Criterion
from ...prompts import wording
from ..asking import Asking, Plan
from ..ratings import RETEST, Ratings
from ..results import Check
from .common import rated

BASE = "no persona"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """The same outputs without a persona, twice, and with each."""
    plain = await asking.plain(criterion)
    others = {name: await asking.plain(criterion, persona=name) for name in wording("personas")}
    return rated(
        asking,
        criterion,
        lambda sample: {
            BASE: asking.rating(plain, sample),
            RETEST: asking.rating(plain, sample, draw=1),
            **{name: asking.rating(geval, sample) for name, geval in others.items()},
        },
        lambda each: conclude(each.ratings(criterion.scale)),
    )


def conclude(ratings: Ratings) -> Check:
    """A persona may move ratings no further than asking again does, by a size that matters."""
    names = dict.fromkeys([name for name in ratings.scores if name not in (BASE, RETEST)], "")
    return Check(
        did="Rated the same outputs without a persona, once more, and with each persona in front of the prompt.",
        statistics=[*ratings.changes(BASE, names), *ratings.gains(BASE, names)],
        notes=[
            "ChatGPT on coherence: r falls from .450 to .308 and .325 where it answers with the score only, and goes"
            " from .557 to .526 and .596 where it explains (Chiang & Lee, Appendix D)."
        ],
        fault="sensitive",
        advice="Keep to one wording, average over several, or ask for explanations, which makes a judge steadier"
        " (Chiang & Lee, §3.4.2).",
    )
