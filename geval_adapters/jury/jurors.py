"""What is known of each judge of a panel and of all together: who goes with whom, who dissents, what they are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..agreement.coefficients import Ints, mean
from ..agreement.intervals import Figure, Floats, bootstrap
from ..agreement.together import correlations, effective_number, mean_of_pairs
from .panel import LABELS, Panel

SHOWN = 5
"""Dissenting ratings that are told."""


@dataclass(frozen=True)
class Juror:
    """One judge of a panel.

    Attributes:
        name: which.
        n: items that it rated.
        mean, spread: of its scores, as it gave them; None without any.
        weight: in the panel; 0 where it carries nothing, and `why_not` says why.
        weight_low, weight_high: over the folds in which the weights were fitted.
        with_people: Pearson r between its ratings and people's.
        with_others: Pearson r between its ratings and the mean of the others' on the common scale.
        apart: its mean r with each other judge, less the mean r of these with one another; for three judges or more.
    """

    name: str
    n: int
    mean: float | None
    spread: float | None
    weight: float
    weight_low: float
    weight_high: float
    why_not: str
    with_people: Figure
    with_others: Figure
    apart: Figure

    @property
    def disagrees(self) -> bool:
        """Whether it disagrees systematically: it goes with the others by .1 less than they with one another, or by
        more than that, and the whole interval lies below 0.
        """
        return (
            self.apart.value is not None
            and self.apart.high is not None
            and self.apart.value < -0.1
            and self.apart.high < 0
        )


@dataclass(frozen=True)
class Dissent:
    """A rating that is far from the others' mean; `residual` is the difference in standard deviations of all such."""

    place: int
    judge: str
    rating: float
    others: float
    residual: float


