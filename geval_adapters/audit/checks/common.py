"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Protocol

import numpy as np

from ...agreement.intervals import Figure
from ...agreement.meta_eval import Item
from ...criteria import Criterion, Scale
from .. import measures
from .. import scalars as coefficients
from ..results import Statistic
from ..scalars import Floats, bootstrap

SCALES = {
    "1-5": Scale.of("1-5"),
    "1-5, worded": Scale.of(
        {
            f"{modifier}{level}": round(level + shift, 2)
            for level in range(1, 6)
            for modifier, shift in (("weak ", -1 / 3), ("", 0), ("strong ", 1 / 3))
            if 1 <= level + shift <= 5
        }
    ),
    "1-5, in thirds": Scale.of([round(1 + third / 3, 2) for third in range(13)]),
    "1-10": Scale.of("1-10"),
    "1-100": Scale.of("1-100"),
}
"""The scales of Stureborg et al. (2024), §3.2."""
PREFERRED = "1-10"
"""The scale that they recommend (Table 6)."""
TEMPERATURES = (0.0, 0.5, 1.0)


# --- figures from items ----------------------------------------------------------------------------------------------


class Rated(Protocol):
    """Where plain ratings come from: an inquiry, or a file of them."""

    async def base(self, criterion: Criterion) -> list[Item]:
        """One rating of each sample."""
        ...


STABLE = (0.667, 1.0)
"""Krippendorff's lowest α from which conclusions may be drawn, "tentative ones" (2004, Content Analysis, p. 241)."""
SLIGHT = (-0.1, 0.1)
"""Correlations and shifts, as a share of the scale, that do not count."""


def _scores(items: Sequence[Item]) -> Floats:
    return np.array([np.nan if item.score is None else item.score for item in items])


def _people(items: Sequence[Item]) -> Floats:
    return np.array([np.nan if item.human is None else item.human for item in items])


def documents_of(items: Sequence[Item]) -> list[Hashable]:
    """The document of each item; an item without one stands for itself."""
    return [item.document or item.id for item in items]


def _over(
    statistic: Callable[..., float | None], documents: Sequence[Hashable], *columns: Floats, confidence: float = 0.95
) -> Figure:
    """A statistic of columns, over the items that have a value in all of them."""
    table = np.array(columns)
    kept = np.flatnonzero(~np.isnan(table).any(axis=0)).tolist()
    table = table[:, kept]
    return bootstrap(
        lambda items: statistic(*table[:, items]), [documents[item] for item in kept], confidence=confidence
    )


def _counted(statistic: Callable[[Floats], float], scores: Floats) -> Figure:
    """A figure of what was seen: a resample never sees more, so there is no interval around it."""
    known = scores[~np.isnan(scores)]
    return Figure(statistic(known) if known.size else None, None, None, known.size)


def _alpha(*raters: Floats) -> float | None:
    return measures.alpha(raters)


def _gain(human: Floats, setting: Floats, reference: Floats) -> float | None:
    """How much better than a reference a setting agrees with people."""
    one, other = coefficients.kendall(setting, human), coefficients.kendall(reference, human)
    return None if one is None or other is None else one - other


def _settings(
    reference: str, settings: Mapping[str, Sequence[Item]], scale: Scale, tolerated: tuple[float, float] | None = STABLE
) -> list[Statistic]:
    """Settings of one judge beside a reference setting: how far they say the same, and which agrees with people."""
    base = settings[reference]
    documents, human, scores = documents_of(base), _people(base), _scores(base)
    span = scale.high - scale.low
    found = [Statistic(reference, TAU, _over(coefficients.kendall, documents, scores, human))]
    for name, items in settings.items():
        if name != reference:
            other = _scores(items)
            found += [
                Statistic(name, f"α with “{reference}”", _over(_alpha, documents, scores, other), tolerated),
                Statistic(name, "shift", _over(lambda a, b: float((b - a).mean() / span), documents, scores, other)),
                Statistic(name, TAU, _over(coefficients.kendall, documents, other, human)),
                Statistic(name, GAIN, _over(_gain, documents, human, other, scores)),
            ]
    return found


TAU = "τ with people"
GAIN = "τ gained"

_STUREBORG = {
    "1-5, single": (0.332, 0.362, 0.325, 0.337, 0.339),
    "1-5, averaged": (0.422, 0.370, 0.356, 0.439, 0.397),
    "1-5, worded, single": (0.361, 0.408, 0.345, 0.363, 0.369),
    "1-5, worded, averaged": (0.394, 0.364, 0.316, 0.419, 0.373),
    "1-5, in thirds, single": (0.425, 0.453, 0.380, 0.395, 0.413),
    "1-5, in thirds, averaged": (0.416, 0.378, 0.334, 0.438, 0.392),
    "1-10, single": (0.450, 0.433, 0.366, 0.462, 0.428),
    "1-10, averaged": (0.424, 0.366, 0.332, 0.435, 0.389),
    "1-100, single": (0.463, 0.423, 0.308, 0.339, 0.383),
    "1-100, averaged": (0.406, 0.351, 0.343, 0.414, 0.379),
    "samples": (0.646, 0.630, 0.484, 0.589, 0.587),
    "alone or with others": (0.493, 0.667, 0.472, 0.421, 0.513),
    "1-5 or 1-10": (0.731, 0.442, 0.506, 0.707, 0.597),
    "1-5 or 1-100": (0.557, 0.128, 0.471, 0.600, 0.439),
    "without source": (-0.055, -0.083, -0.025, -0.147, -0.078),
}
"""Tables 2, 7 and 5: coherence, consistency, fluency and relevance on SummEval, and their mean."""
_DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")


def _paper(row: str, criterion: Criterion) -> str:
    if row not in _STUREBORG:
        return ""
    place = _DIMENSIONS.index(criterion.short_name) if criterion.short_name in _DIMENSIONS else 4
    model = "GPT-3.5" if row == "without source" else "GPT-4"
    return f"{_STUREBORG[row][place]:.3f} ({model}, {(*_DIMENSIONS, 'mean')[place]})"


def _beside(statistics: Sequence[Statistic], name: str, paper: Callable[[str], str]) -> list[Statistic]:
    """The statistics, those of a name with what a paper found about their subject."""
    return [replace(each, paper=paper(each.subject)) if each.name == name else each for each in statistics]


def _nan(value: float | None) -> float:
    return np.nan if value is None else value


def _centred(values: Floats) -> Floats:
    return np.asarray(values - np.nanmean(values)) if not np.isnan(values).all() else values


def _between(*columns: Floats) -> float | None:
    """Mean Pearson r over the pairs of columns for which it is defined."""
    found = [r for one, other in combinations(columns, 2) if (r := coefficients.pearson(one, other)) is not None]
    return fmean(found) if found else None


def _matrix(columns: Sequence[Floats]) -> list[list[float | None]]:
    kept = ~np.isnan(np.array(columns)).any(axis=0)
    return [
        [coefficients.pearson(one[kept], other[kept]) if kept.any() else None for other in columns] for one in columns
    ]


_COMPARED = ("1-10", "1-100")
