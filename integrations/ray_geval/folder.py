"""A folder of Parquet files that grows by one file after another: what `geval score --engine ray` has done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geval_adapters import BusyError, InputError
from geval_adapters.runs import lock

from .schema import RATING, to_row, to_table


class RatingsFolder:
    """A `geval_adapters.runs.RunLog` of Parquet files, each of which appears whole or not at all.

    A file is written every `ROWS` rows or `SECONDS` seconds, whichever comes first; no more than that can be lost.

    Args:
        path: the folder; locked against other processes until `close`.
        resume: whether to go on with ratings that are there; without, they are refused.

    Raises:
        InputError: ratings are there and not to be resumed, another process is writing, or nothing can be written.
    """

    ROWS = 1024
    SECONDS = 10.0

    def __init__(self, path: Path, resume: bool = True) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / ".lock").open("ab")
        except FileExistsError:
            raise InputError(f"{path}: is a file; with --engine ray, --output is a folder") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        if not lock(self._lock):
            raise BusyError(f"{path}: another process is writing to it")
        files = self._files()
        if files and not resume:
            raise InputError(f"{path}: holds ratings already; name another --output, or let it be resumed")
        self._next = 1 + max((int(file.stem.rpartition("-")[2]) for file in files), default=-1)
        self._failed: list[Mapping[str, Any]] = []
        self._waiting: list[Mapping[str, Any]] = []
        self._since = time.monotonic()

    def resume(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Hand over each row that is there, then remove those that came to nothing.

        Raises:
            InputError: a file is no file of ratings, or `take` refuses a row; the folder is then as it was.
        """
        incomplete = []
        for file in self._files():
            rows = self._read(file)
            for number, row in enumerate(rows, start=1):
                try:
                    take(row)
                except InputError as error:
                    raise InputError(f"{file}: row {number}: {error}") from None
            if any(row["error"] is not None for row in rows):
                incomplete.append(file)
        for file in incomplete:
            if rated := [row for row in self._read(file) if row["error"] is None]:
                self._write(file, rated)
            else:
                file.unlink()

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row.

        Raises:
            InputError: a file cannot be written, as on a full disk.
        """
        (self._waiting if row["error"] is None else self._failed).append(row)
        if len(self._waiting) >= self.ROWS or time.monotonic() - self._since > self.SECONDS:
            self._flush()

    def close(self) -> None:
        """Write what is waiting, and the rows that came to nothing; no more rows."""
        with self._lock:
            self._waiting += self._failed
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._write(self.path / f"part-{self._next:06}.parquet", self._waiting)
            self._next += 1
        self._waiting = []
        self._since = time.monotonic()

    def _write(self, file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        unfinished = file.with_suffix(".part")
        try:
            pq.write_table(to_table(rows), unfinished)
            unfinished.replace(file)
        except OSError as error:
            raise InputError(f"{file}: cannot be written: {error.strerror or error}") from None

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def _read(self, file: Path) -> list[dict[str, Any]]:
        try:
            return [to_row(stored) for stored in pq.read_table(file, columns=RATING.names).to_pylist()]
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{file}: is no file of ratings ({error}); name another --output") from None

    def __enter__(self) -> RatingsFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
