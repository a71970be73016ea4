"""What a judge rates higher than people do: the figures that length and familiarity share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...agreement.coefficients import spearman
from ...agreement.intervals import Floats
from .. import measures
from ..ratings import Ratings
from ..results import Check, Picture, Statistic

SLIGHT = (-0.025, 0.025)
"""How much more, as a share of the scale, one standard deviation of a property may bring: a tenth of a point of 1-5."""
EFFECT = "per standard deviation, quality being equal"


def favour(subject: str, x: Floats, scores: Floats, ratings: Ratings, axis: str, paper: str = "") -> Check:
    """How far a property of the items raises the judge's scores where the outputs are equally good."""
    people = ratings.people
    statistics = [
        Statistic(subject, "ρ with the ratings", ratings.over(spearman, scores, x, within=(-1, 1))),
        Statistic(subject, "ρ with people's", ratings.over(spearman, people, x, within=(-1, 1))),
    ]
    notes = []
    if np.isnan(people).all():
        statistics = statistics[:1]
        notes = ["There are no scores by people: what correlates with good ratings may be good, so nothing counts."]
    else:
        effect, assumed = ratings.beside_people(measures.effect_beside_quality, scores, x)
        statistics.insert(0, Statistic(subject, EFFECT, effect, SLIGHT, paper))
        notes = [assumed[:1].upper() + assumed[1:] + "."]
        if statistics[0].verdict == "unclear" and "differences" not in assumed:
            naive, _ = without_noise(ratings).beside_people(measures.effect_beside_quality, scores, x)
            if Statistic(subject, EFFECT, naive, SLIGHT).verdict == "beyond":
                notes.append(
                    "Were people's scores without noise, this would be a bias; as it is, it cannot be told apart from"
                    " noise in people's scores: give the scores of several annotators for each item (a list), or"
                    " --reliability."
                )
    columns = {"judge": scores, "people": people}
    series = {name: [pair for pair in zip(x.tolist(), y.tolist(), strict=True)] for name, y in columns.items()}
    complete = {name: [pair for pair in pairs if not np.isnan(pair).any()] for name, pairs in series.items()}
    drawn = {name: pairs for name, pairs in complete.items() if pairs}
    picture = Picture("points", f"ratings by {axis}", f"{axis} ({subject})", "share of the scale", drawn)
    return Check(statistics=statistics, notes=notes, pictures=[picture])


def without_noise(ratings: Ratings) -> Ratings:
    """The same, were people's scores without noise."""
    return replace(ratings, reliability=(1.0, 1.0))
