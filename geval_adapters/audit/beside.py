"""Judges side by side on the same items: whether they err together (a jury of like-minded judges is one judge)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..agreement.coefficients import pearson
from ..agreement.intervals import Figure, Floats
from ..agreement.judged import Item
from ..agreement.together import effective_number
from ..criteria import Criterion
from . import measures
from .asking import LEAST, Asking, item_of
from .ratings import Ratings
from .results import Shared
from .run import AuditRun


def shared_errors(runs: Sequence[AuditRun], criterion: Criterion) -> Shared:
    """How far the errors (judge − people) of judges go together, from the plain ratings that their audits hold.

    The mean Pearson r over the pairs of judges, ρ̄, and `k / (1 + (k − 1)·ρ̄)` judges with independent errors that these
    k are worth. People's noise is in all errors alike; where several annotators scored an item it is taken out:
    `r = (S_ij − noise) / √((S_ii − noise)(S_jj − noise))`.
    """
    names = tuple(run.request.judge.name for run in runs)
    plain = [_plain(run.asking, criterion) for run in runs]
    common = [sample for sample in runs[0].asking.samples if all(sample.id in each for each in plain)]
    nothing = Figure(None, None, None, 0)
    if len(common) < LEAST:
        return Shared(criterion.name, names, (), nothing, None, f"only {len(common)} items were rated by all judges")
    items = {name: [own[sample.id] for sample in common] for name, own in zip(names, plain, strict=True)}
    ratings = Ratings.of(items, criterion.scale)
    if np.isnan(ratings.people).all():
        return Shared(criterion.name, names, (), nothing, None, "without people's scores errors are not known")
    errors = [ratings.scores[name] - ratings.people for name in names]
    annotated = bool((~np.isnan(ratings.noise)).sum() >= 10)
    noise = np.where(np.isnan(ratings.noise), np.inf, ratings.noise)

    def r(one: Floats, other: Floats, variance: Floats, weights: Floats) -> Floats:
        if not annotated:
            return pearson(one, other, weights)
        variance = np.where(np.isinf(variance), np.nan, variance)
        return measures.error_correlation(one, other, measures.noise_of_people(variance, one, None, weights), weights)

    def mean_r(*columns: Floats) -> Floats:
        *sides, variance, weights = columns
        pairs = [r(one, other, variance, weights) for one, other in combinations(sides, 2)]
        return np.asarray(np.mean(pairs, axis=0))

    mean = ratings.over(mean_r, *errors, noise, within=(-1, 1))
    each = [
        [ratings.over(r, one, other, noise).value if one is not other else 1.0 for other in errors] for one in errors
    ]
    k = len(names)
    worth = effective_number(k, mean.value)
    note = (
        "the noise in people's scores is taken out"
        if annotated
        else "noise in people's scores is in all judges' errors, so that they look more alike than they are"
    )
    return Shared(criterion.name, names, tuple(tuple(row) for row in each), mean, worth, note)


def _plain(asking: Asking, criterion: Criterion) -> dict[str, Item]:
    """The plain ratings that were given, by sample."""
    geval = asking.geval(criterion, readout="auto" if asking.weighs else "samples")
    questions = {sample.id: (sample, asking.rating(geval, sample)) for sample in asking.samples}
    return {
        name: item_of(sample, criterion, asking.answers[question.asked])
        for name, (sample, question) in questions.items()
        if question.asked in asking.answers
    }
