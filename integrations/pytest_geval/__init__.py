"""G-Eval in pytest: the fixture `geval`, ratings that are kept between runs, and a table at the end.

pytest loads `pytest_geval.plugin` by its entry point at each start; the core comes only when a test uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asserting import Asserting, RatingError


def __getattr__(name: str) -> Any:
    """What is handed on, imported when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import asserting

    return getattr(asserting, name)


__all__ = ["Asserting", "RatingError"]