@dataclass(frozen=True)
class Bench:
    """What judges come to together.

    Attributes:
        jurors: each judge.
        errors: the mean r between two judges' errors against people: partial correlations given quality, so that scales
            do not matter, `(r_jl − r_jp r_lp / ρ) / √((1 − r_jp² / ρ)(1 − r_lp² / ρ))`, ρ the reliability of people's
            mean scores where several annotators tell it, else 1.
        effective: `k / (1 + (k − 1)·errors)`.
        understated: by which factor standard errors between judges are too small, `√((1 + (k − 1)·r) / (1 − r))`.
        between: the mean r between two judges' ratings; quality and shared errors are both in it.
        alike: the two judges whose residuals (rating − panel) go together most, with that r.
        dissents: the ratings that are farthest from the others'.
        notes: what a reader must know, in words.
    """

    jurors: tuple[Juror, ...]
    errors: Figure
    effective: Figure
    understated: float | None
    between: Figure
    alike: tuple[str, str, float] | None
    dissents: tuple[Dissent, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        jurors = [asdict(each) | {"disagrees": each.disagrees} for each in self.jurors]
        return asdict(self) | {"jurors": jurors, "notes": list(self.notes)}


def bench_of(made: Panel) -> Bench:
    """What is known of a panel's judges; intervals resample documents."""
    ballots = made.ballots
    x = np.where((made.weights > 0)[:, None], made.common.ratings, np.nan)
    inside = np.flatnonzero(made.weights > 0)
    people = ballots.people
    errors, effective, understated, notes = _errors(made, inside)
    return Bench(
        tuple(_juror(made, x, j) for j in range(len(ballots.judges))),
        errors,
        effective,
        understated,
        _over(made, x[inside], mean_of_pairs) if len(inside) > 1 else _nothing("there is one judge"),
        _alike(made, x, inside) if np.isnan(people).all() else None,
        tuple(_dissents(ballots.judges, x)),
        tuple(notes),
    )


def _juror(made: Panel, x: Floats, j: int) -> Juror:
    scores = made.ballots.scores[j]
    own = scores[~np.isnan(scores)]
    others = _mean_of_others(x, j)
    rest = [other for other in np.flatnonzero(made.weights > 0) if other != j]
    apart = _nothing("it takes three judges")
    if len(rest) > 1 and made.weights[j] > 0:
        apart = _over(made, np.vstack([x[j][None], x[rest]]), _first_apart)
    least, most = made.weights_range
    return Juror(
        name=made.ballots.judges[j],
        n=len(own),
        mean=float(own.mean()) if len(own) else None,
        spread=float(own.std()) if len(own) else None,
        weight=float(made.weights[j]),
        weight_low=float(least[j]),
        weight_high=float(most[j]),
        why_not=made.common.why_not[j],
        with_people=_over(made, np.vstack([scores, made.ballots.people]), _first_pair),
        with_others=_over(made, np.vstack([scores, others]), _first_pair),
        apart=apart,
    )


def _first_pair(matrices: Floats) -> Floats:
    return np.asarray(matrices[:, 0, 1])


def _first_apart(matrices: Floats) -> Floats:
    return np.asarray(matrices[:, 0, 1:].mean(axis=1) - mean_of_pairs(matrices[:, 1:, 1:]))


def _over(made: Panel, columns: Floats, figure: Callable[[Floats], Floats]) -> Figure:
    """A figure of correlations between columns, over the items that have all of them."""
    there = np.flatnonzero(~np.isnan(columns).any(axis=0))
    if len(there) < 3:
        return _nothing(f"only {len(there)} items have both")
    documents = [made.ballots.documents[place] for place in there.tolist()]
    with np.errstate(invalid="ignore"):
        return bootstrap(lambda weights: figure(correlations(columns[:, there], weights)), documents, within=(-1, 1))


def _nothing(why: str) -> Figure:
    return Figure(None, None, None, 0, why_not=why)


def _errors(made: Panel, inside: Ints) -> tuple[Figure, Figure, float | None, list[str]]:
    """The mean correlation of the judges' errors, the effective number, and the factor for standard errors."""
    k, ballots = len(inside), made.ballots
    x = made.common.ratings[inside]
    there = np.flatnonzero(~np.isnan(np.vstack([x, ballots.people])).any(axis=0))
    why = "there is one judge" if k < 2 else ""
    if not why and np.isnan(ballots.people).all():
        why = "without people's scores it is not known which errors judges share"
    if not why and len(there) < LABELS:
        why = f"only {len(there)} items have people's scores and all judges', and it takes {LABELS}"
    if why:
        return _nothing(why), _nothing(why), None, []
    noise = ballots.noise[there]
    known = ~np.isnan(noise)
    columns = np.vstack([x[:, there], ballots.people[there]])

    def of_errors(weights: Floats) -> Floats:
        r = correlations(columns, weights)
        reliability = np.ones(len(weights))
        if known.sum() >= 10:
            variance = mean(columns[-1] ** 2, weights) - mean(columns[-1], weights) ** 2
            unreliable = mean(np.nan_to_num(noise), weights * known) / np.where(variance > 0, variance, np.nan)
            reliability = np.where(unreliable < 1, 1 - unreliable, np.nan)
        quality = r[:, :-1, -1] / np.sqrt(reliability)[:, None]
        own = 1 - quality**2
        own = np.where(own > 1e-9, own, np.nan)
        shared = r[:, :-1, :-1] - quality[:, :, None] * quality[:, None, :]
        return mean_of_pairs(np.clip(shared / np.sqrt(own[:, :, None] * own[:, None, :]), -1, 1))

    with np.errstate(invalid="ignore", divide="ignore"):
        rho = bootstrap(of_errors, [ballots.documents[place] for place in there.tolist()], within=(-1, 1))
    value, low, high = (effective_number(k, each) for each in (rho.value, rho.high, rho.low))
    effective = Figure(value, low, high, rho.n, rho.method, rho.why_not)
    understated = None
    if rho.value is not None and rho.value < 1 - 1e-9 and effective.value is not None:
        understated = float(np.sqrt((1 + (k - 1) * rho.value) / (1 - rho.value)))
    note = (
        "the noise in people's scores is taken out"
        if known.sum() >= 10
        else "noise in people's scores is in all judges' errors, so that they look more alike than they are"
    )
    return rho, effective, understated, [note]


def _mean_of_others(x: Floats, j: int) -> Floats:
    others = np.delete(x, j, axis=0)
    there = ~np.isnan(others)
    number = there.sum(axis=0)
    return np.where(number > 0, np.where(there, others, 0.0).sum(axis=0) / np.maximum(number, 1), np.nan)


def _dissents(judges: tuple[str, ...], x: Floats) -> list[Dissent]:
    """The ratings that are farthest from the others' mean, at most one an item."""
    others = np.array([_mean_of_others(x, j) for j in range(len(x))])
    residuals = x - others
    spread = float(np.sqrt(np.nanmean(residuals**2))) if (~np.isnan(residuals)).any() else 0.0
    if spread <= 1e-9:
        return []
    size = np.nan_to_num(np.abs(residuals))
    judge = size.argmax(axis=0)
    places = np.argsort(-size.max(axis=0), kind="stable")[:SHOWN]
    return [
        Dissent(int(i), judges[j], float(x[j, i]), float(others[j, i]), float(residuals[j, i] / spread))
        for i, j in ((i, judge[i]) for i in places)
        if size[j, i] > 1.5 * spread
    ]


def _alike(made: Panel, x: Floats, inside: Ints) -> tuple[str, str, float] | None:
    if len(inside) < 3:
        return None
    own = x[inside]
    there = ~np.isnan(own).any(axis=0)
    if there.sum() < 3:
        return None
    residuals = own[:, there] - own[:, there].mean(axis=0)
    r = correlations(residuals, np.ones((1, int(there.sum()))))[0]
    r = np.where(np.triu(np.ones_like(r), k=1) > 0, np.nan_to_num(r, nan=-2), -2)
    one, other = np.unravel_index(int(r.argmax()), r.shape)
    names = [made.ballots.judges[j] for j in inside]
    return (names[one], names[other], float(r[one, other])) if r[one, other] > -2 else None
