"""Which ways of rating are tried: the default, and others that differ from it in what the papers found to matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..criteria import Criterion
from ..errors import InputError, one_of

NUMBERS: Mapping[str, type] = MappingProxyType(
    {"n": int, "shots": int, "per_request": int, "rounds": int, "temperature": float, "adaptive": float}
)
TEXTS = ("recipe", "form", "scale", "steps", "readout", "off_grid")


@dataclass(frozen=True)
class Candidate:
    """One way of rating, as the options of `geval score` name it.

    Attributes:
        model: who is asked.
        settings: options that differ from the defaults, sorted by name.
        members: of a jury, those whose ratings are averaged; it is asked nothing itself.

    >>> Candidate.of("a/b", "n=5,form=analyze_rate").name
    'form=analyze_rate n=5'
    """

    model: str | None
    settings: tuple[tuple[str, Any], ...] = ()
    members: tuple[Candidate, ...] = ()

    @classmethod
    def of(cls, model: str | None, settings: str) -> Candidate:
        """A candidate from `NAME=VALUE,NAME=VALUE`.

        Raises:
            InputError: an unknown option, or a value that it cannot have.

        >>> Candidate.of(None, "n=many")
        Traceback (most recent call last):
        geval_adapters.errors.InputError: n=many: n is a number
        """
        given: dict[str, Any] = {}
        for part in filter(None, (each.strip() for each in settings.split(","))):
            name, _, value = (each.strip() for each in part.partition("="))
            name = one_of("setting", name.replace("-", "_"), [*TEXTS, *NUMBERS])
            if name in given:
                raise InputError(f"{settings}: {name} stands there twice")
            if name not in NUMBERS:
                given[name] = value
                continue
            try:
                given[name] = NUMBERS[name](value)
            except ValueError:
                raise InputError(f"{part}: {name} is a number") from None
        if given.get("shots", 1) < 1:
            raise InputError(f"{settings}: shots must be at least 1")
        return cls(model, tuple(sorted(given.items())))

    @property
    def name(self) -> str:
        """What differs from the default, in one line."""
        if self.members:
            return f"jury of {len(self.members)}"
        return " ".join(f"{name}={value}" for name, value in self.settings) or "default"

    @property
    def options(self) -> dict[str, Any]:
        """The settings as the arguments of `GEval`, but for `shots`."""
        return {name: value for name, value in self.settings if name != "shots"}

    @property
    def shots(self) -> int:
        """How many rated examples the judge is shown."""
        return int(dict(self.settings).get("shots", 0))

    def words(self) -> list[str]:
        """The options of `geval score` that rate this way; without the model, and without examples.

        >>> Candidate.of("a/b", "adaptive=.1,per_request=10").words()
        ['--adaptive', '--target-error', '0.1', '--per-request', '10']
        """
        words: list[str] = []
        for name, value in self.settings:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            flags = ["--adaptive", "--target-error"] if name == "adaptive" else [f"--{name.replace('_', '-')}"]
            words += [] if name == "shots" else [*flags, shown]
        return words


def usual(criterion: Criterion) -> list[str]:
    """What is worth trying for a criterion beside the default.

    A scale of 1-10 is not tried where the criterion's words name the steps of its own.

    >>> from geval_adapters import load_criteria
    >>> usual(load_criteria()["topical_chat/naturalness"])[:2]
    ['form=score_only', 'form=analyze_rate,n=5']
    """
    tried = ["form=score_only", "form=analyze_rate,n=5", "n=5,readout=samples", "n=20,readout=samples", "shots=4"]
    tried += ["recipe=batcheval"]
    if criterion.steps:
        tried.append("steps=stored")
    if not criterion.scale.words:
        tried.append("scale=1-10")
    return tried


def compared(models: Sequence[str | None], tried: Sequence[str]) -> list[Candidate]:
    """The default of the first model, then all that is tried, with each model; a jury where there are several.

    >>> [each.name for each in compared(["a", "b"], ["n=5"])]
    ['default', 'default', 'n=5', 'n=5', 'jury of 2']
    """
    ways = dict.fromkeys(Candidate.of(None, settings).settings for settings in ["", *tried])
    found = [Candidate(model, settings) for settings in ways for model in models]
    if len(models) > 1:
        found.append(Candidate(None, members=tuple(found[: len(models)])))
    return found
