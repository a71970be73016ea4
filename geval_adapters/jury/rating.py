"""The rating of one item by a panel or a cascade: like any other, so that all that reads ratings reads it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..agreement.intervals import Floats
from ..criteria import Criterion, digest
from ..judge.base import Usage
from ..rating import Rating
from ..samples import Sample
from ..signature import Signature
from .cascade import Cascade
from .panel import Panel
from .when import When

Expected = Mapping[str, Collection[str]]
"""The values that each part of a judge's signatures can have (`GEval.aexpected`)."""


@dataclass(frozen=True)
class JuryRating:
    """What several judges make of one sample.

    Attributes:
        ratings: each judge's own, by name; a judge that was down has none.
        panel: theirs together: `std_error` is the one between judges, `n_valid` counts the judges in it and `n_failed`
            those that are not, `coverage` is the former's share, `bounds` holds what the others could make of it, and
            `rationale` says what each gave. `usage` is nothing: that stands in the judges' ratings.
    """

    ratings: Mapping[str, Rating]
    panel: Rating

    def to_dict(self) -> dict[str, Any]:
        """The panel's row, with each judge's score under `judges`."""
        return self.panel.to_dict() | {
            "judges": {name: rating.score for name, rating in self.ratings.items()},
            "usage": vars(sum((rating.usage for rating in self.ratings.values()), Usage())),
        }


def jury_signature(criterion: Criterion, judges: Mapping[str, Expected], made: Panel) -> Signature:
    """What could change a panel's score: its judges, all of their settings, and how they were averaged: their means and
    spreads, which the other items of the run decide, and their weights.
    """
    how: str = made.how
    if how != "plain":
        each = (made.common.means, made.common.spreads, made.weights)
        told = sorted(zip(made.ballots.judges, *(column.round(3).tolist() for column in each), strict=True))
        how += f"@{digest(json.dumps(told))}"
    return Signature.of(
        model=f"jury({'+'.join(sorted(judges))})",
        criterion=criterion.key,
        judges=_settings(judges),
        panel=how,
    )


def panel_rating(
    sample: Sample, criterion: Criterion, made: Panel, place: int, signature: Signature, why: Mapping[str, str]
) -> Rating:
    """The panel's rating of the item at a place; `why` is why judges have none of it, by judge."""
    names = made.ballots.judges
    k, number = len(names), int(made.number[place])
    score = None if number == 0 else float(made.score[place])
    coverage = number / k
    low, high = criterion.scale.low, criterion.scale.high
    known = coverage * (score or 0.0)
    error = float(made.std_error[place])
    who = "no judge" if np.isnan(made.ballots.scores[:, place]).all() else "no judge that carries something"
    said = []
    for name, own, common in zip(names, made.ballots.scores[:, place], made.common.ratings[:, place], strict=True):
        common_too = f" ({common:.2f} on the common scale)" if made.how != "plain" and not np.isnan(common) else ""
        reason = f" ({why[name]})" if name in why else ""
        said.append(f"{name} none{reason}" if np.isnan(own) else f"{name} {own:.3g}{common_too}")
    return Rating(
        sample=sample,
        criterion=criterion.name,
        score=score,
        normalized=None if score is None else criterion.scale.normalize(score),
        distribution={},
        coverage=coverage,
        bounds=(known + (1 - coverage) * low, known + (1 - coverage) * high),
        std_error=None if np.isnan(error) else error,
        method=None if score is None else "jury",
        n_valid=number,
        n_failed=k - number,
        rationale="; ".join(said),
        error=None if score is not None else f"{who} of the panel rated it: " + "; ".join(said),
        usage=Usage(),
        signature=signature,
        human=sample.human_score(criterion),
    )


def cascade_signature(criterion: Criterion, judges: Mapping[str, Expected], made: Cascade, when: When) -> Signature:
    """What could change a cascade's score: its judges, all of their settings, when the dear one is asked, and how the
    cheap one's scores were put on its scale, which the other items of the run decide.
    """
    cheap, dear = made.ballots.judges
    calibration: str = made.calibration
    if calibration == "mapped":
        calibration += f"@{digest(json.dumps([round(made.slope, 3), round(made.shift, 3)]))}"
    return Signature.of(
        model=f"cascade({cheap}>{dear})",
        criterion=criterion.key,
        judges=_settings(judges),
        when=str(when),
        calibration=calibration,
    )


def cascade_rating(
    sample: Sample,
    criterion: Criterion,
    made: Cascade,
    place: int,
    signature: Signature,
    kept: Mapping[str, Floats],
    reason: str,
    why: Mapping[str, str],
) -> Rating:
    """The rating of the item at a place: that of the judge that decided.

    Args:
        sample, criterion, made, place, signature: which.
        kept: `std_error`, `coverage`, `low` and `high` of the cheap judge's rating and the dear one's.
        reason: why the cheap judge was unsure.
        why: why a judge gave no rating.
    """
    names = made.ballots.judges
    cheap, dear = made.ballots.scores[:, place].tolist()
    by = int(made.unsure[place])
    found = float(made.score[place])
    score = None if np.isnan(found) else found
    error, coverage, low, high = (float(kept[name][by]) for name in ("std_error", "coverage", "low", "high"))
    ends = (criterion.scale.low, criterion.scale.high)
    if not by and score is not None:
        error *= made.slope
        low, high = (min(ends[1], max(ends[0], found + made.slope * (end - cheap))) for end in (low, high))
    given = "none" if np.isnan(cheap) else f"{cheap:.3g}"
    if by:
        said = f"decided by {names[1]}, as {names[0]} ({given}) was unsure: {reason}"
    else:
        own = f" ({given} on its own scale)" if made.calibration == "mapped" else ""
        also = "" if np.isnan(dear) else f"; {names[1]}, asked as a probe, gave {dear:.3g}"
        said = f"decided by {names[0]}, which was sure{own}{also}"
    lacking = f"{names[by]} gave none: {why.get(names[by], 'it was not asked')}"
    return Rating(
        sample=sample,
        criterion=criterion.name,
        score=score,
        normalized=None if score is None else criterion.scale.normalize(score),
        distribution={},
        coverage=0.0 if score is None or np.isnan(coverage) else coverage,
        bounds=ends if score is None or np.isnan(low) or np.isnan(high) else (low, high),
        std_error=None if score is None or np.isnan(error) else error,
        method=None if score is None else "cascade",
        n_valid=int(score is not None),
        n_failed=int(score is None),
        rationale=None if score is None else said,
        error=None if score is not None else f"unsure ({reason}), and {lacking}" if by else lacking,
        usage=Usage(),
        signature=signature,
        human=sample.human_score(criterion),
    )


def _settings(judges: Mapping[str, Expected]) -> str:
    """A digest of all settings of some judges."""
    settings = {
        name: {part: sorted(values) for part, values in sorted(expected.items()) if part != "version"}
        for name, expected in sorted(judges.items())
    }
    return digest(json.dumps(settings))
