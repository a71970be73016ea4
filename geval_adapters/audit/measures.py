"""Statistics that show how a judge uses its scale and what it favours: columns and rows of weights in, figures out.

Like `agreement.coefficients` they take as last argument how often each item is there, one row for each resample, and
return one figure a row; NaN is undefined.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..agreement import coefficients
from ..agreement.coefficients import NOISE, mean
from ..agreement.intervals import Floats, chunks
from ..criteria import Scale

# --- how a scale is used ---------------------------------------------------------------------------------------------


def granularity(scores: Floats) -> float:
    """Effective granularity: how many different scores are given (Stureborg et al. 2024, §3.2, "G" in Table 2)."""
    return float(len(np.unique(scores.round(2))))


def range_used(scores: Floats, scale: Scale) -> float:
    """The share of the scale between the lowest and the highest score given, in [0, 1]."""
    return float((scores.max() - scores.min()) / (scale.high - scale.low))


def entropy(scores: Floats, weights: Floats) -> Floats:
    """Entropy of the scores given, in bits; 0 for a judge that always gives the same.

    >>> entropy(np.array([1.0, 1.0, 5.0, 5.0]), np.ones((1, 4))).tolist()
    [1.0]
    """
    values, codes = np.unique(scores.round(2), return_inverse=True)
    p = weights @ (codes[:, None] == np.arange(values.size)) / weights.sum(axis=1, keepdims=True)
    return np.asarray(-(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1)) + 0.0


def round_number_excess(scores: Floats, scale: Scale, weights: Floats) -> Floats:
    """How much more often round scores are given than their share of the scale (Stureborg et al. 2024, Fig. 3).

    Round are the multiples of five on a scale of more than twenty whole numbers, and the whole numbers on one that has
    steps between them; on other scales nothing is round, and the result is NaN. Unlike a test against uniform scores
    this asks nothing of the scores' shape: on either side of a round score there are others as good. The ends of the
    scale have no other side, and may be what all outputs deserve: they are left out.

    >>> round_number_excess(np.array([80.0, 85.0, 90.0, 91.0, 100.0]), Scale.of("1-100"), np.ones((1, 5))).round(3)
    array([0.556])
    """
    if len(scale.values) > 20:
        unit = 5
    elif any(value != int(value) for value in scale.values):
        unit = 1
    else:
        return np.full(len(weights), np.nan)
    values = np.array(scale.values[1:-1])
    inner = (scores > scale.low) & (scores < scale.high)
    return mean((scores % unit == 0).astype(float), np.where(inner, weights, 0.0)) - float((values % unit == 0).mean())


def binned(scores: Floats, scale: Scale, levels: int = 5) -> Floats:
    """Scores of any scale as levels 1 … `levels` of equal width (Stureborg et al. 2024, Table 7).

    >>> binned(np.array([1.0, 20.0, 21.0, 100.0]), Scale.of("1-100")).tolist()
    [1.0, 1.0, 2.0, 5.0]
    """
    share = (scores - scale.low) / (scale.high - scale.low)
    return np.asarray(np.minimum(np.floor(share * levels + NOISE), levels - 1) + 1)


# --- what a change does, beside a retest -----------------------------------------------------------------------------


def shift(before: Floats, after: Floats, weights: Floats) -> Floats:
    """How much higher the ratings are after a change: `mean(after − before)`; a noisy judge's is 0 on average."""
    return mean(after - before, weights)


def moved(before: Floats, retest: Floats, after: Floats, weights: Floats) -> Floats:
    """How far a change moves ratings beyond what asking again does: `mean |after − before| − mean |retest − before|`.

    >>> moved(np.array([0.2, 0.8]), np.array([0.3, 0.7]), np.array([0.5, 0.9]), np.ones((1, 2))).round(3).tolist()
    [0.1]
    """
    return mean(np.abs(after - before) - np.abs(retest - before), weights)


def changed(before: Floats, retest: Floats, after: Floats, weights: Floats) -> Floats:
    """How far a change changes ratings, together or one by one: the larger of |shift| and `moved`; 0 if not at all."""
    together = np.abs(shift((before + retest) / 2, after, weights))
    return np.maximum(together, moved(before, retest, after, weights))


def gain(people: Floats, setting: Floats, reference: Floats, weights: Floats) -> Floats:
    """How much better than a reference a setting agrees with people, in τ-b."""
    return coefficients.kendall(setting, people, weights) - coefficients.kendall(reference, people, weights)


def mean_correlation(columns: Floats, weights: Floats) -> Floats:
    """Mean Pearson r over the pairs of columns (columns × items) for which it is defined."""
    each = np.array([coefficients.pearson(one, other, weights) for one, other in combinations(columns, 2)])
    defined = ~np.isnan(each)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(each).sum(axis=0) / defined.sum(axis=0))


# --- how far replies agree -------------------------------------------------------------------------------------------


