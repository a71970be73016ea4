"""Rows from files, each with the line that it stands in: JSON Lines, a JSON list, CSV, TSV, Parquet, also gzipped; and
rows from elsewhere.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar, cast

from . import hub, inspect_logs
from .errors import InputError, require

T = TypeVar("T")

READERS: dict[tuple[str, str], Callable[[str], Iterator[tuple[int, object]]]] = {
    (hub.PREFIX, ""): hub.hub_rows,
    ("", inspect_logs.SUFFIX): inspect_logs.log_rows,
}
"""What reads rows that stand in no file of a usual kind, by how their place begins and ends."""


def read_rows(
    path: str | Path, make: Callable[[Mapping[str, Any], int], T], bad_rows: list[str] | None = None
) -> Iterator[T]:
    """What `make` makes of each row and its number; its InputErrors are raised, or collected, with file and line."""
    empty = True
    for number, (line, row) in enumerate(_rows(str(path)), start=1):
        empty = False
        try:
            if isinstance(row, ValueError):
                raise InputError(str(row))
            if not isinstance(row, Mapping):
                kind = type(row).__name__
                raise InputError(f"expected an object with fields such as output and source, found {kind}")
            made = make(row, number)
        except InputError as error:
            problem = f"{path}:{line}: {error}"
            if bad_rows is None:
                raise InputError(problem) from None
            bad_rows.append(problem)
            continue
        yield made
    if empty:
        raise InputError(f"{path}: is empty")


def is_elsewhere(path: str | Path) -> bool:
    """Whether rows stand in no file of this machine.

    >>> is_elsewhere("hf:mteb/summeval"), is_elsewhere("data/hf.jsonl")
    (True, False)
    """
    return str(path).startswith(hub.PREFIX)


def _rows(path: str) -> Iterator[tuple[int, object]]:
    """Line number and row; a row that cannot be parsed is the error that says so."""
    for (begin, end), read in READERS.items():
        if path.startswith(begin) and path.endswith(end):
            yield from read(path)
            return
    if Path(path).is_dir():
        yield from _parquet_rows(*sorted(map(str, Path(path).glob("*.parquet"))))
        return
    try:
        with _opened(path) as file:
            head = file.read(4)
            file.seek(0)
            if head == b"PAR1":
                yield from _parquet_rows(path)
                return
            plain = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if head[:2] == b"\x1f\x8b" else file
            yield from _text_rows(path, io.TextIOWrapper(plain, encoding="utf-8-sig", newline=""))
    except OSError as error:  # which a broken gzip file is, too
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: is not text in UTF-8 ({error}); expected JSON, CSV, TSV or Parquet") from None
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV or TSV: {error}") from None


def _opened(path: str) -> BinaryIO:
    """The file; of standard input all at once, as what it is shows only in its beginning."""
    if path == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    return open(path, "rb")


def _text_rows(path: str, file: TextIO) -> Iterator[tuple[int, object]]:
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if path == "-":  # a table says so by not being JSON, and by its tabs
        begin = file.read(4096).lstrip()
        file.seek(0)
        if begin[:1] not in ("", "[", "{"):
            suffix = ".tsv" if "\t" in begin.partition("\n")[0] else ".csv"
    if suffix not in (".csv", ".tsv"):
        yield from _json_rows(path, file)
        return
    csv.field_size_limit(sys.maxsize)
    reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",")
    for row in reader:
        yield reader.line_num, {key: value for key, value in row.items() if value != "" or key == "output"}


def _json_rows(path: str, file: TextIO) -> Iterator[tuple[int, object]]:
    """JSON Lines, or one list if the first character says so."""
    begun = False
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        if not begun and line.lstrip().startswith("["):
            try:
                rows = json.loads(line + file.read())
            except (ValueError, RecursionError) as error:
                where = number - 1 + getattr(error, "lineno", 1)
                raise InputError(f"{path}:{where}: is not valid JSON: {error}") from None
            yield from enumerate(rows, start=1)
            return
        begun = True
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:  # a ValueError too is an integer of thousands of digits
            yield number, ValueError(f"is not valid JSON: {error}")


def _parquet_rows(*files: str) -> Iterator[tuple[int, dict[str, Any]]]:
    require("parquet", "pyarrow")
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    number = 0
    for file in files:
        try:
            for batch in parquet.ParquetFile(file).iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (arrow.ArrowException, OSError) as error:
            raise InputError(f"{file}: is not a readable Parquet file: {error}") from None
