"""One run of the command line: what is read, what was done before, how it goes on, and what is printed of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..criteria import Criterion
from ..errors import InputError
from ..fence import sendable
from ..samples import Sample, read_samples


class Input:
    """A file of samples, checked whole before the first request so that a bad line costs nothing."""

    def __init__(
        self, path: str, fields: Iterable[str], wanted: Sequence[Criterion], limit: int | None, skip_bad: bool
    ) -> None:
        self.path = path
        columns = dict(field.split("=", 1) for field in fields if "=" in field)
        if wrong := [field for field in fields if "=" not in field]:
            raise InputError(f"--field {wrong[0]}: write FIELD=COLUMN")
        self._options: dict[str, Any] = {
            "columns": columns,
            "needs": list(dict.fromkeys(need for each in wanted for need in each.needs)),
        }
        self._skip_bad = skip_bad
        self.limit = limit
        self._kept = list(self._read([])) if path == "-" else None
        self.bad: list[str] = []
        self.total = self.unsendable = 0
        for sample in self._kept if self._kept is not None else self._read(self.bad):
            self.total += 1
            self.unsendable += _clean(sample) != sample
        if not self.total:
            raise InputError(f"{path}: nothing to rate" + (f"; {self.bad[0]}" if self.bad else ""))

    def _read(self, bad: list[str]) -> Iterator[Sample]:
        rows = read_samples(self.path, **self._options, bad_rows=bad if self._skip_bad else None)
        for number, sample in enumerate(rows):
            if self.limit is not None and number >= self.limit:
                return
            yield sample

    def __iter__(self) -> Iterator[Sample]:
        """The samples, read anew each time, and as the judge is shown them."""
        return map(_clean, self._kept if self._kept is not None else self._read([]))

    def notes(self) -> Iterator[str]:
        """What people must know about the file."""
        if self.bad:
            yield f"{len(self.bad)} bad lines were passed over, the first: {self.bad[0]}"
        if self.unsendable:
            yield f"{self.unsendable} samples hold NUL or lone surrogates, which the judge was shown as U+FFFD"


def _clean(sample: Sample) -> Sample:
    texts: dict[str, Any] = {name: sendable(text) for name, text in vars(sample).items() if isinstance(text, str)}
    return replace(sample, **texts)
