"""What has been done: one JSON object per line, each on disk as soon as it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .errors import InputError


class RunLog:
    """A file of rows that grows line by line.

    Raises:
        InputError: the file exists already, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise InputError(f"{path}: exists already; name another --output or remove it") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row and hand it to the operating system."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        """No more rows."""
        self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
