"""What ratings by rubrics come to: tag by tag, and item by item, those first that cost the most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..rubrics import MOST_MISSING, ItemRating, clipped, positive_points, tally
from .sections import Section, number

SHOWN_ITEMS = 15
"""How many items a table shows."""


@dataclass
class TagSums:
    """The scores that the items of one tag come to in each row, kept up row by row.

    Attributes:
        items: how many items there were in all rows.
        rows: rows that have a score by this tag.
        without: rows whose items of this tag are faults alone, so that there is no share to have.
        unread: rows too many of whose items of this tag were not read.
    """

    items: int = 0
    rows: int = 0
    without: int = 0
    unread: int = 0
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, items: Sequence[ItemRating]) -> None:
        """Count in the items of one row."""
        self.items += len(items)
        if not positive_points(items):
            self.without += 1
            return
        found = tally(items)
        if found.missing > MOST_MISSING:
            self.unread += 1
            return
        self.rows += 1
        step = found.score - self._mean
        self._mean += step / self.rows
        self._squares += step * (found.score - self._mean)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it; the standard error is over rows."""
        return {
            "items": self.items,
            "rows": self.rows,
            "mean": self._mean if self.rows else None,
            "std_error": math.sqrt(self._squares / (self.rows - 1) / self.rows) if self.rows > 1 else None,
            "only_negative": self.without,
            "not_read": self.unread,
        }


@dataclass
class ItemSums:
    """One item over all rows that have it.

    Attributes:
        rows: rows that have it.
        read: rows in which it was read.
        p: the sum of the probabilities that it is true, over these.
        cost: the sum of what it costs of each row's score; half of it in rows where it was not read.
    """

    rows: int = 0
    read: int = 0
    p: float = 0.0
    cost: float = 0.0


@dataclass
class RubricSums:
    """What the ratings of one criterion come to, item by item.

    >>> sums = RubricSums()
    >>> sums.add([ItemRating("Polite", 3, ("tone",), p=0.5).to_dict(), ItemRating("Long", -1, p=1).to_dict()])
    >>> [(item["criterion"], item["costs"]) for item in sums.to_dict()["items"]]
    [('Polite', 0.5), ('Long', 0.3333333333333333)]
    """

    rows: int = 0
    tags: dict[str, TagSums] = field(default_factory=dict)
    items: dict[tuple[str, float], ItemSums] = field(default_factory=dict)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count in the items of one rating, as its row has them."""
        items = [ItemRating.of(row) for row in rows]
        self.rows += 1
        positive = positive_points(items)
        for item in items:
            sums = self.items.setdefault((item.criterion, item.points), ItemSums())
            sums.rows += 1
            sums.cost += item.lost / positive
            if item.p is not None:
                sums.read += 1
                sums.p += item.p
        for tag in dict.fromkeys(tag for item in items for tag in item.tags):
            self.tags.setdefault(tag, TagSums()).add([item for item in items if tag in item.tags])

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it: `costs` is an item's part in what the mean score lacks to 1."""
        items: list[dict[str, Any]] = [
            {
                "criterion": criterion,
                "points": points,
                "rows": each.rows,
                "p": each.p / each.read if each.read else None,
                "not_read": each.rows - each.read,
                "costs": each.cost / self.rows,
            }
            for (criterion, points), each in self.items.items()
        ]
        ordered = sorted(items, key=lambda each: -each["costs"])
        return {"tags": {tag: self.tags[tag].to_dict() for tag in sorted(self.tags)}, "items": ordered}


def rubric_sections(title: str, sums: RubricSums) -> list[Section]:
    """The tables of a rubric, for terminal and page: by tag, and the items that cost the most."""
    said = sums.to_dict()
    sections = []
    if said["tags"]:
        heads: tuple[str, ...] = ("tag", "items", "rows", "score", "± std. error", "only negative", "not read")
        cells = [
            [
                *(tag, str(each["items"]), str(each["rows"]), shown_score(each["mean"]), number(each["std_error"])),
                *(str(each["only_negative"]), str(each["not_read"])),
            ]
            for tag, each in said["tags"].items()
        ]
        sections.append(Section(f"{title} by tag", heads, cells))
    if costly := [each for each in said["items"] if each["costs"] > 0]:
        heads = ("item", "points", "rows", "true", "not read", "costs")
        cells = [
            [
                *(each["criterion"], f"{each['points']:+g}", str(each["rows"]), number(each["p"])),
                *(str(each["not_read"]), number(each["costs"])),
            ]
            for each in costly[:SHOWN_ITEMS]
        ]
        lacking = sum(each["costs"] for each in costly)
        note = (
            f"{len(cells)} of {len(costly)} items that cost something; all of them cost {lacking:.3f} of the mean score"
        )
        sections.append(Section(f"{title}: the items that cost the most", heads, cells, [note]))
    return sections


def shown_score(score: float | None, decimals: int = 3) -> str:
    """A score by rubric as people see it: not under 0, with what it is in brackets where it is.

    >>> shown_score(0.5), shown_score(-0.25), shown_score(None)
    ('0.500', '0.000 (-0.250)', '-')
    """
    if score is None:
        return "-"
    below = f" ({score:.{decimals}f})" if score < 0 else ""
    return f"{clipped(score):.{decimals}f}{below}"


def listed_items(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """The items of one rating, a line each: how likely it is true, what it is worth, and what it says."""
    lines = []
    for row in rows:
        p = "not read" if row["p"] is None else f"{row['p']:.2f}"
        why = f" [{row['error']}]" if row["error"] else ""
        lines.append(f"{p:>8}  {row['points']:+g}  {' '.join(row['criterion'].split())}{why}")
    return "\n".join(lines) or None
