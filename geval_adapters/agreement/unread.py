"""What was not read, and whether that is chance: unread items by document, by system, and by people's score.

An average over what was read is only fair if what was not read is like the rest. An item counts as unread where any of
its replies could not be read, so that replies of one item, which are alike, are not counted as so many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DRAWS = 1999
"""Tables drawn under the hypothesis that what is unread is chance."""
MOST_GROUPS = 1000
"""A test of more groups than this would take long; their shares are shown all the same."""
AXES = ("document", "system", "people's score")


@dataclass(frozen=True)
class Gap:
    """Unread items by one axis.

    Attributes:
        axis: one of `AXES`.
        groups: group to (unread items, items); by people's score ascending, else the largest share first.
        p: how often chance alone would make them differ as much; None with `why_not`.
        p_holm: the same, corrected for the axes that were tested (Holm 1979).
        why_not: why there is no test.
    """

    axis: str
    groups: Mapping[str | float, tuple[int, int]]
    p: float | None
    p_holm: float | None = None
    why_not: str = ""

    @property
    def selective(self) -> bool:
        """Whether the gap is not chance: what is left over is then not like the whole."""
        return self.p_holm is not None and self.p_holm < 0.05


@dataclass
class Unread:
    """Counts of items and of unread ones, kept up item by item.

    >>> unread = Unread()
    >>> for place in range(200):
    ...     unread.add(place % 2 == 0 and place < 40, system="a" if place % 2 == 0 else "b")
    >>> [gap] = unread.gaps()
    >>> gap.groups, gap.selective
    ({'a': (20, 100), 'b': (0, 100)}, True)
    """

    n: int = 0
    unread: int = 0
    counts: dict[str, dict[str | float, list[int]]] = field(default_factory=dict)
    tested_only: bool = False
    """Whether an axis with more groups than are tested is given up, so that memory does not grow with the documents."""
    _given_up: set[str] = field(default_factory=set)

    def add(
        self, unread: bool, document: str | None = None, system: str | None = None, human: float | None = None
    ) -> None:
        """Count in one item; what is not known of it is None."""
        self.n += 1
        self.unread += unread
        for axis, group in zip(AXES, (document, system, human), strict=True):
            if group is not None and axis not in self._given_up:
                cell = self.counts.setdefault(axis, {}).setdefault(group, [0, 0])
                cell[0] += unread
                cell[1] += 1
                if self.tested_only and len(self.counts[axis]) > MOST_GROUPS:
                    del self.counts[axis]
                    self._given_up.add(axis)

    def gaps(self, seed: int = 0) -> list[Gap]:
        """One for each axis that is known, with a test where something is unread."""
        found = [self._gap(axis, seed) for axis in AXES if axis in self.counts]
        if all(gap.p is None for gap in found):
            return found
        from .significance import holm

        tested = [gap for gap in found if gap.p is not None]
        corrected = dict(zip((gap.axis for gap in tested), holm([gap.p or 0.0 for gap in tested]), strict=True))
        return [Gap(gap.axis, gap.groups, gap.p, corrected.get(gap.axis), gap.why_not) for gap in found]

    def _gap(self, axis: str, seed: int) -> Gap:
        cells = self.counts[axis]
        by_share = sorted(cells.items(), key=lambda cell: (-cell[1][0] / cell[1][1], str(cell[0])))
        ordered = sorted(cells.items()) if axis == AXES[2] else by_share
        groups = {group: (bad, n) for group, (bad, n) in ordered}
        unread = sum(bad for bad, _ in groups.values())
        if not unread:
            return Gap(axis, groups, None, why_not="everything was read")
        if len(groups) < 2 or len(groups) > MOST_GROUPS:
            return Gap(axis, groups, None, why_not=f"{len(groups):,} groups")
        return Gap(axis, groups, _p(groups, axis == AXES[2], seed))


def _p(groups: Mapping[str | float, tuple[int, int]], ordered: bool, seed: int) -> float:
    """How often tables of the same margins differ as much between groups.

    The unread items are dealt out to the groups at random (multivariate hypergeometric, which is exact), and compared
    by Pearson's `χ² = Σ (unread − expected)² / expected`; where groups are scores, by their trend `|Σ score · (unread −
    expected)|`. `p = (1 + as extreme) / (1 + draws)`.
    """
    import numpy as np

    bad, n = (np.array(column, dtype=np.int64) for column in zip(*groups.values(), strict=True))
    expected = n * (bad.sum() / n.sum())
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(n, int(bad.sum()), DRAWS, method="marginals")
    tables = np.vstack([bad, drawn]) - expected
    if ordered:
        statistic = np.abs(tables @ np.array(list(groups), dtype=float))
    else:
        statistic = (tables**2 / expected).sum(axis=1)
    return float((statistic >= statistic[0] - 1e-9).mean())
