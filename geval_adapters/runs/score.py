"""Rating a file: what was rated before, the ratings as they come, and what is printed of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from .. import report
from ..errors import InputError, checked
from ..judge.base import Usage
from ..judge.client import LiteLLMJudge
from ..judged import SEVERAL
from ..rating import GEval
from ..rubrics import ItemRating
from ..samples import Sample
from ..signature import Signature
from .breaker import Breaker
from .input import Input
from .log import Log
from .progress import output_console, progress_bar, say, say_faults
from .rank import check_kind


@dataclass(frozen=True)
class RatedRow:
    """What a row of a ratings file must hold for a run to go on from it."""

    id: str
    criterion: str
    score: float | None
    error: str | None
    signature: str | None
    sample: str | None
    method: str | None
    coverage: float | None
    n_valid: int | None
    n_failed: int | None
    usage: Usage
    items: tuple[ItemRating, ...] = ()


Rate = Callable[[GEval, Iterable[Sample]], AsyncGenerator[dict[str, Any]]]
"""What rates samples: the rows of a ratings file, as they come."""


async def rate_here(geval: GEval, samples: Iterable[Sample]) -> AsyncGenerator[dict[str, Any]]:
    """Rate in this process."""
    async with aclosing(geval.arate_many(samples, as_completed=True)) as ratings:
        async for rating in ratings:
            yield rating.to_dict()


class ScoreRun:
    """`geval score`: ratings to the output as they come, a progress bar, and what is printed at the end.

    `watch` is shown each row that counts, with its criterion's key: the new ones, and those that were there.

    Raises:
        InputError: the output holds other things than ratings of these samples by this judge.
    """

    SHOWN = 20

    def __init__(
        self,
        judge: LiteLLMJudge,
        gevals: Sequence[GEval],
        data: Input,
        log: Log | None,
        max_failures: float,
        as_json: bool,
        rate: Rate = rate_here,
        watch: Callable[[str, Mapping[str, Any]], None] = lambda key, row: None,
    ) -> None:
        from ..agreement.unread import Unread

        self.judge = judge
        self.gevals = gevals
        self.data = data
        self.as_json = as_json
        names = [each.criterion.name for each in gevals]
        titles = {each.criterion.key: each.criterion.name for each in gevals}
        if len(set(names)) < len(titles):  # two criteria of one name are told apart by what they say
            titles = {key: key for key in titles}
        several = {each.criterion.key for each in gevals if each.criterion.judges in SEVERAL}
        self.summaries = {key: report.Summary(title, in_parts=key in several) for key, title in titles.items()}
        self._log = log
        self._rate = rate
        self._watch = watch
        self._breaker = Breaker(max_failures)
        self._first: list[tuple[str, Mapping[str, Any]]] = []
        self._done: set[tuple[str, str]] = set()
        self._unread = {key: Unread() for key in self.summaries}
        self._missed: list[dict[str, Any]] = []
        self._others = 0
        self._opened = False

    async def rate(self) -> None:
        """Rate every sample by every criterion, those aside that have been."""
        if self._log:
            await self._resume(self._log)
        with progress_bar(sum(self.data.counts.values()), len(self._done)) as tick:
            at_once = len(self.gevals) if self.judge.opening else 1  # questions that are collected travel together
            for first in range(0, len(self.gevals), at_once):
                ratings = [self._rate_by(geval, tick) for geval in self.gevals[first : first + at_once]]
                for ended in await asyncio.gather(*ratings, return_exceptions=True):
                    if isinstance(ended, BaseException):
                        raise ended
        self.judge.finish()

    async def _rate_by(self, geval: GEval, tick: Callable[[int, str], None]) -> None:
        key = geval.criterion.key
        missing = (sample for sample in self.data.judged(geval.criterion) if (key, sample.id) not in self._done)
        async with aclosing(self._rate(geval, missing)) as rows:
            async for row in rows:
                self._keep(key, row)
                spent = sum((each.usage for each in self.summaries.values()), Usage())
                tick(sum(each.failed for each in self.summaries.values()), report.cost(spent))
                self._breaker.count(row["error"])
        self.summaries[key].usage += geval.steps_usage

    def _judged(self, key: str) -> Iterator[Sample]:
        (criterion,) = (each.criterion for each in self.gevals if each.criterion.key == key)
        return self.data.judged(criterion)

    async def _resume(self, log: Log) -> None:
        gevals = {geval.criterion.key: geval for geval in self.gevals}
        names = {geval.criterion.name: geval.criterion.key for geval in self.gevals}
        expected = {key: await geval.aexpected() for key, geval in gevals.items()}
        digests: dict[tuple[str, str], str] = {}

        def take(row: dict[str, Any]) -> None:
            rated = checked(RatedRow, row)
            if not digests:
                digests.update(((key, each.id), each.digest) for key in gevals for each in self._judged(key))
            if rated.criterion not in names or (names[rated.criterion], rated.id) not in digests:
                self._others += 1
                return
            if rated.error is not None:  # it is asked for again
                return
            signature = Signature.parse(rated.signature)
            key = signature.parts.get("criterion", "")
            check_kind("ratings", signature, expected.get(key) or expected[names[rated.criterion]])
            if rated.sample != digests[key, rated.id]:
                raise InputError(f"sample {rated.id!r} has another text there; name another --output")
            if (key, rated.id) in self._done:
                raise InputError(f"sample {rated.id!r} has a rating by {rated.criterion!r} already; remove one of both")
            criterion = gevals[key].criterion
            if rated.score is None or not criterion.allows(rated.score):
                raise InputError(f"the score {rated.score} is not on the scale {criterion.scale}; remove the line")
            self._done.add((key, rated.id))
            self._count(key, row)

        log.resume(take)

    def _keep(self, key: str, row: Mapping[str, Any]) -> None:
        if self._log:
            self._log.write(row)
        elif self.as_json:  # as they come, so that nothing piles up
            sys.stdout.write(("," if self._opened else '{"ratings": [') + "\n" + json.dumps(row))
            self._opened = True
        self._count(key, row)

    def _count(self, key: str, row: Mapping[str, Any]) -> None:
        self.summaries[key].add(row)
        self._unread[key].add(bool(row["n_failed"]), row["doc_id"], row["system_id"], row["human"])
        missing = max(0, report.SHOWN - len(self._missed))
        self._missed += [{"id": row["id"], **each} for each in (row.get("unread") or ())[:missing]]
        self._watch(key, row)
        if len(self._first) <= self.SHOWN:
            self._first.append((key, row))

    def show(self) -> None:
        """Print what came out, also of a run that ended early."""
        summaries = list(self.summaries.values())
        if not any(each.n + each.failed for each in summaries):
            say_faults(self.judge)
            return
        if self.as_json:
            end = {"criteria": [each.to_dict() for each in summaries], "faults": dict(self.judge.faults)}
            sys.stdout.write(("\n], " if self._opened else "{") + json.dumps(end)[1:] + "\n")
            sys.stdout.flush()
        else:
            console = output_console()
            if len(self._first) <= self.SHOWN:
                ratings = self.in_order(self._first)
                console.print(report.ratings_table(ratings, console))
                report.print_rationales(ratings, console)
            console.print(report.summary_table(summaries, console))
            for each in summaries:
                if each.documents:
                    console.print(report.documents_table(each, console, self.SHOWN))
            for each in summaries:
                if each.by_items:
                    report.print_sections(report.rubric_sections(each.title, each.by_items), console)
            for each in summaries:
                for signature in each.signatures:
                    console.print(report.plain(signature, 1000), style="dim", markup=False, soft_wrap=True)
        for each in summaries:
            for reason, count in each.reasons.most_common():
                say(f"{each.criterion}: {count} not rated: {reason}", "red")
        for line in report.unread_lines(self._missed):
            say(line, "red")
        for unread in self._unread.values():
            for warning in report.warnings_of(unread.gaps()):
                say(f"warning: {warning}", "bold red")
        say_faults(self.judge)
        for note in self._notes():
            say(note)

    def in_order(self, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
        """Rows, given with their criteria's keys, by criterion and then as in the input; named as in the summaries."""
        keys = list(self.summaries)
        places = {(key, each.id): place for key in keys for place, each in enumerate(self._judged(key))}
        ordered = sorted(rows, key=lambda each: (keys.index(each[0]), places[each[0], each[1]["id"]]))
        return [{**row, "criterion": self.summaries[key].criterion} for key, row in ordered]

    def _notes(self) -> Iterator[str]:
        yield from self.data.notes()
        if self._done:
            yield f"{len(self._done)} of {sum(self.data.counts.values())} had been rated before"
        for each in self.summaries.values():
            if each.usage.from_cache:
                yield f"{each.criterion}: {each.usage.from_cache} replies came from the cache, for nothing"
            if len(each.served) > 1:
                counts = ", ".join(f"{model} {count} x" for model, count in each.served.most_common())
                yield f"{each.criterion}: {len(each.served)} models were served: {counts}"
            if each.saved:
                yield f"{each.criterion}: adaptive sampling saved {each.saved} replies"
        if self._others:
            yield f"{self._others} rows of the output are of other samples or criteria, and not counted here"
