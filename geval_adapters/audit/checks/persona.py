"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from ...criteria import Criterion
from ...prompts import wording
from ..asking import Inquiry
from ..results import Check
from .common import _settings


async def persona(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether it matters who the judge is told to be."""
    names = list(wording("personas"))
    samples = inquiry.draw(1 + len(names))
    settings = {"no persona": await inquiry.plain(samples, criterion)}
    for name in names:
        settings[name] = await inquiry.plain(samples, criterion, persona=name)
    return Check(
        did="Rated the same outputs with a persona in front of the prompt.",
        statistics=_settings("no persona", settings, criterion.scale),
        notes=[
            "ChatGPT on coherence: r falls from .450 to .308 and .325 where it answers with the score only, and goes"
            " from .557 to .526 and .596 where it explains (Chiang & Lee, Appendix D)."
        ],
        fault="sensitive",
        advice="Keep to one wording, average over several, or ask for explanations, which makes a judge steadier"
        " (Chiang & Lee, §3.4.2).",
    )
