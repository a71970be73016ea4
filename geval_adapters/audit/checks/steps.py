"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from ...criteria import Criterion
from ..asking import Inquiry
from ..results import Check
from .common import GAIN, _beside, _settings


async def steps(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether evaluation steps (auto chain of thought) change the ratings, and for the better."""
    plans = {"written by the judge": await inquiry.steps(criterion)}
    if criterion.steps:
        plans["stored"] = list(criterion.steps)
    samples = inquiry.draw(1 + len(plans))
    settings = {"no steps": await inquiry.plain(samples, criterion)}
    for name, plan in plans.items():
        settings[name] = await inquiry.plain(samples, criterion, steps=plan)
    statistics = _settings("no steps", settings, criterion.scale)
    return Check(
        did="Rated the same outputs with and without evaluation steps.",
        statistics=_beside(statistics, GAIN, lambda subject: _AUTO_COT.get(criterion.short_name, "")),
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
