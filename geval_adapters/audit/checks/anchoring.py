"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

import numpy as np

from ...criteria import Criterion
from .. import scalars as coefficients
from ..asking import Inquiry, Unmeasurable
from ..results import Check, Picture, Statistic
from ..scalars import Floats
from .common import _alpha, _between, _centred, _matrix, _nan, _over, _scores, documents_of


async def anchoring(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether ratings given in one answer pull each other along."""
    criteria = inquiry.criteria
    if len(criteria) < 2:
        raise Unmeasurable("needs two criteria: give --criterion again")
    if len({each.task for each in criteria}) > 1:
        raise Unmeasurable("the criteria are about different tasks")
    samples = inquiry.draw(1 + len(criteria))
    alone = [(await inquiry.ratings(samples, each, {}))[0] for each in criteria]
    together = await inquiry.several(samples, criteria)
    documents = documents_of(alone[0])
    single = [_scores(items) for items in alone]
    multi = [np.array([_nan(scores.get(each.name)) for scores in together]) for each in criteria]
    people = [np.array([_nan(sample.human_score(each)) for sample in samples], dtype=np.float64) for each in criteria]
    half = len(criteria)

    def added(*columns: Floats) -> float | None:
        one, other = _between(*columns[half:]), _between(*columns[:half])
        return None if one is None or other is None else one - other

    paper = "r .979 together, .315 people (GPT-4, coherence and consistency)"
    statistics = [
        Statistic("one per answer", "r between criteria", _over(_between, documents, *single)),
        Statistic("all in one answer", "r between criteria", _over(_between, documents, *multi)),
        Statistic("all in one answer", "r added", _over(added, documents, *single, *multi), (-1.0, 0.1), paper),
        Statistic("people", "r between criteria", _over(_between, documents, *people)),
    ]
    statistics += [
        Statistic(each.label, "α of the two ways", _over(_alpha, documents, one, other))
        for each, one, other in zip(criteria, single, multi, strict=True)
    ]
    turns = np.array([inquiry.turn(sample, half) for sample in samples])
    for nth in range(half):
        columns = [
            np.concatenate([np.where((turns + nth) % half == k, _centred(side[k]), np.nan) for k in range(half)])
            for side in (multi, people)
        ]
        figure = _over(coefficients.pearson, documents * half, *columns)
        paper = f"τ {_ANCHORED[nth]} (GPT-3.5, coherence)" if nth < len(_ANCHORED) else ""
        statistics.append(Statistic(f"rated as number {nth + 1}", "r with people", figure, None, paper))
    labels = [each.label for each in criteria]
    pictures = [
        Picture("matrix", f"r between criteria: {name}", "", "", dict(zip(labels, _matrix(columns), strict=True)))
        for name, columns in (("one per answer", single), ("all in one answer", multi), ("people", people))
    ]
    return Check(
        criterion=", ".join(each.name for each in criteria),
        did="Rated several criteria in one answer, in an order that turns from sample to sample, and each alone.",
        statistics=statistics,
        fault="anchored",
        advice="Ask for one criterion per answer, as `geval score` does (Stureborg et al., Table 6).",
        pictures=pictures,
    )


_ANCHORED = (0.400, 0.391, 0.359, 0.368)
"""Stureborg et al., Table 3."""
