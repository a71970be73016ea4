"""Two runs on the same items: by how much the second scores differ from the first, item by item."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from .intervals import Figure, bootstrap


class Scored(Protocol):
    """An item of a run: what it is called, the document that it belongs to, and its score, None where it has none."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def document(self) -> Hashable: ...  # noqa: D102
    @property
    def score(self) -> float | None: ...  # noqa: D102


@dataclass(frozen=True)
class Change:
    """One item in both runs."""

    id: str
    old: float
    new: float

    @property
    def difference(self) -> float:
        """By how much the new score is higher."""
        return self.new - self.old


@dataclass(frozen=True)
class Changes:
    """What changed between two runs.

    Attributes:
        criterion: by what was rated.
        difference: the mean of new − old over the items that both scored; its interval resamples documents.
        old, new: the means over the same items.
        up, down, same: how many items are higher, lower, equal (to within a thousandth) in the new run.
        unscored: items that both runs hold, and at least one of them has no score for.
        only_old, only_new: items that only one run holds.
        changes: each item that both scored, in the order of the old run.
    """

    criterion: str
    difference: Figure
    old: Figure
    new: Figure
    up: int
    down: int
    same: int
    unscored: int
    only_old: int
    only_new: int
    changes: Sequence[Change]

    def most(self, count: int = 10) -> list[Change]:
        """The items that changed most, the largest change first."""
        return sorted(self.changes, key=lambda each: -abs(each.difference))[:count]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {**asdict(self), "changes": [{**asdict(each), "difference": each.difference} for each in self.changes]}


def changes(criterion: str, old: Sequence[Scored], new: Sequence[Scored], seed: int = 0) -> Changes:
    """Compare two runs on the items that both hold, matched by id.

    >>> from types import SimpleNamespace
    >>> old = [SimpleNamespace(id=str(i), document=i, score=2.0) for i in range(8)]
    >>> new = [SimpleNamespace(id=str(i), document=i, score=2.0 + i % 2) for i in range(9)]
    >>> compared = changes("coherence", old, new)
    >>> compared.difference.value, compared.up, compared.same, compared.only_new
    (0.5, 4, 4, 1)
    """
    now = {item.id: item for item in new}
    shared = [(item, now[item.id]) for item in old if item.id in now]
    both = [(a.id, a.document, a.score, b.score) for a, b in shared if a.score is not None and b.score is not None]
    before, after = (np.array([row[side] for row in both], dtype=float) for side in (2, 3))
    documents = [row[1] for row in both]

    def mean(values: np.ndarray[Any, np.dtype[np.float64]]) -> Figure:
        return bootstrap(lambda weights: weights @ values / weights.sum(axis=1), documents, seed=seed)

    apart = after - before
    up, down = int((apart > 0.001).sum()), int((apart < -0.001).sum())
    return Changes(
        criterion, mean(apart), mean(before), mean(after), up, down, len(both) - up - down,
        unscored=len(shared) - len(both), only_old=len(old) - len(shared), only_new=len(new) - len(shared),
        changes=[Change(row[0], float(row[2]), float(row[3])) for row in both],
    )  # fmt: skip
