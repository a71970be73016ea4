"""What a reply comes to: a distribution over the scale, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..criteria import Scale

ROUNDING = 1e-3
"""Probabilities may exceed 1 by as much before they are taken for none."""

MIN_COVERAGE = 0.5
"""A distribution that holds less than this share of the probability mass is not trusted."""


@dataclass(frozen=True)
class Reading:
    """What one reply says about the score.

    Attributes:
        score: `Σ s·p(s)` (Liu et al. 2023, eq. 1); None where the reply could not be read or is not trusted.
        distribution: score to probability, summing to one; empty where nothing was read.
        coverage: the share of the probability mass that lies on the scale; 1 for a rating read from text.
        bounds: the lowest and the highest value of the score if the mass off the scale were known.
        error: why there is no score.
        off_grid: whether the judge answered between two steps of the scale.
    """

    score: float | None
    distribution: Mapping[float, float]
    coverage: float
    bounds: tuple[float, float]
    error: str | None = None
    off_grid: bool = False


def distribution_of(
    masses: dict[float, float], unknown: list[tuple[float, float, float]], scale: Scale, off_grid: bool
) -> Reading:
    """Mass by score, and mass whose score is unknown within (mass, least, most), as a reading."""
    total = sum(masses.values())
    if total > 1:  # rounding in the provider's log-probabilities
        masses, total = {value: mass / total for value, mass in masses.items()}, 1.0
    if total <= 0:
        return unread(scale, "no score of the scale is among the alternatives at the rating's position")
    distribution = {value: masses[value] / total for value in sorted(masses)}
    score = min(max(sum(value * p for value, p in distribution.items()), scale.low), scale.high)
    known = sum(value * mass for value, mass in masses.items())
    missing = max(0.0, 1.0 - total - sum(mass for mass, _, _ in unknown))
    low = known + missing * scale.low + sum(mass * least for mass, least, _ in unknown)
    high = known + missing * scale.high + sum(mass * most for mass, _, most in unknown)
    bounds = (max(min(low, score), scale.low), min(max(high, score), scale.high))
    if total < MIN_COVERAGE:
        error = f"not trusted: coverage {total:.3g} is below {MIN_COVERAGE:g}"
        return Reading(None, distribution, total, bounds, error, off_grid)
    return Reading(score, distribution, total, bounds, None, off_grid)


def unread(scale: Scale, reason: str) -> Reading:
    """A reading without a score."""
    return Reading(None, {}, 0.0, (scale.low, scale.high), reason)
