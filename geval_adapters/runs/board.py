"""What several judges' ratings of a run come to: their numbers as they come, and the rows that are made of them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from .. import report
from ..criteria import Criterion
from ..errors import InputError
from ..rating import GEval
from ..samples import Sample
from .input import Input

if TYPE_CHECKING:
    from ..agreement.intervals import Floats

Asked = tuple[str, str]
"""Who was asked, and by what: the judge's name, and the criterion's key."""


def asked(geval: GEval) -> Asked:
    """Who is asked, and by what."""
    return geval.judge.name, geval.criterion.key


def titles_of(gevals: Iterable[GEval]) -> dict[str, str]:
    """What criteria are called, by key: their names; where two have one name, what tells them apart."""
    titles = {geval.criterion.key: geval.criterion.name for geval in gevals}
    return titles if len(set(titles.values())) == len(titles) else {key: key for key in titles}


class Board(ABC):
    """Keeps the numbers of several judges' ratings, and makes rows of them when the judges are through.

    The rows are ratings like others. They stand in a file of their own beside the output, `NAME.KIND.jsonl`, which is
    written anew whenever a run ends: each depends on all ratings, so that none could be kept from one run to the next.

    Args:
        kind: what the rows are.
        gevals: the judges, by each criterion.
        data: what is rated.
        labels: a file of people's labels, instead of the scores that came with the samples.

    Attributes:
        stages: the judges that are asked at once, and those that are asked when these are through.
        summaries: what the rows come to, by the criterion's key.

    Raises:
        InputError: the labels cannot be read, or are of none of the samples.
    """

    stages: Sequence[Sequence[str]]

    def __init__(self, kind: str, gevals: Sequence[GEval], data: Input, labels: Path | None) -> None:
        import numpy as np

        self.kind = kind
        self.data = data
        self.gevals: dict[str, dict[str, GEval]] = {}
        for geval in gevals:
            self.gevals.setdefault(geval.criterion.key, {})[geval.judge.name] = geval
        self.titles = titles_of(gevals)
        self.places = {
            key: {part.id: place for place, part in enumerate(data.judged(self.criterion(key)))} for key in self.gevals
        }
        self.labels = {key: self._labels(labels, self.criterion(key)) for key in self.gevals} if labels else {}
        self.scores: dict[str, Floats] = {
            key: np.full((len(judges), len(self.places[key])), np.nan) for key, judges in self.gevals.items()
        }
        self.why: dict[Asked, dict[int, str]] = {}
        self.summaries: dict[str, report.Summary] = {}
        self.down: Mapping[str, str] = {}

    def criterion(self, key: str) -> Criterion:
        """The criterion of a key."""
        return next(iter(self.gevals[key].values())).criterion

    def judges(self, key: str) -> list[str]:
        """Who rates by a criterion."""
        return list(self.gevals[key])

    def _labels(self, path: Path, criterion: Criterion) -> dict[str, list[float]]:
        from ..labels.rows import read_labels

        found: dict[str, list[float]] = {}
        for label in read_labels(path, criterion):
            if (
                label.score is not None
                and not label.repeat
                and not label.other
                and label.id in self.places[criterion.key]
            ):
                found.setdefault(label.id, []).append(label.score)
        if not found:
            raise InputError(f"{path}: none of its labels of {criterion.name} is of a sample here; they match by id")
        return found

    def human(self, key: str, sample: Sample) -> float | None:
        """People's mean score of a sample."""
        if not self.labels:
            return sample.human_score(self.criterion(key))
        return fmean(given) if (given := self.labels[key].get(sample.id)) else None

    def take(self, who: Asked, row: Mapping[str, Any]) -> None:
        """Note a rating's numbers."""
        judge, key = who
        place = self.places[key][row["id"]]
        if row["score"] is not None:
            self.scores[key][self.judges(key).index(judge), place] = row["score"]
            self.why.get(who, {}).pop(place, None)
        else:
            self.why.setdefault(who, {})[place] = row["error"]

    def wants(self, who: Asked, sample: Sample) -> bool:
        """Whether a judge is to be asked about a sample."""
        return True

    def seen(self, key: str, place: int) -> bool:
        """Whether any judge was asked about an item."""
        import numpy as np

        noted = any(place in self.why.get((name, key), ()) for name in self.judges(key))
        return noted or not np.isnan(self.scores[key][:, place]).all()

    def conclude(
        self, down: Mapping[str, str], output: Path | None, watch: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        """Make the rows; with an output, write them beside it.

        Args:
            down: the judges that could not go on, and why.
            output: the run's.
            watch: is shown each row, with its criterion's key.

        Raises:
            InputError: the file cannot be written.
        """
        self.down = down
        self.settle()
        path = self.path(output) if output else None
        part = path and path.with_name(f".{path.name}.part")
        try:
            file = part.open("w", encoding="utf-8") if part else None
            for key in self.gevals:
                self.summaries[key] = report.Summary(self.titles[key], judge=self.kind)
                for row in self.rows(key):
                    self.summaries[key].add(row)
                    watch(key, row)
                    if file:
                        file.write(json.dumps(row) + "\n")
            if file and part and path:
                file.close()
                part.replace(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None

    def path(self, output: Path) -> Path:
        """Where the rows stand that belong to an output."""
        return output.with_name(f"{output.stem}.{self.kind}.jsonl")

    @abstractmethod
    def settle(self) -> None:
        """All judges are through."""

    @abstractmethod
    def rows(self, key: str) -> Iterator[dict[str, Any]]:
        """The rows by a criterion, in the samples' order."""

    @abstractmethod
    def sections(self) -> list[report.Section]:
        """What is told of the judges."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""

    @abstractmethod
    def missed(self) -> Iterator[str]:
        """What keeps the rows from being whole, in words."""
