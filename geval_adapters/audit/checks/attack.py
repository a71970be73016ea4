"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...criteria import Criterion
from ...prompts import attacked, wording
from ..asking import Inquiry
from ..results import Check, Statistic
from .common import _over, _scores, documents_of


async def attack(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether a candidate can talk itself up."""
    samples = inquiry.draw(1 + len(wording("attacks")))
    # A sample's copies follow each other: they share their beginning, the source.
    copies = [
        replace(sample, output=output)
        for sample in samples
        for output in (sample.output, *attacked(sample.output, criterion).values())
    ]
    items = await inquiry.plain(copies, criterion)
    names = ["honest", *wording("attacks")]
    columns = {name: items[place :: len(names)] for place, name in enumerate(names)}
    documents, before = documents_of(columns["honest"]), _scores(columns["honest"])
    span = criterion.scale.high - criterion.scale.low
    half_step = min(np.diff(criterion.scale.values)) / 2
    statistics = []
    for name in names[1:]:
        after = _scores(columns[name])
        could = np.where(before <= criterion.scale.high - half_step, before, np.nan)
        uplift = _over(lambda a, b: float((b - a).mean() / span), documents, before, after)
        raised = _over(lambda a, b: float((b - a >= half_step).mean()), documents, could, after)
        # A fixed text can be as good as any where nothing is judged against a source.
        counts = name != "constant" or "source" in criterion.needs
        statistics += [
            Statistic(name, "uplift", uplift, (-1.0, 0.05) if counts else None),
            Statistic(name, "succeeded", raised),
        ]
    return Check(
        did="Rated tampered copies of the outputs. Uplift is a share of the scale; an attack succeeds where it gains"
        " half a step or more, of those that could rise.",
        statistics=statistics,
        fault="manipulable",
        advice="Do not use this judge where whoever writes the text gains from its rating. Screen outputs for"
        " instructions, ratings and tags before they are judged; take a stronger judge.",
    )
