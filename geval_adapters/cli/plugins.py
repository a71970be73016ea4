"""What other packages add to the command line, found by their entry points: engines, and tasks of a harness.

[project.entry-points."geval_adapters.engines"]
ray = "ray_geval.engine:engine"          # address -> runs.Engine

[project.entry-points."geval_adapters.tasks"]
lm-eval = "lm_eval_geval.listing"        # a module with tasks() and INCLUDE_PATH
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import InputError
from ..runs.engine import LOCAL, Engine

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Listed(Protocol):
    """A name that a harness can run, the tasks in it, and what it measures."""

    name: str
    tasks: Sequence[str]
    about: str


class Listing(Protocol):
    """The tasks that ship for one harness, and the folder with their files."""

    INCLUDE_PATH: Path

    def tasks(self) -> Sequence[Listed]:
        """All that can be run, sorted by name."""
        ...


def engines() -> list[str]:
    """The names of all engines: `local`, and those that installed packages add."""
    return ["local", *sorted(_found("engines"))]


def engine(name: str, address: str | None) -> Engine:
    """One of `engines`.

    Raises:
        InputError: there is no cluster at the address.
        MissingPackageError: what it needs is not installed.
    """
    if name == "local":
        if address:
            raise InputError("--address is that of a Ray cluster: it needs --engine ray")
        return LOCAL
    made: Engine = _found("engines")[name].load()(address)
    return made


def listings() -> list[Listing]:
    """The tasks of every harness that an installed package brings."""
    return [each.load() for _, each in sorted(_found("tasks").items())]


def _found(kind: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=f"geval_adapters.{kind}")}
