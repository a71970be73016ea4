"""What `geval estimate` finds, as values and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..agreement.intervals import Figure
from .conformal import Intervals
from .joined import Rated
from .people import AlternativeAnnotator, Ceiling
from .transport import Step, Transport


@dataclass(frozen=True)
class Mean:
    """What is known of one system, or of all items.

    Attributes:
        system: its name; None for all items.
        n: items.
        unrated: items without a judge's score, which take part as of unknown score.
        labels: labelled items.
        judge_mean, labels_mean: the judge's own mean, the labels' mean.
        corrected: the judge's mean, put right by the labels.
        effective_n: how many labels alone would be as precise; None without an interval.
        bias: how much higher the judge's mean is than the corrected one.
        labels_for_half: labels in all that would halve the interval's width; None where no number of labels would, as
            there are too few items, or without an interval.
        share: share of items at or above the threshold that was asked for.
    """

    system: str | None
    n: int
    unrated: int
    labels: int
    judge_mean: float | None
    labels_mean: Figure
    corrected: Figure
    effective_n: float | None
    bias: Figure
    labels_for_half: int | None
    share: Figure | None


@dataclass(frozen=True)
class Difference:
    """How much higher people's mean is for system `a` than for `b`, paired by document."""

    a: str
    b: str
    figure: Figure
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class WinRate:
    """How often people prefer system `a` to `b`: by the judge's scores, by labels of pairs, and corrected."""

    a: str
    b: str
    n: int
    labels: int
    judge: float | None
    corrected: Figure


@dataclass(frozen=True)
class Judge:
    """How good the judge is among people.

    Attributes:
        ceiling: agreement between annotators and with the judge.
        alternative, constant: the alternative annotator test, for the judge and for one that gives every item the
            commonest label: what that one passes says nothing about the judge.
        systems: soft pairwise accuracy on the labelled items.
    """

    ceiling: Ceiling
    alternative: AlternativeAnnotator
    constant: AlternativeAnnotator
    systems: Figure


@dataclass(frozen=True)
class Estimation:
    """All that `geval estimate` finds for one criterion."""

    criterion: str
    systems: Sequence[Mean]
    differences: Sequence[Difference]
    transport: Transport | None
    scale: Sequence[Step]
    judge: Judge
    wins: Sequence[WinRate]
    apart: Sequence[Rated]
    intervals: Intervals | None
    items: Sequence[Rated]
    threshold: float | None
    notes: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "criterion": self.criterion,
            "systems": [_mean_dict(each) for each in self.systems],
            "differences": [
                {"a": each.a, "b": each.b, **_limits(each.figure), "p": each.p, "p_holm": each.p_holm}
                for each in self.differences
            ],
            "transport": self.transport and {**asdict(self.transport), "differs": self.transport.differs},
            "bias_by_score": [{**asdict(step), "bias": step.bias} for step in self.scale],
            "judge": {
                "ceiling": asdict(self.judge.ceiling),
                "alternative_annotator": {**asdict(self.judge.alternative), "passed": self.judge.alternative.passed},
                "constant_judge": {**asdict(self.judge.constant), "passed": self.judge.constant.passed},
                "soft_pairwise_accuracy": _limits(self.judge.systems),
            },
            "win_rates": [
                {"a": each.a, "b": each.b, "n": each.n, "labels": each.labels, "judge": each.judge,
                 "corrected": _limits(each.corrected)}
                for each in self.wins
            ],
            "differ_most": [
                {"id": item.id, "system": item.system, "judge": item.score, "people": item.label} for item in self.apart
            ],
            "intervals": None if self.intervals is None else self._intervals(self.intervals),
            "notes": list(self.notes),
        }  # fmt: skip

    def _intervals(self, made: Intervals) -> dict[str, Any]:
        rows = zip(self.items, made.low, made.high, strict=True)
        told = {name: getattr(made, name) for name in ("level", "coverage", "width", "n", "why_not")}
        items = [{"id": item.id, "score": item.score, "low": float(a), "high": float(b)} for item, a, b in rows]
        return told | {"items": [] if made.why_not else items}


def _mean_dict(mean: Mean) -> dict[str, Any]:
    return {
        "system": mean.system,
        "n": mean.n,
        "unrated": mean.unrated,
        "labels": mean.labels,
        "judge_mean": mean.judge_mean,
        "labels_mean": mean.labels_mean.value,
        "corrected": _limits(mean.corrected),
        "labels_alone": _limits(mean.labels_mean),
        "effective_n": mean.effective_n,
        "bias": mean.bias.value,
        "bias_interval": _limits(mean.bias),
        "labels_for_half": mean.labels_for_half,
        **({} if mean.share is None else {"share": _limits(mean.share)}),
    }


def _limits(figure: Figure) -> dict[str, Any]:
    told: dict[str, Any] = {"value": figure.value, "low": figure.low, "high": figure.high, "method": figure.method}
    return told | ({"why_not": figure.why_not} if figure.why_not else {})
