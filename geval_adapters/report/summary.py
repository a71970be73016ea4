"""What the ratings of a run come to, and its tables in the terminal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from ..judge.base import Usage
from ..judge.sampling import most_replies
from ..signature import Signature
from .rubric import RubricSums, shown_score
from .terminal import plain, table


@dataclass
class Document:
    """What the ratings of one document's parts come to: of a conversation's turns, of a question's contexts."""

    n: int = 0
    total: float = 0.0
    lowest: float = math.inf
    failed: int = 0

    @property
    def mean(self) -> float | None:
        """The mean over the parts that were rated."""
        return self.total / self.n if self.n else None


@dataclass
class Summary:
    """What the ratings of one criterion come to, kept up row by row; `judge` says whose, where there are several.

    Attributes:
        in_parts: whether one sample makes several ratings, which are then no independent ones: the standard error is
            that of a mean over documents.
        cut: ratings of a conversation of which turns were left out.
        documents: what each document's parts come to, by its name and system; only then.
        by_items: what they come to item by item, where they are by a rubric.

    >>> summary = Summary("coherence")
    >>> summary.to_dict()["mean"] is None
    True
    """

    criterion: str
    n: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    signatures: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    coverage: float = 0.0
    saved: int = 0
    cut: int = 0
    judge: str = ""
    in_parts: bool = False
    documents: dict[tuple[str, str | None], Document] = field(default_factory=dict)
    by_items: RubricSums | None = None
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count in one rating, as `Rating.to_dict` gives it.

        Mean and variance after Welford (1962), so that no score has to be kept.
        """
        self.usage += Usage(**row["usage"])
        if self.in_parts:
            self._add_part(row)
        if row["score"] is None:
            self.failed += 1
            self.reasons[_short(row["error"] or "no reason given")] += 1
            return
        self.n += 1
        self.cut += bool(row.get("left_out"))
        self.methods[row["method"]] += 1
        self.signatures[row["signature"]] += 1
        self.served.update(row.get("served") or ())
        self.coverage += row["coverage"]
        if most := most_replies(Signature.parse(row["signature"]).parts.get("n", "")):
            self.saved += most * max(1, len(row.get("items") or ())) - row["n_valid"] - row["n_failed"]
        if items := row.get("items"):
            self.by_items = self.by_items or RubricSums()
            self.by_items.add(items)
        step = row["score"] - self._mean
        self._mean += step / self.n
        self._squares += step * (row["score"] - self._mean)

    def _add_part(self, row: Mapping[str, Any]) -> None:
        key = (row["id"] if row["doc_id"] is None else row["doc_id"], row["system_id"])
        document = self.documents.setdefault(key, Document())
        if row["score"] is None:
            document.failed += 1
            return
        document.n += 1
        document.total += row["score"]
        document.lowest = min(document.lowest, row["score"])

    @property
    def title(self) -> str:
        """The criterion, and the judge where there are several."""
        return f"{self.criterion}, {self.judge}" if self.judge else self.criterion

    @property
    def mean(self) -> float | None:
        """The mean of the scores that there are."""
        return self._mean if self.n else None

    @property
    def std_error(self) -> float | None:
        """`s / √n` over samples; None for fewer than two.

        In parts, `√(G/(G − 1) · Σ_d (Σ_{i∈d} (x_i − x̄))²) / n` over the G documents.
        """
        if self.in_parts:
            groups = [each for each in self.documents.values() if each.n]
            squares = sum((each.total - each.n * self._mean) ** 2 for each in groups)
            return math.sqrt(len(groups) / (len(groups) - 1) * squares) / self.n if len(groups) > 1 else None
        return math.sqrt(self._squares / (self.n - 1) / self.n) if self.n > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        return {
            "criterion": self.criterion,
            **({"judge": self.judge} if self.judge else {}),
            "n": self.n,
            "mean": self.mean,
            "std_error": self.std_error,
            "failed": self.failed,
            **({"documents": self._told()} if self.in_parts else {}),
            "reasons": dict(self.reasons),
            "methods": dict(self.methods),
            "coverage": self.coverage / self.n if self.n else None,
            "replies_saved": self.saved,
            "cut": self.cut,
            "usage": vars(self.usage),
            "signatures": list(self.signatures),
            "served": dict(self.served),
            **({"rubric": self.by_items.to_dict()} if self.by_items else {}),
        }

    def _told(self) -> list[dict[str, Any]]:
        return [
            {"doc_id": name, "system_id": system, "n": each.n, "mean": each.mean, "failed": each.failed}
            | {"lowest": each.lowest if each.n else None}
            for (name, system), each in self.documents.items()
        ]


def documents_table(summary: Summary, console: Console, most: int) -> RenderableType:
    """One row per document whose parts were rated, the lowest mean first."""
    ordered = sorted(summary.documents.items(), key=lambda each: (each[1].mean is None, each[1].mean or 0.0))
    rows = [
        [
            name if system is None else f"{name}, {system}",
            str(each.n),
            "-" if each.mean is None else f"{each.mean:.3f}",
            f"{each.lowest:.2f}" if each.n else "-",
            str(each.failed),
        ]
        for (name, system), each in ordered[:most]
    ]
    if len(ordered) > most:
        rows.append([f"and {len(ordered) - most} more", "", "", "", ""])
    return table((f"{summary.title}, by document", "n", "mean", "lowest", "failed"), rows, console)


def summary_table(summaries: Iterable[Summary], console: Console) -> RenderableType:
    """One row per criterion and judge."""
    summaries = list(summaries)
    judged = any(each.judge for each in summaries)
    rows = [
        [
            *([each.judge] if judged else []),
            each.criterion,
            str(each.n),
            shown_score(each.mean) if each.by_items else "-" if each.mean is None else f"{each.mean:.3f}",
            "-" if each.std_error is None else f"{each.std_error:.3f}",
            str(each.failed),
            ", ".join(each.methods) or "-",
            f"{each.coverage / each.n:.3f}" if each.n else "-",
            tokens(each.usage),
            cost(each.usage),
        ]
        for each in summaries
    ]
    heads = ("criterion", "n", "mean", "± std. error", "failed", "method", "coverage", "tokens (cached) in/out", "cost")
    return table(("judge", *heads) if judged else heads, rows, console)


def ratings_table(ratings: Sequence[Mapping[str, Any]], console: Console) -> RenderableType:
    """One row per rating, each as `Rating.to_dict` gives it."""
    rows = [
        [
            rating["id"],
            rating["criterion"],
            _score(rating),
            _bounds(rating),
            f"{rating['coverage']:.2f}",
            rating["method"] or "-",
            rating["error"] or rating["output"],
        ]
        for rating in ratings
    ]
    return table(
        ("id", "criterion", "score", "bounds", "coverage", "method", "output, or why there is no score"), rows, console
    )


def _score(rating: Mapping[str, Any]) -> str:
    if rating.get("items"):
        return shown_score(rating["score"], 2)
    return "-" if rating["score"] is None else f"{rating['score']:.2f}"


def _bounds(rating: Mapping[str, Any]) -> str:
    low, high = rating["bounds"]
    return f"{low:.2f}-{high:.2f}" if low >= 0 else f"{low:.2f} to {high:.2f}"


def print_rationales(ratings: Iterable[Mapping[str, Any]], console: Console) -> None:
    """What the judge gave as its reasons, in full."""
    for rating in ratings:
        if rating["rationale"]:
            head = f"{plain(rating['id'])}, {plain(rating['criterion'])}: "
            console.print(Text.assemble((head, "bold"), plain(rating["rationale"], 800)))


def tokens(usage: Usage) -> str:
    """Prompt tokens, those of them that a cache served, and completion tokens."""
    return f"{usage.prompt_tokens:,} ({usage.cached_tokens:,}) / {usage.completion_tokens:,}"


def cost(usage: Usage) -> str:
    """Dollars, or that they are not known."""
    return dollars(usage.cost)


def dollars(cost: float | None) -> str:
    """An amount, or that it is not known, or nothing."""
    return "unknown" if cost is None else "free" if cost == 0 else f"${cost:.4f}"


def _short(reason: str) -> str:
    """The reason without what differs from reply to reply."""
    return plain(re.sub(r"(no rating in the reply|the judge refused): .*", r"\1", reason, flags=re.DOTALL), 200)
