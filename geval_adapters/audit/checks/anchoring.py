"""Whether ratings given in one answer pull each other along (Stureborg et al. 2024, §4 and Table 3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...agreement.coefficients import alpha, pearson
from ...agreement.intervals import Floats
from ...criteria import Criterion
from .. import measures
from ..asking import Answered, Asking, Plan, Step, Unmeasurable, item_of
from ..ratings import Ratings
from ..results import Check, Picture, Statistic

TOGETHER = "together"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Each criterion alone, and all in one answer, in an order that turns by one from sample to sample."""
    criteria = asking.criteria
    if len(criteria) < 2:
        raise Unmeasurable("needs two criteria: give --criterion again")
    if len({each.task for each in criteria}) > 1:
        raise Unmeasurable("the criteria are about different tasks")
    gevals = {each.name: asking.geval(each) for each in criteria}
    turned = [[*criteria[k:], *criteria[:k]] for k in range(len(criteria))]

    def step(place: int) -> Step:
        sample = asking.samples[place]
        alone = {name: asking.rating(geval, sample) for name, geval in gevals.items()}
        return alone | {TOGETHER: asking.several(sample, turned[place % len(criteria)])}

    def done(answered: Answered) -> Check:
        samples = [asking.samples[place] for place, _ in answered]

        def column(scores: list[float | None], each: Criterion) -> Floats:
            return np.array([np.nan if score is None else each.scale.normalize(score) for score in scores])

        single = [column([rows[each.name]["score"] for _, rows in answered], each) for each in criteria]
        multi = [column([rows[TOGETHER]["scores"].get(each.name) for _, rows in answered], each) for each in criteria]
        people = [column([sample.human_score(each) for sample in samples], each) for each in criteria]
        first = criteria[0]
        items = [item_of(s, first, rows[first.name]) for s, (_, rows) in zip(samples, answered, strict=True)]
        ratings = Ratings.of({"alone": items}, first.scale)
        turns = np.array([place % len(criteria) for place, _ in answered])
        return conclude(ratings, [each.label for each in criteria], single, multi, people, turns)

    steps = [step(place) for place in range(len(asking.samples))]
    return Plan(steps, lambda answered: _named(done(answered), criteria))


def _named(check: Check, criteria: list[Criterion]) -> Check:
    return replace(check, criterion=", ".join(each.name for each in criteria))


def conclude(
    ratings: Ratings,
    labels: list[str],
    single: list[Floats],
    multi: list[Floats],
    people: list[Floats],
    turns: Floats,
) -> Check:
    """Criteria may be no closer together in one answer than alone, by a size that matters."""
    half = len(labels)

    def between(*columns: Floats) -> Floats:
        *sides, weights = columns
        return measures.mean_correlation(np.array(sides), weights)

    def added(*columns: Floats) -> Floats:
        *sides, weights = columns
        return between(*sides[half:], weights) - between(*sides[:half], weights)

    paper = "r .979 together, .315 people (GPT-4, coherence and consistency)"
    r = "r between criteria"
    statistics = [
        Statistic("one per answer", r, ratings.over(between, *single, within=(-1, 1))),
        Statistic("all in one answer", r, ratings.over(between, *multi, within=(-1, 1))),
        Statistic("all in one answer", "r added", ratings.over(added, *single, *multi), (-2.0, 0.2), paper),
        Statistic("people", r, ratings.over(between, *people, within=(-1, 1))),
    ]
    statistics += [
        Statistic(
            label,
            "α of the two ways",
            ratings.over(lambda a, b, weights: alpha(np.stack([a, b]), weights), one, other, within=(-1, 1)),
        )
        for label, one, other in zip(labels, single, multi, strict=True)
    ]
    for nth in range(half):
        chosen = [
            sum(np.where((turns + nth) % half == k, _centred(side[k]), 0.0) for k in range(half))
            for side in (multi, people)
        ]
        figure = ratings.over(pearson, *(np.asarray(each) for each in chosen), within=(-1, 1))
        paper = f"τ {_ANCHORED[nth]} (GPT-3.5, coherence)" if nth < len(_ANCHORED) else ""
        statistics.append(Statistic(f"rated as number {nth + 1}", "r with people", figure, None, paper))
    pictures = [
        Picture("matrix", f"r between criteria: {name}", "", "", dict(zip(labels, _matrix(columns), strict=True)))
        for name, columns in (("one per answer", single), ("all in one answer", multi), ("people", people))
    ]
    return Check(
        did="Rated several criteria in one answer, in an order that turns from sample to sample, and each alone.",
        statistics=statistics,
        fault="anchored",
        advice="Ask for one criterion per answer, as `geval score` does (Stureborg et al., Table 6).",
        pictures=pictures,
    )


def _centred(values: Floats) -> Floats:
    return np.asarray(values - np.nanmean(values)) if not np.isnan(values).all() else values


def _matrix(columns: list[Floats]) -> list[list[float | None]]:
    kept = ~np.isnan(np.array(columns)).any(axis=0)
    everyone = np.ones((1, int(kept.sum())))
    rows = [[float(pearson(one[kept], other[kept], everyone)[0]) for other in columns] for one in columns]
    return [[None if np.isnan(r) else r for r in row] for row in rows]


_ANCHORED = (0.400, 0.391, 0.359, 0.368)
"""Stureborg et al., Table 3."""
