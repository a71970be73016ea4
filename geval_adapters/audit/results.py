"""What an audit finds: statistics, the checks that they belong to, and a recipe drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..agreement.intervals import Figure
from ..judge.base import Usage


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
    def verdict(self) -> str:
        """`beyond` what is tolerated, with the whole interval; `unclear`; `within`; or empty where nothing counts."""
        value, low, high = self.figure.value, self.figure.low, self.figure.high
        if self.tolerated is None or value is None:
            return ""
        least, most = self.tolerated
        if least <= value <= most:
            return "within"
        return "beyond" if low is not None and high is not None and (low > most or high < least) else "unclear"


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
    """What one check found.

    Attributes:
        did: what was done.
        statistics: the figures.
        advice: what a user can do about a finding.
        fault: what the judge is called where a statistic lies beyond what is tolerated.
        notes: what a reader must know.
        pictures: what can be drawn.
        name: a key of `CHECKS`.
        criterion: what was rated; the names of all, where the check is about several.
        reason: why it could not be measured.
        usage, asked, failed: what it cost; the answers it asked for, and those without a score. Answers that an earlier
            check had asked for cost nothing again.
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

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        statistics = [asdict(each) | {"verdict": each.verdict} for each in self.statistics]
        return asdict(self) | {"verdict": self.verdict, "statistics": statistics}


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
    """All that `geval audit` finds."""

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

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        checks = [check.to_dict() for check in self.checks]
        return asdict(self) | {"usage": vars(self.usage), "checks": checks}
