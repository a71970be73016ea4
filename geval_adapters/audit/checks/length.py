"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...criteria import Criterion
from ..asking import Unmeasurable
from ..results import Check
from .common import Rated
from .self_preference import _beside_people

# --- the checks ------------------------------------------------------------------------------------------------------


async def length(inquiry: Rated, criterion: Criterion) -> Check:
    """Whether the judge likes long outputs better than people do."""
    items = await inquiry.base(criterion)
    if any(item.output is None for item in items):
        raise Unmeasurable("the ratings do not hold the rated texts")
    words = np.array([float(len((item.output or "").split())) for item in items])
    return replace(
        _beside_people("words", words, items, "length"),
        did="Correlated the ratings with the number of words, given people's scores.",
        advice="Report agreement beside that of length alone (`geval meta-eval`), say in the criterion that length does"
        " not count, and compare systems of equal length.",
    )
