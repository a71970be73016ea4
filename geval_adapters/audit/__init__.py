"""How biased and how inconsistent a judge is."""

from .beside import shared_errors
from .checks import CHECKS, STORED
from .results import Audit, Check, Choice, Picture, Recipe, Shared, SideBySide, Statistic
from .run import BUDGET, AuditRun, Request, audit, audit_ratings, known_checks

__all__ = [
    "BUDGET",
    "CHECKS",
    "STORED",
    "Audit",
    "AuditRun",
    "Check",
    "Choice",
    "Picture",
    "Recipe",
    "Request",
    "Shared",
    "SideBySide",
    "Statistic",
    "audit",
    "audit_ratings",
    "known_checks",
    "shared_errors",
]
