"""A run with several judges: their panel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import report
from ..rating import GEval
from .board import Board
from .input import Input

if TYPE_CHECKING:
    from ..jury import Bench, Panel


class JuryBoard(Board):
    """The panel of several judges; see `Board`."""

    def __init__(self, gevals: Sequence[GEval], data: Input, labels: Path | None = None) -> None:
        super().__init__("jury", gevals, data, labels)
        self.stages = [list(dict.fromkeys(geval.judge.name for geval in gevals))]
        self._made: dict[str, Panel] = {}
        self._benches: dict[str, Bench] = {}

    def settle(self) -> None:
        """Make the panels."""
        from ..jury import ballots, bench_of, panel_of

        for key in self.gevals:
            criterion, labels = self.criterion(key), self.labels.get(key)
            self._made[key] = panel_of(
                ballots(self.judges(key), self.scores[key], self.data.judged(criterion), criterion, labels)
            )
            self._benches[key] = bench_of(self._made[key])

    def rows(self, key: str) -> Iterator[dict[str, Any]]:
        """The panel's rating of each item that any judge was asked about, with each judge's score."""
        from ..jury import jury_signature, panel_rating

        made, criterion = self._made[key], self.criterion(key)
        expected = {name: geval.way.expected() for name, geval in self.gevals[key].items()}
        signature = jury_signature(criterion, expected, made)
        for place, sample in enumerate(self.data.judged(criterion)):
            if not self.seen(key, place):
                continue
            noted = {name: self.why.get((name, key), {}).get(place) for name in self.gevals[key]}
            why = {**self.down, **{name: error for name, error in noted.items() if error}}
            row = panel_rating(sample, criterion, made, place, signature, why).to_dict()
            given = zip(made.ballots.judges, made.ballots.scores[:, place].tolist(), strict=True)
            yield row | {
                "human": self.human(key, sample),
                "judges": {name: None if score != score else score for name, score in given},
            }

    def numbers(self, key: str) -> Counter[int]:
        """How many items have how many judges in their panel."""
        places = (place for place in range(len(self.places[key])) if self.seen(key, place))
        return Counter(int(self._made[key].number[place]) for place in places)

    def sections(self) -> list[report.Section]:
        """Each panel: its judges side by side, what they are worth together, and who dissents."""
        return [
            each
            for key in self.gevals
            for each in report.jury_sections(
                self.titles[key],
                self._made[key],
                self._benches[key],
                self.numbers(key),
                self.down,
                list(self.places[key]),
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        panels = []
        for key, made in self._made.items():
            bench = self._benches[key].to_dict()
            ids = list(self.places[key])
            bench["dissents"] = [{"id": ids[each.pop("place")], **each} for each in bench["dissents"]]
            panels.append(
                {
                    **self.summaries[key].to_dict(),
                    "panel": made.how,
                    "why_not_weighted": made.why_not,
                    "judges_per_item": {str(number): count for number, count in sorted(self.numbers(key).items())},
                    "beyond_the_scale": made.beyond,
                    **bench,
                }
            )
        return {"jury": panels, "down": dict(self.down)}

    def missed(self) -> Iterator[str]:
        """Judges that were down, and items that lack a judge."""
        for name, why in self.down.items():
            yield f"{name} could not go on, and is in the panel only as far as it came: {why}"
        for key, judges in self.gevals.items():
            numbers = self.numbers(key)
            short = {number: count for number, count in sorted(numbers.items()) if number < len(judges)}
            if short:
                told = ", ".join(f"{count} have {number}" for number, count in short.items())
                lacking = f"{sum(short.values())} of {numbers.total()} panels lack some of the {len(judges)} judges"
                yield f"{self.titles[key]}: {lacking}: {told}"
