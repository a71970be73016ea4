"""How well scores agree with people's, and how sure that is."""

from .alpha import krippendorff_alpha
from .intervals import FEWEST, Figure, Resampled, bootstrap, interval, resample
from .levels import Agreement, Coefficient, Level, agreement
from .significance import (
    PermutationTest,
    ResamplingTest,
    WilliamsTest,
    holm,
    permutation_test,
    resampling_test,
    williams,
)
from .soft_accuracy import soft_pairwise_accuracy

__all__ = [
    "FEWEST",
    "Agreement",
    "Coefficient",
    "Figure",
    "Level",
    "PermutationTest",
    "Resampled",
    "ResamplingTest",
    "WilliamsTest",
    "agreement",
    "bootstrap",
    "holm",
    "interval",
    "krippendorff_alpha",
    "permutation_test",
    "resample",
    "resampling_test",
    "soft_pairwise_accuracy",
    "williams",
]
