"""Several judges of one criterion: their panel, and a cascade that asks the dear one where the cheap one is unsure."""

from .jurors import Bench, Dissent, Juror, bench_of
from .jury import Jury, JuryRatings, ballots, told_apart
from .panel import Ballots, Panel, panel_of
from .rating import JuryRating, jury_signature, panel_rating

__all__ = [
    "Ballots",
    "Bench",
    "Dissent",
    "Juror",
    "Jury",
    "JuryRating",
    "JuryRatings",
    "Panel",
    "ballots",
    "bench_of",
    "jury_signature",
    "panel_of",
    "panel_rating",
    "told_apart",
]
