"""How well scores agree with people's, and how sure that is."""

from .alpha import krippendorff_alpha
from .intervals import Figure, bootstrap
from .levels import Agreement, Coefficient, Level, agreement
from .significance import PermutationTest, WilliamsTest, holm, permutation_test, williams

__all__ = [
    "Agreement",
    "Coefficient",
    "Figure",
    "Level",
    "PermutationTest",
    "WilliamsTest",
    "agreement",
    "bootstrap",
    "holm",
    "krippendorff_alpha",
    "permutation_test",
    "williams",
]
