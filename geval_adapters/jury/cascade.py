"""A cascade: a cheap judge rates everything, and a dear one what the cheap one is unsure of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..agreement.coefficients import mean, pearson
from ..agreement.intervals import Figure, Floats, bootstrap
from ..criteria import Criterion, digest
from ..judge.base import Usage
from .panel import Ballots

LEAST = 10
"""Probe items from which the judges' scales are put beside one another."""

Bools = npt.NDArray[np.bool_]
Calibration = Literal["mapped", "own"]
"""Whether the cheap judge's scores are on the dear one's scale, or on its own."""


def probed(criterion: Criterion, identity: str, share: float) -> bool:
    """Whether an item is one of those that both judges are asked about whatever comes: always the same ones.

    >>> from geval_adapters.criteria import find_criterion
    >>> sum(probed(find_criterion("fluency"), str(number), 0.1) for number in range(1000))
    85
    """
    return int(digest(f"{criterion.key} {identity}", 12), 16) / 16**12 < share


@dataclass(frozen=True)
class Cascade:
    """What a cascade comes to.

    Attributes:
        ballots: the cheap judge's scores and the dear one's.
        unsure: items that the cheap judge was unsure of.
        probe: items that it was sure of and that both were asked about; each is one of `1 / share` such items.
        share: of the sure items, those that both were asked about.
        calibration: `mapped` where the cheap judge's scores were put on the dear one's scale by mean and spread,
            `d = m_dear + s_dear / s_cheap · (c − m_cheap)` (linear equating), over the probe: items that both rated and
            of the kind whose score is the cheap judge's; `own` where these are fewer than `LEAST`.
        slope, shift: `d = slope · c + shift`; 1 and 0 where nothing was mapped.
        score: of each item: the dear judge's where the cheap one was unsure, else the cheap one's; NaN where that one
            gave none.
    """

    ballots: Ballots
    unsure: Bools
    probe: Bools
    share: float
    calibration: Calibration
    slope: float
    shift: float
    score: Floats


@dataclass(frozen=True)
class Cost:
    """What a cascade cost in agreement, against asking the dear judge everywhere; all intervals resample documents.

    Attributes:
        with_dear: r between its scores and the dear judge's, if that had rated everything: items that both rated, each
            probe item weighing as many as it stands for.
        difference: the mean absolute difference from the dear judge's scores, over all items alike.
        cascade, cheap, dear: r with people, of the items that have people's scores; the dear judge's as `with_dear` is.
        lost: `dear − cascade` of these r, over the items that both rated.
        why_not: why nothing is known of it, in words.
    """

    with_dear: Figure
    difference: Figure
    cascade: Figure
    cheap: Figure
    dear: Figure
    lost: Figure
    why_not: str

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


def decide(ballots: Ballots, unsure: Bools, asked: Bools, share: float) -> Cascade:
    """Decide each item.

    Args:
        ballots: of the cheap judge and the dear one, in this order.
        unsure: whether the cheap judge was unsure.
        asked: whether both are asked whatever comes (`probed`).
        share: of such items.
    """
    cheap, dear = ballots.scores
    both = ~np.isnan(cheap) & ~np.isnan(dear)
    probe = both & asked & ~unsure
    slope, shift = 1.0, 0.0
    calibration: Calibration = "own"
    if probe.sum() >= LEAST:
        spread = cheap[probe].std(), dear[probe].std()
        if min(spread) > 1e-9:
            slope = float(spread[1] / spread[0])
            shift = float(dear[probe].mean() - slope * cheap[probe].mean())
            calibration = "mapped"
    mapped = np.clip(slope * cheap + shift, *ballots.scale) if calibration == "mapped" else cheap
    return Cascade(ballots, unsure, probe, share, calibration, slope, shift, np.where(unsure, dear, mapped))


def cost_of(made: Cascade) -> Cost:
    """What a cascade cost in agreement."""
    cheap, dear = made.ballots.scores
    people, score = made.ballots.people, made.score
    weights = _weights(made.unsure, made.probe, made.share)
    known = ~np.isnan(score) & ~np.isnan(dear) & (weights > 0)
    told = ~np.isnan(people)
    why = ""
    blind = not made.probe.any() and bool((~made.unsure & ~np.isnan(score)).any())
    if blind:
        why = "no item that the cheap judge was sure of was asked of both"
        if not told.any():
            why += ", and there are no people's scores: what the cascade costs in agreement is not known"
    nothing = Figure(None, None, None, 0, why_not=why or "there are no people's scores")
    with_dear = difference = dear_r = lost = nothing
    if not blind:
        with_dear = _figure(made, known, weights, lambda w: pearson(score[known], dear[known], w), (-1, 1))
        difference = _figure(made, known, weights, lambda w: mean(np.abs(score - dear)[known], w), (0, np.inf))
    own = told & ~np.isnan(score)
    flat = np.ones(len(score))
    cascade_r = _with_people(made, own, flat, score) if told.any() else nothing
    cheap_r = _with_people(made, told & ~np.isnan(cheap), flat, cheap) if told.any() else nothing
    if told.any() and not blind:
        both = known & told
        dear_r = _with_people(made, both, weights, dear)
        lost = _figure(
            made, both, weights,
            lambda w: pearson(dear[both], people[both], w) - pearson(score[both], people[both], w), (-2, 2),
        )  # fmt: skip
    return Cost(with_dear, difference, cascade_r, cheap_r, dear_r, lost, why)


def everywhere(made: Cascade, usage: Mapping[str, Floats], items: int) -> dict[str, float | None]:
    """What asking the dear judge about all items would have taken, from what it took where it was asked.

    Args:
        made: the cascade.
        usage: figures of each item that the dear judge was asked about, by their names; NaN for others, and unknown.
        items: how many there are.
    """
    weights = _weights(made.unsure, made.probe, made.share)
    found: dict[str, float | None] = {}
    for name, each in usage.items():
        known = (weights > 0) & ~np.isnan(each)
        found[name] = float(np.average(each[known], weights=weights[known])) * items if known.any() else None
    return found


def spent_of(usage: Usage) -> dict[str, float]:
    """The figures of what was spent, NaN where unknown."""
    return {
        "requests": usage.requests,
        "tokens": usage.prompt_tokens + usage.completion_tokens,
        "cost": np.nan if usage.cost is None else usage.cost,
    }


def _weights(unsure: Bools, probe: Bools, share: float) -> Floats:
    """How many items each stands for, of those that the dear judge was asked about."""
    return np.where(unsure, 1.0, np.where(probe, 1 / share if share else 0.0, 0.0))


def _with_people(made: Cascade, there: Bools, weights: Floats, scores: Floats) -> Figure:
    people = made.ballots.people
    return _figure(made, there, weights, lambda w: pearson(scores[there], people[there], w), (-1, 1))


def _figure(made: Cascade, there: Bools, weights: Floats, figure: Any, within: tuple[float, float]) -> Figure:
    if there.sum() < 3:
        return Figure(None, None, None, int(there.sum()), why_not=f"only {int(there.sum())} items tell")
    documents = [made.ballots.documents[place] for place in np.flatnonzero(there).tolist()]
    with np.errstate(invalid="ignore"):
        return bootstrap(lambda rows: figure(rows * weights[there]), documents, within=within)
