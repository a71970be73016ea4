"""What there is to run: the groups and tasks, with a line each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

INCLUDE_PATH = Path(__file__).parent / "tasks"
"""For `lm_eval --include_path`, where the harness does not find the tasks by itself."""


@dataclass(frozen=True)
class Listed:
    """A name for `lm_eval --tasks`.

    Attributes:
        name: a group, or a task that belongs to none.
        tasks: the group's tasks, which can be run on their own.
        about: what it measures, and how.
    """

    name: str
    tasks: tuple[str, ...]
    about: str


def tasks() -> list[Listed]:
    """All that can be run, sorted by name.

    >>> next(listed for listed in tasks() if listed.name == "qags_geval_logprobs").tasks
    ('qags_geval_logprobs_consistency',)
    """
    return sorted(_tasks(), key=lambda listed: listed.name)


def _tasks() -> Iterator[Listed]:
    files = dict(_configs("task"))
    grouped = set()
    for name, (_, group) in _configs("group"):
        grouped |= set(group["task"])
        yield Listed(name, tuple(group["task"]), _about(*files[group["task"][0]]))
    for name, (file, config) in files.items():
        if name not in grouped:
            yield Listed(name, (), _about(file, config))


def _configs(kind: str) -> Iterator[tuple[str, tuple[Path, dict[str, Any]]]]:
    """Name, file and content of all files of a kind: `group` or `task`."""
    for file in sorted(INCLUDE_PATH.glob("*/*.yaml")):
        config = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506  # a safe loader
        if isinstance(name := config.get(kind), str):
            yield name, (file, config)


def _about(file: Path, config: dict[str, Any]) -> str:
    """The first comment of a task's file, or of the one that it includes."""
    described = file.parent / config["include"] if "include" in config else file
    return described.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


class _Loader(yaml.SafeLoader):
    """Leaves `!function` as its text."""


_Loader.add_constructor("!function", lambda loader, node: str(node.value))
