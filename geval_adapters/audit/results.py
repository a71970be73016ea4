"""What an audit came to: statistics, the checks that they belong to, a recipe drawn from them, judges side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..agreement.intervals import Figure
from ..judge.base import Usage

Verdict = Literal["beyond", "unclear", "within", ""]


@dataclass(frozen=True)
class Statistic:
    """One figure of a check.

    Attributes:
        subject: what it is about: a scale, a setting, an attack.
        name: what was measured.
        figure: the value with its interval.
        tolerated: the range that does not count against the judge; None where nothing does.
        paper: what a paper found, for orientation.
    """

    subject: str
    name: str
    figure: Figure
    tolerated: tuple[float, float] | None = None
    paper: str = ""

    @property
    def verdict(self) -> Verdict:
        """`beyond` or `within` what is tolerated, with the whole interval; `unclear`; empty where nothing counts."""
        value, low, high = self.figure.value, self.figure.low, self.figure.high
        if self.tolerated is None or value is None:
            return ""
        least, most = self.tolerated
        if low is None or high is None:
            return "unclear"
        return "beyond" if low > most or high < least else "within" if least <= low and high <= most else "unclear"

    @property
    def needed(self) -> int | None:
        """About how many items would make an unclear verdict clear: intervals shrink as 1/√n. None where none would.

        >>> Statistic("a", "shift", Figure(0.05, -0.05, 0.15, 30), (-0.1, 0.1)).needed
        120
        """
        value, low, high = self.figure.value, self.figure.low, self.figure.high
        if self.verdict != "unclear" or value is None or low is None or high is None or self.tolerated is None:
            return None
        ratio = max(
            ((high - value if limit > value else value - low) / abs(limit - value)) if limit != value else math.inf
            for limit in self.tolerated
            if math.isfinite(limit) and low <= limit <= high
        )
        items = self.figure.n * ratio**2
        return math.ceil(items) if items < 100 * self.figure.n else None


@dataclass(frozen=True)
class Picture:
    """What a plot shows, as data.

    Attributes:
        kind: `histogram` (values), `points` and `lines` (pairs), `matrix` (rows).
        title, x, y: words on it.
        series: name to values.
    """

    kind: str
    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Check:
    """What one check came to.

    Attributes:
        did: what was done.
        statistics: the figures.
        advice: what a user can do about a fault.
        fault: what the judge is called where a statistic lies beyond what is tolerated.
        notes: what a reader must know.
        pictures: what can be drawn.
        name: a key of `CHECKS`.
        criterion: what was rated; the names of all, where the check is about several.
        reason: why it could not be measured.
        usage, asked, failed: what it cost; the answers it asked for, and those without a score. Answers that another
            check had asked for cost nothing again.
        calls: how many calls one subject (a sample, a pair) takes.
        steps, planned: of how many subjects it has all answers, and how many there are.
    """

    did: str = ""
    statistics: Sequence[Statistic] = ()
    advice: str = ""
    fault: str = "biased"
    notes: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    name: str = ""
    criterion: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    failed: int = 0
    calls: int = 0
    steps: int = 0
    planned: int = 0

    @property
    def verdict(self) -> str:
        """The fault, `unclear`, `ok`, `measured` (nothing in it counts against a judge) or `not measurable`."""
        if self.reason:
            return "not measurable"
        verdicts = {statistic.verdict for statistic in self.statistics} - {""}
        named = {"beyond": self.fault, "unclear": "unclear", "within": "ok"}
        return next((word for verdict, word in named.items() if verdict in verdicts), "measured")

    @property
    def telling(self) -> Statistic | None:
        """The statistic that the verdict rests on: the one that lies farthest from what is tolerated."""
        order = {"beyond": 3, "unclear": 2, "within": 1, "": 0}

        def weight(statistic: Statistic) -> tuple[int, float]:
            least, most = statistic.tolerated or (0.0, 0.0)
            value = statistic.figure.value or 0.0
            return order[statistic.verdict], max(value - most, least - value)

        known = [statistic for statistic in self.statistics if statistic.figure.value is not None]
        return max(known, key=weight) if known else None

    @property
    def needed(self) -> int | None:
        """About how many items would make an unclear verdict clear: what its clearest statistic lacks the least."""
        wanted = [each.needed for each in self.statistics if each.needed is not None]
        return max(wanted) if self.verdict == "unclear" and wanted else None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        statistics = [asdict(each) | {"verdict": each.verdict, "needed": each.needed} for each in self.statistics]
        return asdict(self) | {"verdict": self.verdict, "needed": self.needed, "statistics": statistics}


@dataclass(frozen=True)
class Choice:
    """One decision of a recipe: an option, its value, and why; `measured` says whether this audit's figures decided."""

    option: str
    value: str
    reason: str
    measured: bool


@dataclass(frozen=True)
class Recipe:
    """How to run this judge on these data, after Stureborg et al. (2024), Table 6, and what was measured."""

    criterion: str
    choices: tuple[Choice, ...]
    command: str


@dataclass(frozen=True)
class Audit:
    """All that an audit of one judge came to."""

    judge: str
    source: str
    samples: int
    documents: int
    budget: int | None
    checks: tuple[Check, ...]
    recipes: tuple[Recipe, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def usage(self) -> Usage:
        """What the whole audit cost."""
        return sum((check.usage for check in self.checks), Usage())

    @property
    def faults(self) -> tuple[Check, ...]:
        """The checks that count against the judge."""
        clear = ("ok", "unclear", "measured", "not measurable")
        return tuple(check for check in self.checks if check.verdict not in clear)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        checks = [check.to_dict() for check in self.checks]
        return asdict(self) | {"usage": vars(self.usage), "checks": checks}


@dataclass(frozen=True)
class Shared:
    """Whether judges err together: a jury of like-minded judges is one judge.

    Attributes:
        criterion: what was rated.
        judges: their names, in the order of the rows.
        errors: Pearson r between the errors (judge − people) of each two, None where it is undefined.
        mean: the mean of these r, with its interval.
        effective: `k / (1 + (k − 1) · mean)`, the number of judges with independent errors that k of these are worth.
        note: what a reader must know.
    """

    criterion: str
    judges: tuple[str, ...]
    errors: tuple[tuple[float | None, ...], ...]
    mean: Figure
    effective: float | None
    note: str = ""


@dataclass(frozen=True)
class SideBySide:
    """Several judges on the same items."""

    audits: tuple[Audit, ...]
    shared: tuple[Shared, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {"audits": [each.to_dict() for each in self.audits], "shared": [asdict(each) for each in self.shared]}
