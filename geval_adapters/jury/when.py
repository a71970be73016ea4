"""When a judge is unsure: the conditions under which a cascade asks the dear judge."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..rubrics import ItemRating, positive_points

DIRECTIONS = {"spread": ">", "std_error": ">", "coverage": "<"}
"""What can be told of a rating, and on which side of a limit it is unsure."""
UNRATED = "unrated"
_GRAMMAR = "spread>0.2, std_error>0.1, coverage<0.7, unrated, or several of these with `or` between them"


@dataclass(frozen=True)
class When:
    """Conditions, one of which makes a rating unsure.

    - `spread>X`: the standard deviation of the rating's distribution, as a share of the scale's range. It is not known
      of a single reply that was read without log-probabilities. A rubric's is `√Σ points²·p·(1 − p)` over its items, as
      a share of the positive points, with p = ½ for one that was not read.
    - `std_error>X`: the rating's standard error, as a share of the scale's range.
    - `coverage<X`: the share of the mass (of the replies) that lies on the scale.
    - `unrated`: there is no rating.

    What is not known makes nothing unsure.

    >>> when = When.parse("spread>0.2 or unrated")
    >>> str(when), when.why({"score": 3.0, "method": "logprobs", "distribution": {"1": 0.5, "5": 0.5}}, 4.0)
    ('spread>0.2 or unrated', 'spread 0.50 > 0.2')
    """

    limits: Mapping[str, float]
    unrated: bool = False

    @classmethod
    def parse(cls, text: str) -> When:
        """The conditions that a text names.

        Raises:
            InputError: a condition is none of those, stands there twice, or its limit lies outside of 0 to 1.

        >>> When.parse("coverage>0.7")
        Traceback (most recent call last):
        geval_adapters.errors.InputError: when 'coverage>0.7': a rating is unsure where coverage is low: coverage<0.7
        """
        limits: dict[str, float] = {}
        unrated = False
        for part in re.split(r"\s+or\s+", text.strip()):
            if part == UNRATED:
                unrated = True
                continue
            match = re.fullmatch(r"(\w+)\s*([<>])\s*(\d*\.?\d+)", part)
            if not match or match[1] not in DIRECTIONS:
                raise InputError(f"when {part!r}: expected {_GRAMMAR}")
            name, sign, limit = match[1], match[2], float(match[3])
            if sign != DIRECTIONS[name]:
                side = "low" if sign == ">" else "high"
                raise InputError(
                    f"when {part!r}: a rating is unsure where {name} is {side}: {name}{DIRECTIONS[name]}{match[3]}"
                )
            if not 0 <= limit <= 1:
                raise InputError(f"when {part!r}: the limit is a share, from 0 to 1")
            if name in limits:
                raise InputError(f"when {text!r}: {name} stands there twice")
            limits[name] = limit
        return cls(limits, unrated)

    def __str__(self) -> str:
        told = [f"{name}{DIRECTIONS[name]}{limit:g}" for name, limit in self.limits.items()]
        return " or ".join([*told, *([UNRATED] if self.unrated else [])])

    def why(self, row: Mapping[str, Any], span: float) -> str:
        """Why a rating, as `Rating.to_dict` has it, is unsure; empty where it is not. `span` is the scale's range."""
        if row["score"] is None:
            return "unrated" if self.unrated else ""
        for name, limit in self.limits.items():
            value = _value(name, row, span)
            if value is not None and (value > limit if DIRECTIONS[name] == ">" else value < limit):
                return f"{name} {value:.2f} {DIRECTIONS[name]} {limit:g}"
        return ""

    def unknown(self, row: Mapping[str, Any], span: float) -> bool:
        """Whether a rating tells nothing that a condition asks for."""
        if row["score"] is None or not self.limits:
            return False
        return all(_value(name, row, span) is None for name in self.limits)


def _value(name: str, row: Mapping[str, Any], span: float) -> float | None:
    if name == "coverage":
        return float(row["coverage"])
    if name == "std_error":
        return None if row["std_error"] is None else row["std_error"] / span
    if row["method"] == "single":
        return None
    if row.get("items"):
        items = [ItemRating.of(each) for each in row["items"]]
        known = [(each.points, 0.5 if each.p is None else each.p) for each in items]
        return math.hypot(*(points * math.sqrt(p * (1 - p)) for points, p in known)) / positive_points(items) / span
    distribution = {float(score): p for score, p in row["distribution"].items()}
    if not (total := sum(distribution.values())):
        return None
    middle = sum(score * p for score, p in distribution.items()) / total
    return math.sqrt(sum(p * (score - middle) ** 2 for score, p in distribution.items()) / total) / span
