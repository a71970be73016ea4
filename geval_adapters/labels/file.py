"""The file that labels are written to, by one process or several, each label on disk before anything goes on."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from ..errors import InputError
from .rows import Label


class LabelFile:
    """Rows that outlive the process that writes them, whenever that is killed.

    Several processes can write to one file: each takes it for itself, reads what the others have added, and writes.

    Args:
        path: the file; made where there is none.

    Raises:
        InputError: it cannot be written, is no regular file, or holds something else than labels of `geval label`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.labels: list[Label] = []
        try:
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
        if not path.is_file():
            raise InputError(f"{path}: is no regular file, so that labelling could not go on from it")
        self._read = self._lines = 0
        with self.alone():
            pass

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the file against other processes; `labels` then holds all rows that are in it."""
        _lock(self._file.fileno())
        try:
            self._catch_up()
            yield
        finally:
            _unlock(self._file.fileno())

    def _catch_up(self) -> None:
        self._file.seek(self._read)
        lines = self._file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # torn by a kill; whoever wrote it was never told that it is kept
            self._file.truncate(self._read + sum(map(len, lines[:-1])))
            lines.pop()
        for line in lines:
            self._lines += 1
            try:
                row = json.loads(line)
                if "criterion_hash" not in row:
                    raise ValueError
                self.labels.append(Label.model_validate(row))
            except (ValueError, TypeError, ValidationError):
                raise InputError(
                    f"{self.path}: exists already, and line {self._lines} is no label of `geval label`; name another"
                    " --output"
                ) from None
            self._read += len(line)

    def append(self, label: Label) -> None:
        """Add a row and wait until it is on disk; only within `alone`.

        Raises:
            InputError: the file cannot be written, as on a full disk; it is then as it was.
        """
        line = json.dumps(label.model_dump(mode="json")).encode() + b"\n"
        try:
            rest = line
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._read)
            raise InputError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        self._read += len(line)
        self._lines += 1
        self.labels.append(label)

    def close(self) -> None:
        """No more rows."""
        self._file.close()


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            os.lseek(file, 2**31 - 2, os.SEEK_SET)  # a byte that nobody reads: locks are mandatory there
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.02)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _unlock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, 2**31 - 2, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)
