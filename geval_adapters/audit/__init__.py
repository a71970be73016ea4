"""How biased and how inconsistent a judge is."""

from .checks import CHECKS, STORED
from .results import Audit, Check, Choice, Picture, Recipe, Statistic
from .run import BUDGET, audit, audit_ratings, known_checks

__all__ = [
    "BUDGET",
    "CHECKS",
    "STORED",
    "Audit",
    "Check",
    "Choice",
    "Picture",
    "Recipe",
    "Statistic",
    "audit",
    "audit_ratings",
    "known_checks",
]