def reply_variance(replies: Floats) -> Floats:
    """The variance of the replies to each item (replies × items, NaN where one failed); NaN for fewer than two."""
    rated = ~np.isnan(replies)
    k = rated.sum(axis=0)
    values = np.where(rated, replies, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = np.where(rated, replies - values.sum(axis=0) / k, 0.0)
        return np.asarray(np.where(k >= 2, (centred**2).sum(axis=0) / (k - 1), np.nan))


def mean_difference(replies: Floats) -> Floats:
    """The mean absolute difference between two replies to each item (replies × items); NaN for fewer than two replies.

    >>> mean_difference(np.array([[1.0, 2.0], [1.0, 3.0], [2.0, np.nan]])).round(2).tolist()
    [0.67, 1.0]
    """
    each = np.abs(np.array([one - other for one, other in combinations(replies, 2)]))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(each).sum(axis=0) / (~np.isnan(each)).sum(axis=0))


def exact_agreement(replies: Floats) -> Floats:
    """The share of the pairs of replies to each item that are equal; NaN for fewer than two replies.

    >>> exact_agreement(np.array([[1.0, 2.0], [1.0, 3.0], [2.0, np.nan]])).round(2).tolist()
    [0.33, 0.0]
    """
    pairs = [
        (one.round(2) == other.round(2), ~np.isnan(one) & ~np.isnan(other)) for one, other in combinations(replies, 2)
    ]
    equal, there = (np.array([pair[k] for pair in pairs]).astype(float) for k in (0, 1))
    with np.errstate(invalid="ignore"):
        return np.asarray((equal * there).sum(axis=0) / there.sum(axis=0))


# --- what is favoured beyond what people say, whose scores are noisy themselves -------------------------------------


def _moments(weights: Floats, *columns: Floats) -> tuple[list[Floats], dict[tuple[int, int], Floats]]:
    """Weighted means and covariances of columns, by row."""
    means = [mean(column, weights) for column in columns]
    total = weights.sum(axis=1)
    pairs = {}
    for i, one in enumerate(columns):
        for j, other in enumerate(columns[: i + 1]):
            pairs[i, j] = pairs[j, i] = (weights @ (one * other)) / total - means[i] * means[j]
    return means, pairs


def noise_of_people(variance: Floats, people: Floats, reliability: float | None, weights: Floats) -> Floats:
    """The variance of people's mean scores that is noise.

    From several annotators it is the mean over items of `s² / k` (Frost & Thompson 2000, "Correcting for regression
    dilution bias", replicates); else `(1 − reliability) · Var(people)`.

    Args:
        variance: `s² / k` of each item; NaN where it has fewer than two annotators.
        people: their mean scores.
        reliability: the share of the variance that is not noise; None to take `variance`.
        weights: rows by items.
    """
    if reliability is None:
        several = np.where(np.isnan(variance), 0.0, weights)
        return mean(np.nan_to_num(variance), several)
    return (1 - reliability) * _moments(weights, people)[1][0, 0]


def effect_beside_quality(judge: Floats, people: Floats, x: Floats, noise: Floats, weights: Floats) -> Floats:
    """How much higher the judge rates for one standard deviation more of x, outputs being equally good.

    The regression judge = a + b·quality + c·x with errors in variables: people's scores are quality plus noise, so
    their variance is too large by it, and c without correction takes up what noise hides of b (Fuller 1987,
    "Measurement Error Models", eq. 2.2.11): `c = (S_jx (S_pp − noise) − S_jp S_px) / ((S_pp − noise) S_xx − S_px²)`.
    NaN where the noise leaves nothing of people's scores to go by.

    >>> people, x = np.array([0.0, 0.5, 0.5, 1.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> effect_beside_quality(people + 0.1 * x, people, x, np.zeros(1), np.ones((1, 4))).round(3).tolist()
    [0.1]
    """
    _, s = _moments(weights, judge, people, x)
    quality = s[1, 1] - noise
    left = quality * s[2, 2] - s[1, 2] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (s[0, 2] * quality - s[0, 1] * s[1, 2]) / left
        enough = left > 0.1 * s[1, 1] * s[2, 2]
        return np.asarray(np.where(enough, slope * np.sqrt(s[2, 2]), np.nan))


