"""The panel's rating of one item, as a rating like any other: what `geval meta-eval`, `compare` and pages read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..criteria import Criterion, digest
from ..judge.base import Usage
from ..rating import Rating
from ..samples import Sample
from ..signature import Signature
from .panel import Panel

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
    """What could change a panel's score: its judges, all of their settings, and how they were averaged."""
    settings = {
        name: {part: sorted(values) for part, values in sorted(expected.items()) if part != "version"}
        for name, expected in sorted(judges.items())
    }
    how: str = made.how
    if how == "weighted":
        told = dict(sorted(zip(made.ballots.judges, made.weights.round(3).tolist(), strict=True)))
        how += f"@{digest(json.dumps(told))}"
    return Signature.of(
        model=f"jury({'+'.join(sorted(judges))})",
        criterion=criterion.key,
        judges=digest(json.dumps(settings)),
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
        error=None if score is not None else "no judge of the panel rated it: " + "; ".join(said),
        usage=Usage(),
        signature=signature,
        human=sample.human_score(criterion),
    )
