"""A run with a cheap judge and a dear one, which is asked where the cheap one is unsure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import report
from ..judge.base import Usage
from ..rating import GEval
from ..samples import Sample
from .board import Asked, Board
from .input import Input

if TYPE_CHECKING:
    from ..agreement.intervals import Floats
    from ..jury import Cascade, Cost, When

KEPT = ("std_error", "coverage", "low", "high")
SPENT = ("requests", "tokens", "cost")


class CascadeBoard(Board):
    """Who decided each item; see `Board`.

    Args:
        gevals: those of the cheap judge, and those of the dear one.
        data: what is rated.
        when: where the dear one is asked.
        probe: the share of sure items that both are asked about.
    """

    def __init__(self, gevals: Sequence[GEval], data: Input, when: When, probe: float) -> None:
        import numpy as np

        super().__init__("cascade", gevals, data, None)
        cheap, dear = dict.fromkeys(geval.judge.name for geval in gevals)
        self.stages = [[cheap], [dear]]
        self.cheap, self.dear, self.when, self.probe = cheap, dear, when, probe
        self._kept = {key: {name: np.full_like(each, np.nan) for name in KEPT} for key, each in self.scores.items()}
        self._spent: dict[str, dict[str, Floats]] = {
            key: {name: np.full(each.shape[1], np.nan) for name in SPENT} for key, each in self.scores.items()
        }
        self._usage = {(name, key): Usage() for key in self.gevals for name in (cheap, dear)}
        self._reasons: dict[str, dict[int, str]] = {key: {} for key in self.gevals}
        self._unknown = dict.fromkeys(self.gevals, 0)
        self._made: dict[str, Cascade] = {}
        self._costs: dict[str, Cost] = {}

    def take(self, who: Asked, row: Mapping[str, Any]) -> None:
        """Note a rating's numbers, and whether the cheap judge is unsure."""
        from ..jury import spent_of

        super().take(who, row)
        judge, key = who
        place, index = self.places[key][row["id"]], self.stages.index([judge])
        low, high = row["bounds"]
        for name, value in zip(KEPT, (row["std_error"], row["coverage"], low, high), strict=True):
            if value is not None:
                self._kept[key][name][index, place] = value
        usage = Usage(**row["usage"])
        self._usage[who] += usage
        if judge == self.dear:
            for name, spent in spent_of(usage).items():
                self._spent[key][name][place] = spent
            return
        scale = self.criterion(key).scale
        span = scale.high - scale.low
        self._unknown[key] += self.when.unknown(row, span)
        if reason := self.when.why(row, span):
            self._reasons[key][place] = reason
        else:
            self._reasons[key].pop(place, None)

    def wants(self, who: Asked, sample: Sample) -> bool:
        """The cheap judge is asked about everything, the dear one about what that is unsure of, and the probe."""
        from ..jury import probed

        judge, key = who
        if judge == self.cheap:
            return True
        place = self.places[key][sample.id]
        if place in self._reasons[key]:
            return True
        sure = bool(self.scores[key][0, place] == self.scores[key][0, place])
        return sure and probed(self.criterion(key), sample.id, self.probe)

    def settle(self) -> None:
        """Decide each item."""
        import numpy as np

        from ..jury import ballots, cost_of, decide, probed

        for key in self.gevals:
            criterion = self.criterion(key)
            given = ballots((self.cheap, self.dear), self.scores[key], self.data.judged(criterion), criterion)
            unsure = np.zeros(len(self.places[key]), dtype=bool)
            unsure[list(self._reasons[key])] = True
            asked = np.array([probed(criterion, identity, self.probe) for identity in self.places[key]], dtype=bool)
            self._made[key] = decide(given, unsure, asked, self.probe)
            self._costs[key] = cost_of(self._made[key])

    def rows(self, key: str) -> Iterator[dict[str, Any]]:
        """The rating of each item that the cheap judge was asked about, with who decided and each judge's score."""
        from ..jury import cascade_rating, cascade_signature

        made, criterion = self._made[key], self.criterion(key)
        expected = {name: geval.way.expected() for name, geval in self.gevals[key].items()}
        signature = cascade_signature(criterion, expected, made, self.when)
        for place, sample in enumerate(self.data.judged(criterion)):
            if not self.seen(key, place):
                continue
            kept = {name: each[:, place] for name, each in self._kept[key].items()}
            noted = {name: self.why.get((name, key), {}).get(place) for name in (self.cheap, self.dear)}
            why = {**self.down, **{name: error for name, error in noted.items() if error}}
            rating = cascade_rating(
                sample, criterion, made, place, signature, kept, self._reasons[key].get(place, ""), why
            )
            scores = (None if score != score else score for score in made.ballots.scores[:, place].tolist())
            yield rating.to_dict() | {
                "decided": self.dear if made.unsure[place] else self.cheap,
                "judges": dict(zip((self.cheap, self.dear), scores, strict=True)),
            }

    def saved(self, key: str) -> dict[str, dict[str, float | None]]:
        """What was spent, what asking the dear judge everywhere would have taken, and the difference; None: unknown."""
        from ..jury import everywhere, spent_of

        items = int((~(self.scores[key][0] != self.scores[key][0])).sum()) + len(self._unrated(key))
        total = spent_of(self._usage[self.cheap, key] + self._usage[self.dear, key])
        spent = {name: None if value != value else value for name, value in total.items()}
        own = spent_of(self._usage[self.dear, key])
        dear = everywhere(self._made[key], self._spent[key], items)
        saved = {
            name: None if one is None or (other := spent[name]) is None else one - other for name, one in dear.items()
        }
        of_dear = {name: None if value != value else value for name, value in own.items()}
        return {"spent": spent, "spent_on_dear": of_dear, "everywhere": dear, "saved": saved}

    def _unrated(self, key: str) -> Mapping[int, str]:
        return self.why.get((self.cheap, key), {})

    def sections(self) -> list[report.Section]:
        """Who decided, what was saved, and what that cost in agreement."""
        return [
            each
            for key in self.gevals
            for each in report.cascade_sections(
                self.titles[key], self._made[key], self._costs[key], self.saved(key), str(self.when), self._unknown[key]
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        found = [
            {
                **self.summaries[key].to_dict(),
                "when": str(self.when),
                "unsure": int(made.unsure.sum()),
                "probe": int(made.probe.sum()),
                "calibration": made.calibration,
                **self.saved(key),
                "agreement": self._costs[key].to_dict(),
            }
            for key, made in self._made.items()
        ]
        return {"cascade": found, "down": dict(self.down)}

    def missed(self) -> Iterator[str]:
        """That the dear judge was down, and what stayed undecided."""
        for name, why in self.down.items():
            yield f"{name} could not go on: {why}"
        for key, summary in self.summaries.items():
            if summary.failed:
                yield f"{self.titles[key]}: {summary.failed} of {summary.n + summary.failed} items are undecided"
