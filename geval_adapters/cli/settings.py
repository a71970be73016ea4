"""`geval.yaml`: what a project's commands have in common, beside its data or in the working folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from ..errors import InputError, checked

FILE = "geval.yaml"


@dataclass(frozen=True)
class Settings:
    """What `geval.yaml` can say; an option of the command line takes the place of what it says.

    Attributes:
        model: `--model`.
        criteria: each a `--criterion`.
        concurrency: `--concurrency`.
        fields: field to column, each a `--field`.
        output: `--output` of `geval score`.
        options: each an `--option`.
        cache: `--cache`.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    model: str | None = None
    criteria: list[str] = field(default_factory=list)
    concurrency: int | None = None
    fields: dict[str, str] = field(default_factory=dict)
    output: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    cache: str | None = None


def arguments(verb: str, several: Mapping[str, bool], given: Mapping[str, Any]) -> Iterator[str]:
    """What the settings add to a command line.

    Args:
        verb: which command it is.
        several: the command's options, each with whether it can come several times.
        given: the options and arguments that are there, which take the settings' place.

    Raises:
        InputError: the file cannot be read, or says what cannot be.
    """
    data = next((given[name] for name in ("input", "files", "ratings", "old") if given.get(name)), None)
    path = _found(data[0] if isinstance(data, (list, tuple)) else data)
    if path is None:
        return
    settings = _read(path)
    values: dict[str, list[str]] = {
        "model": [settings.model] if settings.model else [],
        "criterion": [_beside(path, each) if each.endswith((".yaml", ".yml")) else each for each in settings.criteria],
        "concurrency": [str(settings.concurrency)] if settings.concurrency is not None else [],
        "field": [f"{name}={column}" for name, column in settings.fields.items()],
        "output": [_beside(path, settings.output)] if settings.output and verb == "score" else [],
        "option": [f"{name}={json.dumps(value)}" for name, value in settings.options.items()],
        "cache": [_beside(path, settings.cache)] if settings.cache and verb != "audit" else [],
    }
    for name, told in values.items():
        if name in several and name not in given and (several[name] or len(told) == 1):
            yield from (part for value in told for part in (f"--{name}", value))


def _found(data: object) -> Path | None:
    folders: Iterable[Path] = (Path(str(data)).parent, Path()) if data and data != "-" else (Path(),)
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


def _beside(path: Path, name: str) -> str:
    return str(path.parent / name)


def _read(path: Path) -> Settings:
    import yaml

    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read as YAML: {error}") from None
    if not isinstance(told, dict):
        raise InputError(f"{path}: is a mapping with {', '.join(each.name for each in fields(Settings))}")
    if isinstance(told.get("criteria"), str):
        told["criteria"] = [told["criteria"]]
    return checked(Settings, told, str(path))
