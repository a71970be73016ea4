"""What has been done: one JSON object per line, each on disk as soon as it is there, for the next run to find."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from ..errors import BusyError, InputError


class Log(Protocol):
    """Where a run keeps its rows: `RunLog`, or what does the same with other files."""

    path: Path

    def resume(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Hand over each row that is there, then remove those that came to nothing."""
        ...

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        ...


class RunLog:
    """A file of rows that outlives the process that writes it, whenever that is killed.

    A row with an `error` has come to nothing. Such rows are written last, when the log is closed, so that the next run
    can cut them off and try again; all others are handed to the operating system at once.

    Args:
        path: the file; locked against other processes until `close`.
        resume: whether to go on with a file that is there; without, it is refused.

    Raises:
        InputError: the file is there and not to be resumed, or cannot be written; a `BusyError`, where another process
            is writing to it.
    """

    def __init__(self, path: Path, resume: bool = True) -> None:
        self.path = path
        try:
            self._file = path.open("ab", buffering=0)
            locked = lock(self._file)
            size = self._file.seek(0, 2)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
        if not path.is_file():
            raise InputError(f"{path}: is no regular file, so that no run could be resumed from it")
        if not locked:
            raise BusyError(f"{path}: another process is writing to it")
        if size and not resume:
            raise InputError(f"{path}: exists already; name another --output, or let it be resumed")
        self._failed: list[Mapping[str, Any]] = []

    def resume(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Hand over each row that is there, then remove those that came to nothing, and a torn last line.

        Raises:
            InputError: a line is no row of a run log, or `take` refuses it; the file is then as it was.
        """
        end: int | None = None
        place, after = 0, []
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    row = self._row(line, number)
                    take(row)
                    if row["error"] is not None:
                        end = place if end is None else end
                    elif end is not None:
                        after.append(line)
                else:
                    end = place if end is None else end
                place += len(line)
        if end is not None:
            self._file.truncate(end)
            self._append(b"".join(after))

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not {"signature", "error"} <= row.keys():
            raise InputError(f"{self.path}: exists already, and line {number} is no rating; name another --output")
        return row

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row.

        Raises:
            InputError: the file cannot be written, as on a full disk.
        """
        if row["error"] is not None:
            self._failed.append(row)
        else:
            self._append(json.dumps(row).encode() + b"\n")

    def _append(self, lines: bytes) -> None:
        whole = os.fstat(self._file.fileno()).st_size
        try:
            while lines:
                lines = lines[self._file.write(lines) :]
        except OSError as error:
            self._file.truncate(whole)
            raise InputError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Write the rows that came to nothing; no more rows."""
        with self._file:
            self._append(b"".join(json.dumps(row).encode() + b"\n" for row in self._failed))

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock(file: IO[bytes]) -> bool:
    """Lock a file for as long as it is open; False where another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**31 - 2)  # a byte that nobody reads: locks are mandatory there
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
