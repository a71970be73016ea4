"""Several judges of one criterion: their panel, and a cascade that asks the dear one where the cheap one is unsure."""

from .cascade import Cascade, Cost, cost_of, decide, everywhere, probed, spent_of
from .jurors import Bench, Dissent, Juror, bench_of
from .jury import Jury, JuryRatings, ballots, told_apart
from .panel import Ballots, Panel, panel_of
from .rating import JuryRating, cascade_rating, cascade_signature, jury_signature, panel_rating
from .when import When

__all__ = [
    "Ballots",
    "Bench",
    "Cascade",
    "Cost",
    "Dissent",
    "Juror",
    "Jury",
    "JuryRating",
    "JuryRatings",
    "Panel",
    "When",
    "ballots",
    "bench_of",
    "cascade_rating",
    "cascade_signature",
    "cost_of",
    "decide",
    "everywhere",
    "jury_signature",
    "panel_of",
    "panel_rating",
    "probed",
    "spent_of",
    "told_apart",
]