def effect_in_pairs(
    judge: Floats, people: Floats, x: Floats, document: Floats, noise: Floats, weights: Floats, near: float
) -> Floats:
    """How much higher the judge rates for one standard deviation more of x, within pairs balanced for quality.

    The pairs are of one document, and of nearly the same expected quality: `q̂ = E[q | p, x]`, the linear prediction
    from people's score p and x that allows for noise in p (regression calibration; matching on p itself would not do:
    of two outputs with equal noisy scores the one whose x goes with quality is the better one). Over the pairs with
    `|Δq̂| ≤ near` it is `Σ (Δjudge − b Δq̂) Δx / Σ Δx²`, where b, the line's slope on quality, takes out the little
    that is left. Documents that differ in both do not enter, and a judge whose ratings rise by no straight line hardly.

    Returns:
        A figure a row, NaN where noise is all there is, or there are no such pairs.

    >>> people, x = np.array([0.0, 0.05, 0.5, 0.52]), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> document = np.array([0.0, 0.0, 1.0, 1.0])
    >>> effect_in_pairs(people + 0.1 * x, people, x, document, np.zeros(1), np.ones((1, 4)), 0.1).round(3).tolist()
    [0.1]
    """
    one, other = np.nonzero(np.triu(document[:, None] == document, k=1))
    dj, dp, dx = (column[one] - column[other] for column in (judge, people, x))
    _, s = _moments(weights, judge, people, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = (s[1, 1] - noise) * s[2, 2] - s[1, 2] ** 2
        spread = s[1, 1] * s[2, 2] - s[1, 2] ** 2
        by_people, by_x = left / spread, s[1, 2] * noise / spread
        steep = (s[0, 1] * s[2, 2] - s[0, 2] * s[1, 2]) / left
        slopes = []
        for rows in chunks(np.column_stack([by_people, by_x, steep, weights]), one.size):
            dq = rows[:, :1] * dp + rows[:, 1:2] * dx
            pairs = np.where((np.abs(dq) <= near) & (rows[:, :1] > 0.1), rows[:, 3:][:, one], 0.0)
            slopes.append((pairs * (dj - rows[:, 2:3] * dq) * dx).sum(axis=1) / (pairs * dx**2).sum(axis=1))
        return np.asarray(np.concatenate(slopes) * np.sqrt(s[2, 2]))


def system_gaps(judge: Floats, people: Floats, system: Floats, noise: Floats, weights: Floats) -> Floats:
    """How much higher the judge rates each system than it would, did it rate it like the others.

    A line, judge = a + b·quality, is fitted to the items of all other systems; the gap of a system is how far its mean
    lies above that line. A lenient judge, or one that uses less of the scale, favours nobody for it. With people's
    scores in the place of quality b would be too small wherever people are noisy, and the best systems would look
    favoured. So the line is fitted to the quality that is to be expected of an item given its score and its system
    (regression calibration: Carroll et al. 2006, "Measurement Error in Nonlinear Models", ch. 4), of people's sums of
    squares between (B) and within (W) the other systems, G of them with n items:

    `b = (λ_B B_jp + λ_W W_jp) / (λ_B² B_pp + λ_W² W_pp)`, with `λ_B = 1 − (G − 1)·noise / B_pp` and
    `λ_W = 1 − (n − G)·noise / W_pp`, both in [0, 1].

    Means of systems are nearly free of noise: where systems differ widely they carry the line, and what is left of
    single items under much noise does not make it waver.

    Args:
        judge, people: scores of items.
        system: the number of each item's system.
        noise: the variance of people's scores that is noise, by row.
        weights: rows by items.

    Returns:
        Rows by systems, in the order of their numbers; NaN for a system without items, or without others, or where
        noise leaves nothing to go by.

    >>> judge, people = np.array([2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 2.0, 3.0])
    >>> system_gaps(judge, people, np.array([0.0, 0.0, 1.0, 1.0]), np.zeros(1), np.ones((1, 4))).tolist()
    [[-1.0, 1.0]]
    """
    member = (system[:, None] == np.unique(system)).astype(float)
    n, j, p, pj, pp = (
        (weights * each) @ member for each in (np.ones_like(judge), judge, people, people * judge, people**2)
    )

    def others(own: Floats) -> Floats:
        return np.asarray(own.sum(axis=1, keepdims=True) - own)

    with np.errstate(divide="ignore", invalid="ignore"):
        there = n > 0
        by_means = [np.where(there, each / n, 0.0) for each in (p * j, p**2)]
        within = [others(whole - means) for whole, means in zip((pj, pp), by_means, strict=True)]
        whole = others(n)
        between = [
            others(means) - others(p) * others(side) / whole for means, side in zip(by_means, (j, p), strict=True)
        ]
        groups = others(there.astype(float))
        parts = [(*between, groups - 1), (*within, whole - groups)]
        left = [np.clip(1 - df * noise[:, None] / spread, 0, 1) for _, spread, df in parts]
        left = [np.where(spread > NOISE, share, 0.0) for share, (_, spread, _) in zip(left, parts, strict=True)]
        spread = between[1] + within[1]
        quality = sum(share * part[1] for share, part in zip(left, parts, strict=True))
        slope = sum(share * part[0] for share, part in zip(left, parts, strict=True)) / sum(
            share**2 * part[1] for share, part in zip(left, parts, strict=True)
        )
        slope = np.where(quality > 0.1 * spread, slope, np.nan)
        slope = np.where(spread > NOISE * np.maximum(others(pp), NOISE), slope, 0.0)
        return np.asarray(j / n - others(j) / whole - slope * (p / n - others(p) / whole))


def error_correlation(one: Floats, other: Floats, noise: Floats, weights: Floats) -> Floats:
    """Pearson r between two judges' errors (judge − people) without the noise in people's scores, which both share.

    `r = (S_12 − noise) / √((S_11 − noise)(S_22 − noise))`; NaN where noise is all there is.
    """
    _, s = _moments(weights, one, other)
    own = (s[0, 0] - noise, s[1, 1] - noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (s[0, 1] - noise) / np.sqrt(own[0] * own[1])
    return np.asarray(np.where((own[0] > 0) & (own[1] > 0), np.clip(r, -1, 1), np.nan))
