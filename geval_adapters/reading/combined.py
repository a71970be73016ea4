"""Several readings of one sample as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from .distribution import Reading


@dataclass(frozen=True)
class Combined:
    """Several readings of one sample as one."""

    score: float | None
    distribution: Mapping[float, float]
    coverage: float
    bounds: tuple[float, float]
    std_error: float | None
    n_valid: int
    n_failed: int
    error: str | None


def combine(readings: Sequence[Reading]) -> Combined:
    """The mean of the readings that have a score; the others are missing, neither 0 nor clipped.

    Coverage and bounds are means over all readings, so that an unread reply lowers the one and widens the other.
    `std_error = s / √n_valid`.

    >>> from geval_adapters import read_text
    >>> combined = combine([read_text(reply, "1-5") for reply in ("4", "5", "what?")])
    >>> combined.score, combined.n_failed, round(combined.coverage, 2), combined.std_error
    (4.5, 1, 0.67, 0.5)
    """
    if len(readings) == 1 and readings[0].score is not None:  # what is asked for once needs no statistics
        one = readings[0]
        return Combined(one.score, one.distribution, one.coverage, one.bounds, None, 1, 0, None)
    valid = [reading for reading in readings if reading.score is not None]
    distribution: dict[float, float] = {}
    described = valid or [reading for reading in readings if reading.distribution]
    for reading in described:
        for score, p in reading.distribution.items():
            distribution[score] = distribution.get(score, 0.0) + p / len(described)
    scores = [reading.score for reading in valid if reading.score is not None]
    reasons = Counter(reading.error for reading in readings if reading.error)
    return Combined(
        score=fmean(scores) if scores else None,
        distribution=dict(sorted(distribution.items())),
        coverage=fmean(reading.coverage for reading in readings),
        bounds=(fmean(reading.bounds[0] for reading in readings), fmean(reading.bounds[1] for reading in readings)),
        std_error=stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else None,
        n_valid=len(valid),
        n_failed=len(readings) - len(valid),
        error=None if scores else reasons.most_common(1)[0][0],
    )
