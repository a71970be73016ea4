"""A file of settings that people write: YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import InputError


def read_yaml(file: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        InputError: it cannot be read, or holds something else.
    """
    import yaml

    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except yaml.MarkedYAMLError as error:  # not its whole text, which quotes the file: there may be keys in it
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{file}{line}: cannot be read as YAML: {error.problem}") from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as YAML: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: must be a mapping of names to values, found {type(data).__name__}")
    return data
