"""The checks of an audit, one file each, with its paper's figures beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ...criteria import Criterion
from ..asking import SAMPLES, Inquiry
from ..results import Check
from .anchoring import anchoring
from .attack import attack
from .common import Rated
from .familiarity import familiarity
from .granularity import granularity, stored_granularity
from .inconsistency import inconsistency, stored_inconsistency
from .length import length
from .persona import persona
from .position import first_position
from .self_preference import self_preference
from .source import source
from .steps import steps
from .temperature import temperature

__all__ = ["CHECKS", "STORED", "Planned"]


class Planned(NamedTuple):
    """A check, and about how many calls it makes for each sample."""

    make: Callable[[Inquiry, Criterion], Awaitable[Check]]
    calls: int


CHECKS = {
    "length": Planned(length, 1),
    "self-preference": Planned(self_preference, 1),
    "familiarity": Planned(familiarity, 1),
    "source": Planned(source, 2),
    "position": Planned(first_position, 2),
    "steps": Planned(steps, 3),
    "anchoring": Planned(anchoring, 3),
    "persona": Planned(persona, 3),
    "attack": Planned(attack, 8),
    "inconsistency": Planned(inconsistency, 9),
    "granularity": Planned(granularity, 5 * (1 + SAMPLES)),
    "temperature": Planned(temperature, 2 * (1 + 2 * SAMPLES)),
}
"""All checks by name, those first that make the fewest calls for each sample."""

STORED: dict[str, Callable[[Rated, Criterion], Awaitable[Check]]] = {
    "granularity": stored_granularity,
    "inconsistency": stored_inconsistency,
    "length": length,
    "self-preference": self_preference,
}
"""The checks that stored ratings allow."""
