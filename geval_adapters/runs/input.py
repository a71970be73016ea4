"""One run of the command line: what is read, what was done before, how it goes on, and what is printed of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..criteria import Criterion
from ..errors import InputError
from ..fence import sendable
from ..judged import SEVERAL, judged
from ..samples import Sample, read_samples
from ..seen import Seen


class Input:
    """A file of samples, checked whole before the first request so that a bad line costs nothing.

    Attributes:
        counts: how many ratings each criterion makes of it, by the criterion's key.
        images: how many of the samples hold images.
    """

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
        self._wanted = list(wanted)
        self.limit = limit
        self._kept = list(self._read([])) if path == "-" else None
        self.bad: list[str] = []
        self.counts = {each.key: 0 for each in wanted}
        self.unsendable = self.images = 0
        names = Seen()
        for sample in self._kept if self._kept is not None else self._read(self.bad):
            self.unsendable += _clean(sample) != sample
            self.images += bool(sample.images)
            for each in self._wanted:
                parts = judged(sample, each)
                self.counts[each.key] += len(parts)
                if each.judges in SEVERAL:
                    self._tell_apart(names, each, parts)
        if not any(self.counts.values()):
            raise InputError(f"{path}: nothing to rate" + (f"; {self.bad[0]}" if self.bad else ""))

    def _read(self, bad: list[str]) -> Iterator[Sample]:
        rows = read_samples(self.path, **self._options, bad_rows=bad if self._skip_bad else None)
        number = 0
        for sample in rows:
            if self.limit is not None and number >= self.limit:
                return
            try:
                for each in self._wanted:
                    judged(sample, each)
            except InputError as error:
                if not self._skip_bad:
                    raise InputError(f"{self.path}: {error}") from None
                bad.append(f"{self.path}: {error}")
                continue
            number += 1
            yield sample

    def _tell_apart(self, names: Seen, criterion: Criterion, parts: Iterable[Sample]) -> None:
        for part in parts:
            if (criterion.key, part.id) in names:
                raise InputError(f"{self.path}: two parts of samples are called {part.id}; give the samples other ids")
            names.add((criterion.key, part.id))

    def judged(self, criterion: Criterion) -> Iterator[Sample]:
        """What a criterion judges of the samples, read anew each time, and as the judge is shown it."""
        for sample in self._kept if self._kept is not None else self._read([]):
            yield from map(_clean, judged(sample, criterion))

    def __iter__(self) -> Iterator[Sample]:
        """What is judged of the samples, where that is the same by all criteria.

        Raises:
            InputError: it is not.
        """
        first, *others = self._wanted
        if any((each.judges, each.cut_at) != (first.judges, first.cut_at) for each in others):
            raise InputError(f"{first.name} and {others[0].name} judge other parts of samples: run each by itself")
        return self.judged(first)

    def notes(self) -> Iterator[str]:
        """What people must know about the file."""
        if self.bad:
            yield f"{len(self.bad)} bad lines were passed over, the first: {self.bad[0]}"
        if self.unsendable:
            yield f"{self.unsendable} samples hold NUL or lone surrogates, which the judge was shown as U+FFFD"


def _clean(sample: Sample) -> Sample:
    texts: dict[str, Any] = {name: sendable(text) for name, text in vars(sample).items() if isinstance(text, str)}
    return replace(sample, **texts)
