"""One scale for several judges: each judge's mean and spread, taken out so that ratings can be averaged."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from ..agreement.intervals import Floats

LEAST = 10
"""Items from which a judge's mean and spread are taken; from fewer they are not known well enough."""

FLAT = 1e-9
"""A spread that is none."""


class CommonScale(NamedTuple):
    """Judges' ratings on one scale.

    Attributes:
        ratings: judges by items, NaN where there is none, and for judges that carry nothing.
        means, spreads: of each judge; NaN where it carries nothing.
        why_not: why a judge carries nothing, empty where it does.
        plain: whether the ratings are as the judges gave them, for want of items.
    """

    ratings: Floats
    means: Floats
    spreads: Floats
    why_not: tuple[str, ...]
    plain: bool


def common_scale(scores: Floats) -> CommonScale:
    """Put judges on a common scale, by mean and spread (linear equating: Kolen & Brennan 2014, ch. 2.2).

    `z_ij = (s_ij − m_j) / d_j`, and back: `x_ij = M + D·z_ij`, where `M = mean_j m_j` and `D = mean_j d_j`, over judges
    that carry something. m_j and d_j are the mean and the standard deviation of judge j's scores. Where judges have not
    rated the same items, they are taken beside the judge that rated most, over the items that both rated, so that no
    judge counts as lenient because its items were good: `d_j = sd(s_j) / sd(z_ref)` and
    `m_j = mean(s_j) − d_j·mean(z_ref)`.

    A judge without any spread carries nothing, and neither does one that shares fewer than `LEAST` items with the
    reference. Where no judge carries anything (fewer items than that in all, or all judges constant), scores stay as
    they are.

    Args:
        scores: judges by items, NaN where there is none.

    >>> strict = np.arange(12.0) / 4
    >>> both = common_scale(np.array([strict, 2 * strict + 1]))
    >>> both.means.round(3).tolist(), both.spreads.round(3).tolist(), bool(np.allclose(*both.ratings))
    ([1.375, 3.75], [0.863, 1.726], True)
    """
    rated = ~np.isnan(scores)
    means, spreads = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    why_not = ["it rated nothing" if not own.any() else "" for own in rated]
    wide = [int(own.sum()) if own.any() and scores[j][own].std() > FLAT else 0 for j, own in enumerate(rated)]
    reference = int(np.argmax(wide))
    for j, own in enumerate(rated):
        shared = own & rated[reference]
        if why_not[j]:
            continue
        if shared.sum() < LEAST:
            why_not[j] = f"its mean and spread are not known from {int(shared.sum())} items"
        elif scores[j][shared].std() <= FLAT:
            why_not[j] = f"it gave every item a {scores[j][shared][0]:g}"
        elif j == reference:
            means[j], spreads[j] = scores[j][own].mean(), scores[j][own].std()
    if np.isnan(means[reference]):
        nothing = tuple("" if own.any() else "it rated nothing" for own in rated)
        return CommonScale(scores, means, spreads, nothing, plain=True)
    z = (scores[reference] - means[reference]) / spreads[reference]
    for j, own in enumerate(rated):
        if not why_not[j] and j != reference:
            shared = own & rated[reference]
            if z[shared].std() <= FLAT:
                why_not[j] = "the items that it shares with the other judges are all alike"
                continue
            spreads[j] = scores[j][shared].std() / z[shared].std()
            means[j] = scores[j][shared].mean() - spreads[j] * z[shared].mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle, unit = np.nanmean(means), np.nanmean(spreads)
    return CommonScale(
        middle + unit * (scores - means[:, None]) / spreads[:, None], means, spreads, tuple(why_not), plain=False
    )
