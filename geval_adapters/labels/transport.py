"""Whether what labels of some systems show of the judge's errors holds for others, and where on the scale they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .prediction import Drawn, isotonic

Floats = npt.NDArray[np.float64]
FEWEST, MISSED = 5, 4
"""Labels that a system must have to take part in the comparison; and that chance would have given to one with none."""
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Transport:
    """A test of whether the calibrated judge errs alike on all systems.

    Attributes:
        p: of the test, None where it cannot be made.
        compared: systems with labels enough.
        errors: mean of people's score less the calibrated judge's, by system.
        missed: systems that were not drawn from: they have no label, though chance would have given them `MISSED`.
        why_not: why there is no test.
    """

    p: float | None
    compared: int
    errors: dict[str, float]
    missed: tuple[str, ...]
    why_not: str = ""

    @property
    def differs(self) -> bool:
        """Whether the errors differ between systems."""
        return self.p is not None and self.p < SIGNIFICANT

    def __str__(self) -> str:
        if self.p is None:
            return self.why_not
        told = "differ" if self.differs else "do not seem to differ"
        return f"the judge's errors {told} between systems (p = {self.p:.2g}, {self.compared} systems)"


def transport(items: Drawn, systems: Sequence[str | None], *, resamples: int = 1000, seed: int = 0) -> Transport:
    """Test whether the judge, calibrated to people on all systems, errs alike on each.

    The statistic is Σ n_s m_s², m_s being the mean of people's score less the calibrated judge's for system s, around
    the mean of all; p is the share of 1 + `resamples` orders of the items' systems, the one at hand among them, with
    as large a one (Phipson & Smyth 2010). It asks nothing of how errors are distributed: most of them may be 0.

    Args:
        items: judge's scores and labels.
        systems: who wrote each item.
        resamples: orders to draw.
        seed: seed of the drawing.
    """
    groups = _groups(items, systems)
    share = items.n / len(systems)
    sizes = Counter(each for each in systems if each is not None)
    missed = tuple(each for each in sorted(sizes) if each not in groups and sizes[each] * share >= MISSED)
    residuals = items.labels - isotonic(items) if items.n > 1 else items.labels - items.filled
    errors = {str(system): float(residuals[places].mean()) for system, places in groups.items()}
    compared = [places for places in groups.values() if len(places) >= FEWEST]
    if len(compared) < 2:
        few = f"nobody can tell whether the judge errs alike on all systems: that takes {FEWEST} labels of each of two"
        return Transport(None, len(compared), errors, missed, few)
    own = residuals[np.concatenate(compared)]
    own -= own.mean()
    member = np.repeat(np.eye(len(compared)), [len(places) for places in compared], axis=0)
    orders = np.random.default_rng(seed).permuted(np.tile(own, (resamples, 1)), axis=1)
    spread = ((np.vstack([own, orders]) @ member) ** 2 / member.sum(axis=0)).sum(axis=1)
    p = (spread >= spread[0] * (1 - 1e-9)).mean()
    return Transport(float(p), len(compared), errors, missed)


def _groups(items: Drawn, systems: Sequence[Hashable]) -> dict[Hashable, npt.NDArray[np.int64]]:
    places: dict[Hashable, list[int]] = {}
    for place in items.labelled:
        if systems[place] is not None:
            places.setdefault(systems[place], []).append(int(place))
    return {system: np.array(own) for system, own in sorted(places.items(), key=lambda each: str(each[0]))}


@dataclass(frozen=True, slots=True)
class Step:
    """What people say where the judge says about this score: `judge` and `people` are the means of n labelled items."""

    score: float
    n: int
    judge: float
    people: float

    @property
    def bias(self) -> float:
        """How much higher the judge is."""
        return self.judge - self.people


def along_the_scale(items: Drawn, steps: int = 5) -> list[Step]:
    """The judge's bias by its own score.

    Scores are rounded to whole ones; where there are more than `steps` of these, the labelled items are cut into as
    many parts of equal size.

    >>> from .prediction import drawn
    >>> [(step.score, step.n, step.bias) for step in along_the_scale(drawn([1, 1, 4], [2, 2, 4], "abc"))]
    [(1.0, 2, -1.0), (4.0, 1, 0.0)]
    """
    kept = items.labelled[~np.isnan(items.scores[items.labelled])]
    judge, people = items.scores[kept], items.labels[kept]
    if not kept.size:
        return []
    rounded = np.round(judge)
    if np.unique(rounded).size > steps:
        order = np.argsort(judge, kind="stable")
        part = np.empty(kept.size, dtype=np.int64)
        part[order] = np.arange(kept.size) * steps // kept.size
        rounded = np.array([judge[part == each].mean() for each in range(steps)])[part]
    return [
        Step(float(score), int(here.sum()), float(judge[here].mean()), float(people[here].mean()))
        for score in np.unique(rounded)
        for here in [rounded == score]
    ]
