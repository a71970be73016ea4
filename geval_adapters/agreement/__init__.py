"""How well scores agree with people's, and how sure that is."""

from .alpha import krippendorff_alpha
from .intervals import FEWEST, Figure, Resampled, bootstrap, interval, resample
from .levels import Agreement, Coefficient, Level, agreement
from .significance import PermutationTest, WilliamsTest, holm, permutation_test, williams

__all__ = [
    "FEWEST",
    "Agreement",
    "Coefficient",
    "Figure",
    "Level",
    "PermutationTest",
    "Resampled",
    "WilliamsTest",
    "agreement",
    "bootstrap",
    "holm",
    "interval",
    "krippendorff_alpha",
    "permutation_test",
    "resample",
    "williams",
]
