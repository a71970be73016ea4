"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ...agreement.meta_eval import Item
from ...criteria import Criterion
from .. import measures
from .. import scalars as coefficients
from ..asking import LEAST, Unmeasurable
from ..results import Check, Picture, Statistic
from ..scalars import Floats
from .common import SLIGHT, Rated, _over, _people, _scores, documents_of


def _beside_people(subject: str, x: Floats, items: Sequence[Item], axis: str, paper: str = "") -> Check:
    """How far a property of the items moves the judge's scores beyond what it moves people's."""
    documents, scores, human = documents_of(items), _scores(items), _people(items)
    partial = _over(coefficients.spearman, documents, scores, x, human)
    statistics = [
        Statistic(subject, "ρ with the ratings, given people's", partial, SLIGHT, paper),
        Statistic(subject, "ρ with the ratings", _over(coefficients.spearman, documents, scores, x)),
        Statistic(subject, "ρ with people's", _over(coefficients.spearman, documents, human, x)),
    ]
    notes = []
    if not partial.n:
        statistics = statistics[1:2]
        notes = ["There are no scores by people: what correlates with good ratings may be good, so nothing counts."]
    elif partial.value is None:
        notes = ["A side is constant, so a correlation is undefined."]
    columns = {"judge": scores, "people": human}
    series = {name: [pair for pair in zip(x.tolist(), y.tolist(), strict=True)] for name, y in columns.items()}
    known = {name: [pair for pair in pairs if not np.isnan(pair).any()] for name, pairs in series.items()}
    drawn = {name: pairs for name, pairs in known.items() if pairs}
    picture = Picture("points", f"ratings by {axis}", f"{axis} ({subject})", "score", drawn)
    return Check(statistics=statistics, notes=notes, pictures=[picture])


async def self_preference(inquiry: Rated, criterion: Criterion) -> Check:
    """Whether the judge favours a system, its own perhaps, over what people say of it."""
    items = [
        item
        for item in await inquiry.base(criterion)
        if item.system is not None and item.score is not None and item.human is not None
    ]
    counts = Counter(str(item.system) for item in items)
    systems = [system for system in sorted(counts) if counts[system] >= LEAST]
    if len(systems) < 2:
        raise Unmeasurable(f"needs two systems (system_id) with {LEAST} rated outputs each that people scored, too")
    items = [item for item in items if str(item.system) in systems]
    documents, scores, human = documents_of(items), _scores(items), _people(items)
    numbers = np.array([float(systems.index(str(item.system))) for item in items])
    span = criterion.scale.high - criterion.scale.low

    def gap(number: int) -> Callable[..., float | None]:
        def of(judge: Floats, human: Floats, system: Floats) -> float | None:
            found = float(measures.system_gaps(judge, human, system, len(systems))[number])
            return None if np.isnan(found) else found / span

        return of

    # One interval per system: as many as there are would find a favourite by chance, so each is wider (Bonferroni).
    confidence = 1 - 0.05 / len(systems)
    gaps = [_over(gap(k), documents, scores, human, numbers, confidence=confidence) for k in range(len(systems))]
    statistics = [
        Statistic(system, "favoured by", figure, (-1.0, 0.05)) for system, figure in zip(systems, gaps, strict=True)
    ]
    means = {
        system: [(float(human[numbers == k].mean()), float(scores[numbers == k].mean()))]
        for k, system in enumerate(systems)
    }
    picture = Picture("points", "means by system", "people", "judge", means)
    return Check(
        did="Measured how much higher each system is rated than the others where people's scores are equal, as a share"
        " of the scale (analysis of covariance).",
        statistics=statistics,
        advice="Do not let a model judge its own outputs or its relatives': take a judge of another family, or"
        " several.",
        notes=[
            "GPT-4 rated GPT-3.5's summaries above people's, also where people preferred these (Liu et al., Figure 2)."
        ],
        pictures=[picture],
    )
