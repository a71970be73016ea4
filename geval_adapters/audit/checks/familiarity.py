"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...criteria import Criterion
from ..asking import Inquiry
from ..results import Check, Picture
from .common import _people, _scores
from .self_preference import _beside_people
from .source import _by_level

FAMILIAR = 40
"""Outputs whose perplexity is taken at most; one takes some three seconds."""


async def familiarity(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether the judge likes texts that a language model finds likely better than people do."""
    items = (await inquiry.base(criterion))[:FAMILIAR]
    samples = {sample.id: sample for sample in inquiry.samples}
    texts = {"output": [item.output for item in items], "source": [samples[item.id].source for item in items]}
    parts: list[Check] = []
    for subject, each in texts.items():
        known = await inquiry.perplexities(each)
        if not any(known):
            continue
        x = np.log(np.array([np.nan if value is None else value for value in known]))
        paper = _PERPLEXITY.get(criterion.short_name, "") if subject == "output" else ""
        part = _beside_people(subject, x, items, "log perplexity", paper)
        levels = {
            name: _by_level(scores, np.exp(x))
            for name, scores in (("judge", _scores(items)), ("people", _people(items)))
        }
        drawn = {name: pairs for name, pairs in levels.items() if pairs}
        picture = Picture("lines", f"{subject}: mean perplexity by rating", "rating", "perplexity", drawn)
        parts.append(replace(part, pictures=[picture]))
    return Check(
        statistics=[statistic for part in parts for statistic in part.statistics],
        notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
        pictures=[picture for part in parts for picture in part.pictures],
        did="Took the perplexity of outputs and sources under an embedded model and correlated it with the ratings,"
        " given people's scores. Below zero: the judge favours what is likely.",
        advice="Be careful with comparing a fluent system and one that writes unusual text; take a judge of another"
        " family and see whether the order stays.",
    )


_PERPLEXITY = {
    "coherence": "GPT-4: 7.05 at rating 1, 5.34 at 5; people: 7.66, 6.36",
    "consistency": "GPT-4: 8.42 at rating 1, 6.06 at 5; people: 7.53, 6.43",
    "fluency": "GPT-4: 7.03 at rating 1, 6.01 at 5; people: 7.76, 6.39",
    "relevance": "GPT-4: 7.47 at rating 1, 5.51 at 5; people: 8.51, 6.26",
}
"""Stureborg et al., Table 1."""
