"""How a criterion is rated: every setting that could change a score, and the published configurations of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, get_args

from .criteria import FORMS, Form, OffGrid, Scale
from .errors import InputError, checked, one_of
from .fence import ControlTokens
from .judge.sampling import Readout, Sequential
from .prompts import wording

StepsFrom = Literal["none", "stored", "auto"]
STEPS: tuple[StepsFrom, ...] = get_args(StepsFrom)
"""Where evaluation steps come from: nowhere, from the criterion, or from the judge, which writes them once."""

Persona = Literal["hhh", "human_annotator"]
"""Who the judge is asked to be (Chiang & Lee 2023, §3.4.2)."""


@dataclass(frozen=True)
class Recipe:
    """All that is settled before a judge is asked; see `GEval` for what each setting means.

    Raises:
        InputError: a value that a setting cannot have.

    >>> Recipe(form="rate_explain+analyze_rate").forms
    ('rate_explain', 'analyze_rate')
    """

    form: str = "rate_explain"
    scale: Scale | None = None
    steps: str | tuple[str, ...] = "none"
    n: int | None = None
    temperature: float | None = None
    readout: Readout = "auto"
    off_grid: OffGrid = "keep"
    adaptive: float | None = None
    persona: Persona | None = None
    control_tokens: ControlTokens = "inert"
    together: bool = False
    per_request: int = 1
    rounds: int | None = None
    origin: str = field(default="", compare=False)

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        self.forms  # noqa: B018 (raises where there is no such form)
        if isinstance(self.steps, str):
            one_of("steps", self.steps, STEPS)
        if self.n is not None and self.n < 1:
            raise InputError(f"n must be at least 1, got {self.n}")
        if self.temperature is not None and not self.temperature >= 0:
            raise InputError(f"temperature must be 0 or more, got {self.temperature:g}")
        if self.adaptive is not None and not 0 < self.adaptive < 1:
            raise InputError(f"adaptive is a share of the scale's range, between 0 and 1, got {self.adaptive:g}")
        if self.per_request < 1 or (self.rounds is not None and self.rounds < 1):
            raise InputError(f"per_request and rounds must be at least 1, got {self.per_request} and {self.rounds}")
        if not self.batched:
            return
        if self.n is not None or self.adaptive is not None:
            raise InputError("samples that share a request are asked about in rounds: set rounds, not n or adaptive")
        if len(self.forms) > 1:
            raise InputError(f"samples that share a request are rated in one form, not {self.form}")

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms whose ratings are averaged, mostly one."""
        return tuple(one_of("form", form, FORMS) for form in self.form.split("+"))

    @property
    def batched(self) -> bool:
        """Whether samples share requests, in rounds."""
        return self.per_request > 1 or self.rounds is not None

    def sequential(self, scale: Scale) -> Sequential | None:
        """When to stop sampling an item of this scale; None for never before `n`."""
        span = scale.high - scale.low
        return None if self.adaptive is None else Sequential(self.adaptive * span, span)

    @classmethod
    def of(cls, name: str | None, **given: Any) -> Recipe:
        """What was given, else what the recipe of that name says, else the default.

        Raises:
            InputError: no such recipe, or a value that a setting cannot have.

        >>> Recipe.of("stureborg", n=5, temperature=None).n
        5
        """
        base = vars(load_recipes()[one_of("recipe", name, load_recipes())]) if name is not None else {}
        return checked(cls, {**base, **{setting: value for setting, value in given.items() if value is not None}})


@cache
def load_recipes() -> dict[str, Recipe]:
    """The published configurations, by name."""
    return {name: checked(Recipe, settings, f"recipe {name!r}") for name, settings in wording("recipes").items()}
