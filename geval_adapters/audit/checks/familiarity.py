"""Whether the judge likes what a language model finds likely better than people do (Stureborg et al. 2024, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...criteria import Criterion
from ...samples import Sample
from ..asking import Asking, Plan, Question
from ..results import Check, Picture
from .common import Rated, rated
from .favour import favour
from .source import by_level

BASE = "rating"
FAMILIAR = 40
"""Outputs whose perplexity is taken at most; one takes some three seconds."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """One plain rating each, and the perplexity of output and source."""
    plain = await asking.plain(criterion)

    def ask(sample: Sample) -> Mapping[str, Question]:
        texts = {"output": sample.output, "source": sample.source or ""}
        return {BASE: asking.rating(plain, sample)} | {
            name: asking.perplexity(sample, text) for name, text in texts.items()
        }

    return rated(asking, criterion, ask, lambda each: conclude(each, criterion), asking.samples[:FAMILIAR])


def conclude(rated: Rated, criterion: Criterion) -> Check:
    """Likely texts may be rated no higher than equally good unlikely ones, by a size that matters."""
    ratings = rated.ratings(criterion.scale)
    scores = ratings.scores[BASE]
    parts: list[Check] = []
    for subject in ("output", "source"):
        perplexities = [item.score for item in rated.items[subject]]
        if not any(perplexities):
            continue
        x = np.log(np.array([np.nan if value is None else value for value in perplexities]))
        paper = _PERPLEXITY.get(criterion.short_name, "") if subject == "output" else ""
        part = favour(subject, x, scores, ratings, "log perplexity", paper)
        low, span = criterion.scale.low, ratings.span
        columns = {"judge": scores, "people": ratings.people}
        levels = {name: by_level(low + span * each, np.exp(x)) for name, each in columns.items()}
        drawn = {name: pairs for name, pairs in levels.items() if pairs}
        picture = Picture("lines", f"{subject}: mean perplexity by rating", "rating", "perplexity", drawn)
        parts.append(replace(part, pictures=[picture]))
    return Check(
        statistics=[statistic for part in parts for statistic in part.statistics],
        notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
        pictures=[picture for part in parts for picture in part.pictures],
        did="Took the perplexity of outputs and sources under an embedded model and measured how much higher likely"
        " ones are rated than equally good ones. Below zero: the judge favours what is likely.",
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
