"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...criteria import Criterion
from ..asking import Inquiry, Unmeasurable
from ..results import Check
from ..scalars import Floats
from .common import GAIN, STABLE, _beside, _paper, _settings


def _by_level(scores: Floats, values: Floats) -> list[tuple[float, float]]:
    """The mean value of the items at each whole score."""
    kept = ~np.isnan(scores) & ~np.isnan(values)
    levels = np.rint(scores[kept])
    return [(float(level), float(values[kept][levels == level].mean())) for level in np.unique(levels)]


async def source(inquiry: Inquiry, criterion: Criterion) -> Check:
    """What becomes of the ratings when the source is taken away."""
    if not any(sample.source for sample in inquiry.samples):
        raise Unmeasurable("the samples have no source")
    shows = "source" in (*criterion.needs, *criterion.optional)
    kept = criterion if shows else replace(criterion, optional=(*criterion.optional, "source"))
    needs, optional = (
        tuple(field for field in fields if field != "source") for fields in (criterion.needs, criterion.optional)
    )
    samples = inquiry.draw(2)
    settings = {
        "with source": await inquiry.plain(samples, kept),
        "without source": await inquiry.plain(samples, replace(criterion, needs=needs, optional=optional)),
    }
    needed = "source" in criterion.needs
    # What is judged against the source must change without it; what is not must stay.
    statistics = _settings("with source", settings, criterion.scale, (-1.0, 0.9) if needed else STABLE)
    return Check(
        did="Rated the same outputs with and without their source.",
        statistics=_beside(statistics, GAIN, lambda subject: _paper(subject, criterion)),
        fault="ignores the source" if needed else "sensitive",
        advice="Where ratings hardly change without the source, do not trust the judge with what depends on it."
        if needed
        else "Show the source also where the criterion does not need it (Stureborg et al., Table 6), and never compare"
        " ratings that were given with it and without.",
        notes=[f"The criterion {'is' if needed else 'is not'} about the source."],
    )
