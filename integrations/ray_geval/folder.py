"""A folder of Parquet files that grows by one file after another: what `geval score --engine ray` has done."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geval_adapters import InputError

from .schema import to_row, to_table


class RatingsFolder:
    """The folder's twin of `geval_adapters.runlog.RunLog`: rows are added to files that appear whole or not at all.

    A file is written every `ROWS` rows or `SECONDS` seconds, whichever comes first; that much a crash can lose.

    Raises:
        InputError: the path is no folder, cannot be written, or another process is at work in it.
    """

    ROWS = 1024
    SECONDS = 10.0

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / ".lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileExistsError:
            raise InputError(f"{path}: is a file; with --engine ray, --output is a folder") from None
        except BlockingIOError:
            raise InputError(
                f"{path}: another process is writing there; wait for it or name another --output"
            ) from None
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        self._waiting: list[Mapping[str, Any]] = []
        self._since = time.monotonic()
        self._next = 1 + max((int(file.stem.rpartition("-")[2]) for file in self._files()), default=-1)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows that are there."""
        for file in self._files():
            yield from map(to_row, self._read(file))

    def drop(self, unwanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Rewrite the files without some rows."""
        for file in self._files():
            rows = [to_row(row) for row in self._read(file)]
            kept = [row for row in rows if not unwanted(row)]
            if not kept:
                file.unlink()
            elif len(kept) < len(rows):
                self._write(file, kept)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        self._waiting.append(row)
        if len(self._waiting) >= self.ROWS or time.monotonic() - self._since > self.SECONDS:
            self._flush()

    def close(self) -> None:
        """Write what is waiting; no more rows."""
        self._flush()
        self._lock.close()

    def _flush(self) -> None:
        if self._waiting:
            self._write(self.path / f"part-{self._next:06}.parquet", self._waiting)
            self._next += 1
        self._waiting = []
        self._since = time.monotonic()

    def _write(self, file: Path, rows: list[Any]) -> None:
        unfinished = file.with_suffix(".tmp")
        pq.write_table(to_table(rows), unfinished)
        unfinished.replace(file)

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def _read(self, file: Path) -> list[dict[str, Any]]:
        try:
            rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{file}: is not a readable Parquet file: {error}") from None
        return rows

    def __enter__(self) -> RatingsFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
