"""Comparisons of candidates become a ranking."""

from .diagnostics import Accuracy, Position, cyclic_triples, debias, pairwise_accuracy, position, self_consistency
from .methods import METHODS, average_probability, bradley_terry, most_likely, product_of_experts, win_ratio
from .outcomes import Outcome, Ranking
from .selection import SCHEMES, next_comparisons, select

__all__ = [
    "METHODS",
    "SCHEMES",
    "Accuracy",
    "Outcome",
    "Position",
    "Ranking",
    "average_probability",
    "bradley_terry",
    "cyclic_triples",
    "debias",
    "most_likely",
    "next_comparisons",
    "pairwise_accuracy",
    "position",
    "product_of_experts",
    "select",
    "self_consistency",
    "win_ratio",
]
