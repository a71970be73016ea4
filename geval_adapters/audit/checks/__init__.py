"""The checks of an audit, one file each, with its paper's figures beside it: `check` plans what is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ...agreement.judged import Item
from ...criteria import Criterion
from ..asking import Asking, Plan
from ..ratings import Reliability
from ..results import Check
from . import (
    anchoring,
    attack,
    contradiction,
    dress,
    empty,
    facts,
    familiarity,
    granularity,
    inconsistency,
    labels,
    length,
    neighbours,
    persona,
    position,
    reference,
    rubric,
    self_preference,
    source,
    steps,
    temperature,
)

__all__ = ["CHECKS", "STORED"]

CHECKS: dict[str, Callable[[Asking, Criterion], Awaitable[Plan]]] = {
    "length": length.check,
    "self-preference": self_preference.check,
    "familiarity": familiarity.check,
    "dress": dress.check,
    "position": position.check,
    "contradiction": contradiction.check,
    "source": source.check,
    "facts": facts.check,
    "attack": attack.check,
    "neighbours": neighbours.check,
    "empty": empty.check,
    "inconsistency": inconsistency.check,
    "steps": steps.check,
    "persona": persona.check,
    "rubric": rubric.check,
    "labels": labels.check,
    "reference": reference.check,
    "anchoring": anchoring.check,
    "granularity": granularity.check,
    "temperature": temperature.check,
}
"""All checks by name, in the order in which they are shown."""

STORED: dict[str, Callable[[Sequence[Item], Criterion, Reliability], Check]] = {
    "length": length.stored_check,
    "self-preference": self_preference.stored_check,
    "inconsistency": inconsistency.stored_check,
    "granularity": granularity.stored_check,
}
"""The checks that stored ratings allow."""
