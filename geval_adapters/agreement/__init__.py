"""How well scores agree with people's, and how sure that is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    """What is handed on, imported when it is asked for: a run that only counts what was not read needs no numpy."""
    if name in __all__:
        for part in ("alpha", "intervals", "levels", "significance", "soft_accuracy"):
            if hasattr(module := import_module(f".{part}", __name__), name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
