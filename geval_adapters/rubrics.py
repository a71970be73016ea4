"""Rubrics: what a text is held to, item by item, each true of it or not and worth points; and what those come to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from .errors import InputError, brief, checked

MOST_MISSING = 0.1
"""The share of a rubric's points that may lie in items which were not read; beyond it there is no score."""


@dataclass(frozen=True)
class RubricItem:
    """Something that is true of a text or not.

    Attributes:
        criterion: what that is ("Names the dose."), or a question to be answered with yes or no.
        points: what it is worth where it is true; negative for a fault.
        tags: what it belongs to, to be summed up by.
    """

    criterion: str
    points: float = 1.0
    tags: tuple[str, ...] = ()

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "str_strip_whitespace": True}

    def __post_init__(self) -> None:
        if not self.criterion.strip():
            raise InputError("criterion: is empty")
        if not self.points or not -1e9 < self.points < 1e9:
            raise InputError(f"points: must be a number other than 0, found {self.points:g}: {brief(self.criterion)}")


@dataclass(frozen=True)
class Rubric:
    """Items that are worth points: `score = Σ points·p / Σ positive points` (HealthBench, Arora et al. 2025).

    The score is 1 where all merits and no fault are there. Faults can bring it below 0, to `low` at the worst. A rubric
    without positive points has no score there, and is refused here.

    Attributes:
        items: at least one with positive points, no two of the same text.

    Raises:
        InputError: there are no items, none has positive points, or two are the same.

    >>> rubric = Rubric.of(["Is it polite?", {"criterion": "Blames the reader.", "points": -2, "tags": ["tone"]}])
    >>> [item.points for item in rubric], rubric.low
    ([1.0, -2.0], -2.0)
    """

    items: tuple[RubricItem, ...]

    def __post_init__(self) -> None:
        if not self.items:
            raise InputError("a rubric needs at least one item, found none")
        seen: dict[str, int] = {}
        for number, item in enumerate(self.items, start=1):
            first = seen.setdefault(" ".join(item.criterion.split()).casefold(), number)
            if first < number:
                raise InputError(f"item {number} is item {first} again: {brief(item.criterion)}; remove one of both")
        if not self.positive:
            raise InputError(
                "all points are negative, so that there are none to have a share of: give a merit positive points, or"
                " word the faults as merits"
            )

    @classmethod
    def of(cls, spec: Any) -> Rubric:
        """A rubric from a list, or the JSON of one: of items, mappings of their fields, or questions worth one point.

        Raises:
            InputError: it is none; the text names the item.
        """
        if isinstance(spec, Rubric):
            return spec
        spec = _parsed(spec)
        if not isinstance(spec, Sequence) or isinstance(spec, str):
            raise InputError(f"a rubric is a list of items, or the JSON of one, found {brief(spec)}")
        return cls(tuple(_item(each, number) for number, each in enumerate(spec, start=1)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Any) -> Any:
        """How a file's rubric is read: whatever `of` takes."""
        from pydantic import PlainValidator

        return handler.generate_schema(Annotated[Any, PlainValidator(cls.of)])

    @property
    def positive(self) -> float:
        """The sum of the positive points."""
        return positive_points(self.items)

    @property
    def low(self) -> float:
        """The score of a text that has all faults and no merit."""
        return sum(min(item.points, 0.0) for item in self.items) / self.positive

    def to_list(self) -> list[dict[str, Any]]:
        """The items as JSON has them, in HealthBench's shape."""
        return [{"criterion": item.criterion, "points": item.points, "tags": list(item.tags)} for item in self.items]

    def __iter__(self) -> Iterator[RubricItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def looks_like_rubric(value: object) -> bool:
    """Whether a value, found under a name that other things have as well, is meant as a rubric.

    >>> looks_like_rubric('[{"criterion": "Is it so?"}]'), looks_like_rubric([{"title": "Style", "weight": 3}])
    (True, False)
    """
    value = _parsed(value)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return isinstance(value, Rubric)
    return all(isinstance(each, str) or (isinstance(each, Mapping) and "criterion" in each) for each in value)


def _parsed(value: object) -> object:
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _item(spec: Any, number: int) -> RubricItem:
    if isinstance(spec, RubricItem):
        return spec
    try:
        return checked(RubricItem, {"criterion": spec} if isinstance(spec, str) else spec)
    except InputError as error:
        raise InputError(f"item {number}: {error}") from None


@dataclass(frozen=True)
class ItemRating:
    """What a judge says of one item.

    Attributes:
        criterion, points, tags: the item's.
        p: the probability that the item is true of the text; None where that was not read: the item is missing, and
            counts neither as true nor as untrue.
        coverage: the share of the probability mass, or of the replies, that says either.
        bounds: the lowest and the highest `p` if the rest were known.
        std_error: of `p`, None where it was not sampled at least twice.
        method: how it was read, as in a `Rating`.
        n_valid, n_failed: replies that were read, and those that were not.
        rationale: what the judge said about it, where it was let.
        error: why there is no `p`.
    """

    criterion: str
    points: float
    tags: tuple[str, ...] = ()
    p: float | None = None
    coverage: float = 0.0
    bounds: tuple[float, float] = (0.0, 1.0)
    std_error: float | None = None
    method: str | None = None
    n_valid: int = 0
    n_failed: int = 0
    rationale: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ItemRating:
        """The item that `to_dict` wrote."""
        low, high = row["bounds"]
        return cls(**{**row, "tags": tuple(row["tags"]), "bounds": (low, high)})

    def to_dict(self) -> dict[str, Any]:
        """The item as a row of a ratings file has it."""
        return vars(self) | {"tags": list(self.tags), "bounds": list(self.bounds)}

    @property
    def lost(self) -> float:
        """The points that a text loses by it: a merit's where it is not there, a fault's where it is; half of them
        where that was not read.
        """
        p = 0.5 if self.p is None else self.p
        return self.points * (1 - p) if self.points > 0 else -self.points * p


@dataclass(frozen=True)
class Tally:
    """What judged items come to.

    Attributes:
        score: `Σ points·p / Σ positive points`, with p = ½ for an item that was not read: the middle of what it could
            be, so that no other estimate can be less wrong at the worst.
        bounds: the lowest and the highest score if all were known: an item that was not read counts as true and as
            untrue, one that was read by its own bounds.
        std_error: `√Σ (points·se)² / Σ positive points` over the items that were read; None where one has none.
        coverage: the items' mean coverage, weighted by their points regardless of sign; 0 for those not read.
        missing: the share of the points, regardless of sign, that lies in items that were not read.
    """

    score: float
    bounds: tuple[float, float]
    std_error: float | None
    coverage: float
    missing: float


def positive_points(items: Sequence[RubricItem | ItemRating]) -> float:
    """The sum of the positive points."""
    return math.fsum(max(item.points, 0.0) for item in items)


def tally(items: Sequence[ItemRating]) -> Tally:
    """What some items come to, at least one of them with positive points.

    >>> found = tally([ItemRating("Polite", 3, p=1, bounds=(1, 1)), ItemRating("Long", -1)])
    >>> round(found.score, 3), [round(bound, 3) for bound in found.bounds], found.missing
    (0.833, [0.667, 1.0], 0.25)
    """
    positive = positive_points(items)
    weight = math.fsum(abs(item.points) for item in items)
    read = [item for item in items if item.p is not None]
    ends = [
        sorted((item.points * low, item.points * high))
        for item in items
        for low, high in [item.bounds if item.p is not None else (0.0, 1.0)]
    ]
    low, high = (math.fsum(side) / positive for side in zip(*ends, strict=True))
    errors = [item.points * item.std_error for item in read if item.std_error is not None]
    score = math.fsum(item.points * (0.5 if item.p is None else item.p) for item in items) / positive
    return Tally(
        score=score,
        bounds=(min(low, score), max(high, score)),
        std_error=math.hypot(*errors) / positive if read and len(errors) == len(read) else None,
        coverage=math.fsum(abs(item.points) * item.coverage for item in read) / weight,
        missing=1 - math.fsum(abs(item.points) for item in read) / weight if len(read) < len(items) else 0.0,
    )


def clipped(score: float) -> float:
    """A score as it is shown: not under 0.

    >>> clipped(-0.25), clipped(0.5)
    (0.0, 0.5)
    """
    return min(max(score, 0.0), 1.0)
