"""What people look at: summaries and tables."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .judge import Usage
from .rating import Rating


@dataclass
class Summary:
    """What the ratings of one criterion come to, kept up row by row.

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
    usage: Usage = field(default_factory=Usage)
    coverage: float = 0.0
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, rating: Rating) -> None:
        """Count one rating in. Mean and variance after Welford (1962), so that no score has to be kept."""
        self.usage += rating.usage
        if rating.score is None:
            self.failed += 1
            self.reasons[_short(rating.error or "no reason given")] += 1
            return
        self.n += 1
        self.methods[rating.method] += 1
        self.signatures[rating.signature] += 1
        self.coverage += rating.coverage
        step = rating.score - self._mean
        self._mean += step / self.n
        self._squares += step * (rating.score - self._mean)

    @property
    def mean(self) -> float | None:
        """The mean of the scores that there are."""
        return self._mean if self.n else None

    @property
    def std_error(self) -> float | None:
        """`s / √n` over samples; None for fewer than two."""
        return math.sqrt(self._squares / (self.n - 1) / self.n) if self.n > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        return {
            "criterion": self.criterion,
            "n": self.n,
            "mean": self.mean,
            "std_error": self.std_error,
            "failed": self.failed,
            "reasons": dict(self.reasons),
            "methods": dict(self.methods),
            "coverage": self.coverage / self.n if self.n else None,
            "usage": vars(self.usage),
            "signatures": list(self.signatures),
        }


def summary_table(summaries: Iterable[Summary], console: Console) -> Table:
    """One row per criterion."""
    rows = [
        [
            each.criterion,
            str(each.n),
            "-" if each.mean is None else f"{each.mean:.3f}",
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
    return table(heads, rows, console)


def ratings_table(ratings: Sequence[Rating], console: Console) -> Table:
    """One row per rating."""
    rows = [
        [
            rating.sample.id,
            rating.criterion,
            "-" if rating.score is None else f"{rating.score:.2f}",
            f"{rating.bounds[0]:.2f}-{rating.bounds[1]:.2f}",
            f"{rating.coverage:.2f}",
            rating.method,
            rating.error or rating.sample.output,
        ]
        for rating in ratings
    ]
    return table(
        ("id", "criterion", "score", "bounds", "coverage", "method", "output, or why there is no score"), rows, console
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> Table:
    """A table whose cells are shown as they are: no markup, no control characters; bare where it is piped."""
    made = Table(box=SIMPLE if console.is_terminal else None, pad_edge=False)
    for head in heads:
        made.add_column(head, overflow="ellipsis", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, limit: int = 100) -> str:
    r"""Text that does nothing to a terminal: one line of at most `limit` characters, no control characters.

    >>> plain("a\x1b[31mb\n c")
    'a [31mb c'
    """
    line = " ".join(_CONTROLS.sub(" ", text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def tokens(usage: Usage) -> str:
    """Prompt tokens, those of them that a cache served, and completion tokens."""
    return f"{usage.prompt_tokens:,} ({usage.cached_tokens:,}) / {usage.completion_tokens:,}"


def cost(usage: Usage) -> str:
    """Dollars, or that they are not known."""
    return "unknown" if usage.cost is None else "free" if usage.cost == 0 else f"${usage.cost:.4f}"


def _short(reason: str) -> str:
    """The reason without what differs from reply to reply."""
    return plain(re.sub(r"(no rating in the reply|the judge refused): .*", r"\1", reason, flags=re.DOTALL), 200)
