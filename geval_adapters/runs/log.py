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
            regular = path.is_file()
            locked = lock(self._file) and os.path.samestat(os.fstat(self._file.fileno()), path.stat())
            size = self._file.seek(0, 2)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
        if not regular:
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
        useless: list[tuple[int, int]] = []
        place = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                after = place + len(line)
                if not line.endswith(b"\n"):
                    useless.append((place, after))
                else:
                    try:
                        row = _row(line)
                        take(row)
                    except InputError as error:
                        raise InputError(f"{self.path}:{number}: {error}") from None
                    if row["error"] is not None:
                        useless.append((place, after))
                place = after
        if useless:
            self._remove(useless, place)

    def _remove(self, spans: list[tuple[int, int]], size: int) -> None:
        """Cut parts of the file off; where something follows them, by a new file that takes its place whole."""
        kept_from = size
        while spans and spans[-1][1] == kept_from:
            kept_from = spans.pop()[0]
        if not spans:
            self._file.truncate(kept_from)
            return
        new = self.path.with_name(f".{self.path.name}.part")
        try:
            renewed = new.open("wb+", buffering=0)
            lock(renewed)
            with self.path.open("rb") as old:
                for start, end in zip(
                    [0, *(end for _, end in spans)], [*(at for at, _ in spans), kept_from], strict=True
                ):
                    old.seek(start)
                    while part := old.read(min(end - old.tell(), 1 << 20)):
                        renewed.write(part)
            os.fsync(renewed.fileno())
            if sys.platform == "win32":  # a file that is open can be neither replaced nor renamed there
                self._file.close()
                renewed.close()
            os.replace(new, self.path)
            if sys.platform == "win32":
                renewed = self.path.open("ab", buffering=0)
                lock(renewed)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise InputError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        self._file.close()
        self._file = renewed

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


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not {"signature", "error"} <= row.keys():
        raise InputError("is no row of a run; name another --output")
    return row


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
