"""Rating a file: what was rated before, the ratings as they come, and what is printed of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from .. import report
from ..errors import InputError, JudgeError, UnderWay, checked
from ..judge.base import Usage
from ..judge.client import LiteLLMJudge
from ..judged import SEVERAL
from ..rating import GEval
from ..rubrics import ItemRating
from ..samples import Sample
from ..seen import Seen
from ..signature import Signature
from .board import Asked, Board, asked, titles_of
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

    Judges work at once, each at its own pace. One of several that cannot go on is `down`, and the others go on.

    Args:
        gevals: each judge with each criterion.
        data: what is rated.
        log: where rows are kept.
        max_failures: see `Breaker`; counted for each judge.
        as_json: whether to print JSON.
        rate: what rates samples.
        watch: is shown each row that counts, with who was asked: the new ones, and those that were there.
        board: what several judges' ratings come to.

    Raises:
        InputError: the output holds other things than ratings of these samples by these judges.
    """

    SHOWN = 20

    def __init__(
        self,
        gevals: Sequence[GEval],
        data: Input,
        log: Log | None,
        max_failures: float,
        as_json: bool,
        rate: Rate = rate_here,
        watch: Callable[[Asked, Mapping[str, Any]], None] = lambda who, row: None,
        board: Board | None = None,
    ) -> None:
        from ..agreement.unread import Unread

        self.gevals = {asked(geval): geval for geval in gevals}
        self.judges = {name: cast(LiteLLMJudge, geval.judge) for (name, _), geval in self.gevals.items()}
        self.data = data
        self.as_json = as_json
        self.board = board
        titles = titles_of(gevals)
        self.summaries = {
            (name, key): report.Summary(
                titles[key],
                in_parts=geval.criterion.judges in SEVERAL,
                judge=name if len(self.judges) > 1 else "",
            )
            for (name, key), geval in self.gevals.items()
        }
        self.down: dict[str, str] = {}
        self._log = log
        self._rate = rate
        self._watch = watch
        self._max_failures = max_failures
        self._first: list[tuple[Asked, Mapping[str, Any]]] = []
        self._done = {who: Seen() for who in self.summaries}
        self._unread = {who: Unread(tested_only=True) for who in self.summaries}
        self._missed: list[dict[str, Any]] = []
        self._others = 0
        self._opened = False
        self._began = False

    async def rate(self) -> None:
        """Rate every sample by every judge and criterion, those aside that have been."""
        if self._log:
            await self._resume(self._log)
            if self.board:
                self.board.path(self._log.path).unlink(missing_ok=True)  # it is of fewer ratings than there will be
        self._began = True
        for number, stage in enumerate(self.board.stages if self.board else [list(self.judges)]):
            gevals = {who: geval for who, geval in self.gevals.items() if who[0] in stage}
            done = sum(len(self._done[who]) for who in gevals)
            with progress_bar(sum(self.data.counts[key] for _, key in gevals), done) as tick:
                await self._ask(stage, gevals, tick, alone=number == 0)
        for judge in self.judges.values():
            judge.finish()

    async def _ask(
        self, judges: Sequence[str], gevals: Mapping[Asked, GEval], tick: Callable[[int, str], None], alone: bool
    ) -> None:
        """Let judges work at once. One that cannot go on is down; where all are that stand `alone`, so is the run."""
        own = [[geval for (name, _), geval in gevals.items() if name == judge] for judge in judges]
        ended = await asyncio.gather(*(self._judge(each, tick) for each in own), return_exceptions=True)
        failed = {judge: error for judge, error in zip(judges, ended, strict=True) if isinstance(error, BaseException)}
        for error in failed.values():
            if isinstance(error, UnderWay) or not isinstance(error, JudgeError):
                raise error
        if alone and len(failed) == len(judges):
            raise next(iter(failed.values()))
        self.down |= {judge: str(error).removeprefix(f"{judge}: ") for judge, error in failed.items()}

    async def _judge(self, gevals: Sequence[GEval], tick: Callable[[int, str], None]) -> None:
        """Rate by all criteria of one judge."""
        breaker = Breaker(self._max_failures)
        at_once = len(gevals) if gevals[0].judge.opening else 1  # questions that are collected travel together
        for first in range(0, len(gevals), at_once):
            ratings = [self._rate_by(geval, breaker, tick) for geval in gevals[first : first + at_once]]
            for ended in await asyncio.gather(*ratings, return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended

    async def _rate_by(self, geval: GEval, breaker: Breaker, tick: Callable[[int, str], None]) -> None:
        who = asked(geval)
        missing = (
            sample
            for sample in self.data.judged(geval.criterion)
            if sample.id not in self._done[who] and (self.board is None or self.board.wants(who, sample))
        )
        async with aclosing(self._rate(geval, missing)) as rows:
            async for row in rows:
                self._keep(who, row)
                spent = sum((each.usage for each in self.summaries.values()), Usage())
                tick(sum(each.failed for each in self.summaries.values()), report.cost(spent))
                breaker.count(row["error"])
        self.summaries[who].usage += geval.steps_usage

    async def _resume(self, log: Log) -> None:
        expected: dict[Asked, dict[str, set[str]]] = {}
        for who, geval in self.gevals.items():
            try:
                expected[who] = await geval.aexpected()
            except JudgeError:
                if len(self.judges) == 1:
                    raise
                known = geval.way.expected()  # of one that is down, and will say so again
                expected[who] = {name: known[name] for name in known.keys() - {"steps", "prompt"}}
        keys: dict[str, str] = {geval.criterion.name: geval.criterion.key for geval in self.gevals.values()}
        criteria = {geval.criterion.key: geval.criterion for geval in self.gevals.values()}
        ids, texts = Seen(), Seen()

        def take(row: dict[str, Any]) -> None:
            rated = checked(RatedRow, row)
            if not ids:
                for key, each in criteria.items():
                    for part in self.data.judged(each):
                        ids.add((key, part.id))
                        texts.add((key, part.id, part.digest))
            if rated.criterion not in keys or (keys[rated.criterion], rated.id) not in ids:
                self._others += 1
                return
            if rated.error is not None:  # it is asked for again
                return
            signature = Signature.parse(rated.signature)
            key = signature.parts.get("criterion", "")
            judge = signature.parts.get("model", "")
            if judge not in self.judges and len(self.judges) > 1:  # of a jury that had another judge
                self._others += 1
                return
            judge = judge if judge in self.judges else next(iter(self.judges))
            check_kind("ratings", signature, expected.get((judge, key)) or expected[judge, keys[rated.criterion]])
            if (key, rated.id, rated.sample) not in texts:
                raise InputError(f"sample {rated.id!r} has another text there; name another --output")
            if rated.id in self._done[judge, key]:
                by = f"{rated.criterion!r}" + (f" of {judge}" if len(self.judges) > 1 else "")
                raise InputError(f"sample {rated.id!r} has a rating by {by} already; remove one of both")
            if rated.score is None or not criteria[key].allows(rated.score):
                raise InputError(f"the score {rated.score} is not on the scale {criteria[key].scale}; remove the line")
            self._done[judge, key].add(rated.id)
            self._count((judge, key), row)

        log.resume(take)

    def _keep(self, who: Asked, row: Mapping[str, Any]) -> None:
        if self._log:
            self._log.write(row)
        elif self.as_json:  # as they come, so that nothing piles up
            sys.stdout.write(("," if self._opened else '{"ratings": [') + "\n" + json.dumps(row))
            self._opened = True
        self._count(who, row)

    def _count(self, who: Asked, row: Mapping[str, Any]) -> None:
        self.summaries[who].add(row)
        self._unread[who].add(bool(row["n_failed"]), row["doc_id"], row["system_id"], row["human"])
        missing = max(0, report.SHOWN - len(self._missed))
        self._missed += [{"id": row["id"], **each} for each in (row.get("unread") or ())[:missing]]
        self._watch(who, row)
        if self.board:
            self.board.take(who, row)
        elif len(self._first) <= self.SHOWN:
            self._first.append((who, row))

    def show(self) -> None:
        """Print what came out, also of a run that ended early."""
        summaries = list(self.summaries.values())
        if not any(each.n + each.failed for each in summaries):
            self._say_faults()
            return
        if self.board and self._began:
            self.board.conclude(self.down, self._log.path if self._log else None, self._kept_of_board)
            for key, result in self.board.summaries.items():
                result.usage = sum((each.usage for (_, own), each in self.summaries.items() if own == key), Usage())
        if self.as_json:
            self._print_json(summaries)
        else:
            self._print(summaries)
        for each in summaries:
            for reason, count in each.reasons.most_common():
                say(f"{each.title}: {count} not rated: {reason}", "red")
        for line in report.unread_lines(self._missed):
            say(line, "red")
        for unread in self._unread.values():
            for warning in report.warnings_of(unread.gaps()):
                say(f"warning: {warning}", "bold red")
        self._say_faults()
        for note in self._notes():
            say(note)

    def _kept_of_board(self, key: str, row: Mapping[str, Any]) -> None:
        self._watch(("", key), row)
        if len(self._first) <= self.SHOWN:
            self._first.append((("", key), row))

    def _print_json(self, summaries: Sequence[report.Summary]) -> None:
        faults = {name: dict(judge.faults) for name, judge in self.judges.items()}
        end: dict[str, Any] = {
            "criteria": [each.to_dict() for each in summaries],
            "faults": faults if len(faults) > 1 else next(iter(faults.values())),
        }
        if self.board and self._began:
            end |= self.board.to_dict()
        sys.stdout.write(("\n], " if self._opened else "{") + json.dumps(end)[1:] + "\n")
        sys.stdout.flush()

    def _print(self, summaries: Sequence[report.Summary]) -> None:
        console = output_console()
        if 0 < len(self._first) <= self.SHOWN:
            ratings = self.in_order(self._first)
            console.print((report.jury_table if self.board else report.ratings_table)(ratings, console))
            if not self.board:
                report.print_rationales(ratings, console)
        if self.board and self._began:
            summaries = [*summaries, *self.board.summaries.values()]
        console.print(report.summary_table(summaries, console))
        for each in summaries:
            if each.documents:
                console.print(report.documents_table(each, console, self.SHOWN))
        for each in summaries:
            if each.by_items:
                report.print_sections(report.rubric_sections(each.title, each.by_items), console)
        if self.board and self._began:
            report.print_sections(self.board.sections(), console)
        for each in summaries:
            for signature in each.signatures:
                console.print(report.plain(signature, 1000), style="dim", markup=False, soft_wrap=True)

    def _say_faults(self) -> None:
        for judge in self.judges.values():
            say_faults(judge)

    @property
    def results(self) -> dict[str, report.Summary]:
        """What the run came to, by the criterion's key: the ratings, or what several judges' come to."""
        if self.board:
            return self.board.summaries
        return {key: summary for (_, key), summary in self.summaries.items()}

    def missed(self) -> Iterator[str]:
        """What was not rated, in words."""
        for each in self.summaries.values():
            if each.failed:
                yield f"{each.title}: {each.failed} of {each.n + each.failed} were not rated"
        if self.board:
            yield from self.board.missed()

    def in_order(self, rows: Iterable[tuple[Asked, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
        """Rows, given with who was asked, by criterion and then as in the input; named as in the summaries."""
        keys = {key: summary.criterion for (_, key), summary in self.summaries.items()}
        criteria = {geval.criterion.key: geval.criterion for geval in self.gevals.values()}
        parts = ((key, part) for key in keys for part in self.data.judged(criteria[key]))
        places = {(key, part.id): place for place, (key, part) in enumerate(parts)}
        ordered = sorted(rows, key=lambda each: places[each[0][1], each[1]["id"]])
        return [{**row, "criterion": keys[key]} for (_, key), row in ordered]

    def _notes(self) -> Iterator[str]:
        yield from self.data.notes()
        if done := sum(map(len, self._done.values())):
            total = sum(self.data.counts[key] for _, key in self.gevals)
            yield f"{done} of {total} had been rated before"
        for each in self.summaries.values():
            if each.usage.from_cache:
                yield f"{each.title}: {each.usage.from_cache} replies came from the cache, for nothing"
            if len(each.served) > 1:
                counts = ", ".join(f"{model} {count} x" for model, count in each.served.most_common())
                yield f"{each.title}: {len(each.served)} models were served: {counts}"
            if each.cut:
                yield f"{each.title}: {each.cut} ratings are of a conversation that was cut at turns (left_out)"
            if each.saved:
                yield f"{each.title}: adaptive sampling saved {each.saved} replies"
        if self._others:
            yield f"{self._others} rows of the output are of other samples, criteria or judges, and not counted here"
