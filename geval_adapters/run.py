"""One run of the command line: what is read, what was done before, how it goes on, and what is printed of it."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console

from . import report
from .comparison import Comparer, Ranked, RankedDocument, Verdict, by_document, ranked
from .criteria import Criterion
from .elicitation import concurrently
from .errors import InputError, StopError
from .judge import LiteLLMJudge, Usage
from .prompts import sendable
from .rating import GEval
from .runlog import Log, RunLog, differences
from .samples import Sample, read_samples

errors = Console(stderr=True)


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


class Breaker:
    """Ends a run in which hardly anything succeeds any more.

    >>> breaker = Breaker(0.5)
    >>> for _ in range(Breaker.LAST): breaker.count("no answer within 120 s")
    Traceback (most recent call last):
    geval_adapters.errors.StopError: 50 of the last 50 failed: no answer within 120 s (--max-failures 1 goes on)
    """

    LAST = 50

    def __init__(self, most: float) -> None:
        self._most = most
        self._last: deque[str | None] = deque(maxlen=self.LAST)

    def count(self, error: str | None) -> None:
        """Count what came out of one item.

        Raises:
            StopError: more than the allowed share of the last items came to nothing.
        """
        self._last.append(error)
        failed = [each for each in self._last if each]
        if len(self._last) == self.LAST and len(failed) > self._most * self.LAST:
            reason = report.plain(max(failed, key=failed.count))
            raise StopError(f"{len(failed)} of the last {self.LAST} failed: {reason} (--max-failures 1 goes on)")


Rate = Callable[[GEval, Iterable[Sample]], AsyncGenerator[dict[str, Any]]]
"""What rates samples: the rows of a ratings file, as they come."""


async def rate_here(geval: GEval, samples: Iterable[Sample]) -> AsyncGenerator[dict[str, Any]]:
    """Rate in this process."""
    async with aclosing(geval.arate_many(samples)) as ratings:
        async for rating in ratings:
            yield rating.to_dict()


class ScoreRun:
    """`geval score`: ratings to the output as they come, a progress bar, and what is printed at the end.

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
    ) -> None:
        self.judge = judge
        self.gevals = gevals
        self.data = data
        self.as_json = as_json
        self.summaries = {each.criterion.name: report.Summary(each.criterion.name) for each in gevals}
        self._log = log
        self._rate = rate
        self._breaker = Breaker(max_failures)
        self._first: list[Mapping[str, Any]] = []
        self._done: set[tuple[str, str]] = set()
        self._others = 0
        self._opened = False

    async def rate(self) -> None:
        """Rate every sample by every criterion, those aside that have been."""
        if self._log:
            await self._resume(self._log)
        with progress(self.data.total * len(self.gevals), len(self._done)) as tick:
            for geval in self.gevals:
                name = geval.criterion.name
                missing = (sample for sample in self.data if (name, sample.id) not in self._done)
                async with aclosing(self._rate(geval, missing)) as rows:
                    async for row in rows:
                        self._keep(row)
                        spent = sum((each.usage for each in self.summaries.values()), Usage())
                        tick(sum(each.failed for each in self.summaries.values()), report.cost(spent))
                        self._breaker.count(row["error"])
                self.summaries[name].usage += geval.steps_usage

    async def _resume(self, log: Log) -> None:
        expected = {geval.criterion.name: await geval.aexpected() for geval in self.gevals}
        digests: dict[str, str] = {}

        def take(row: dict[str, Any]) -> None:
            name, identity = row["criterion"], row["id"]
            if not digests:
                digests.update((sample.id, sample.digest) for sample in self.data)
            if name not in expected or identity not in digests:
                self._others += 1
                return
            _check_kind(log, "ratings", row, expected[name])
            if row["sample"] != digests[identity]:
                raise InputError(f"{log.path}: sample {identity!r} has another text there; name another --output")
            if row["error"] is None:
                self._done.add((name, identity))
                self._count(row)

        log.resume(take)

    def _keep(self, row: Mapping[str, Any]) -> None:
        if self._log:
            self._log.write(row)
        elif self.as_json:  # as they come, so that nothing piles up
            sys.stdout.write(("," if self._opened else '{"ratings": [') + "\n" + json.dumps(row))
            self._opened = True
        self._count(row)

    def _count(self, row: Mapping[str, Any]) -> None:
        self.summaries[row["criterion"]].add(row)
        if len(self._first) <= self.SHOWN:
            self._first.append(row)

    def show(self) -> None:
        """Print what came out, also of a run that ended early."""
        summaries = list(self.summaries.values())
        if self.as_json:
            end = {"criteria": [each.to_dict() for each in summaries], "faults": dict(self.judge.faults)}
            sys.stdout.write(("\n], " if self._opened else "{") + json.dumps(end)[1:] + "\n")
            sys.stdout.flush()
        else:
            console = output_console()
            if 0 < len(self._first) <= self.SHOWN:
                console.print(report.ratings_table(self._first, console))
            console.print(report.summary_table(summaries, console))
            for each in summaries:
                for signature in each.signatures:
                    console.print(signature, style="dim", markup=False, highlight=False, soft_wrap=True)
        for each in summaries:
            for reason, count in each.reasons.most_common():
                say(f"{each.criterion}: {count} not rated: {reason}", "red")
        say_faults(self.judge)
        for note in self._notes():
            say(note)

    def _notes(self) -> Iterator[str]:
        yield from self.data.notes()
        if self._done:
            yield f"{len(self._done)} of {self.data.total * len(self.gevals)} had been rated before"
        for each in self.summaries.values():
            if each.saved:
                yield f"{each.criterion}: adaptive sampling saved {each.saved} samples"
        if self._others:
            yield f"{self._others} rows of the output are of other samples or criteria, and not counted here"


Groups = Mapping[str | None, Sequence[Sample]]
"""The candidates of each document."""

Known = Mapping[tuple[str, str], Verdict]
"""Verdicts by the candidates' ids, in the order shown."""

Rank = Callable[..., AsyncGenerator[tuple[str | None, RankedDocument]]]
"""What ranks documents, called as `rank_here` is: each document with its name, as they come."""


async def rank_here(
    comparer: Comparer, groups: Groups, known: Known, keep: Callable[[Verdict], None], **options: Any
) -> AsyncGenerator[tuple[str | None, RankedDocument]]:
    """Rank in this process; `known`, `keep` and the options are those of `Comparer.arank`."""

    async def ranked(name: str | None, samples: Sequence[Sample]) -> tuple[str | None, RankedDocument]:
        return name, await comparer.arank(samples, known=known, keep=keep, **options)

    jobs = (ranked(name, samples) for name, samples in groups.items())
    async with aclosing(concurrently(jobs, abreast(comparer, groups), ordered=False)) as documents:
        async for document in documents:
            yield document


def abreast(comparer: Comparer, groups: Groups) -> int:
    """How many documents to rank at once so that they keep the judge busy."""
    return max(1, comparer.elicitation.width // min(map(len, groups.values())))


class RankRun:
    """`geval rank`: verdicts to the log as they come; rankings come from the verdicts.

    Raises:
        InputError: the log holds other things than verdicts of this judge on these samples.
    """

    def __init__(
        self, comparer: Comparer, data: Input, log: RunLog | None, max_failures: float, rank: Rank = rank_here
    ) -> None:
        self.comparer = comparer
        self.groups = by_document(data)
        self._ranked: dict[str | None, RankedDocument] = {}
        self._log = log
        self._rank = rank
        self._breaker = Breaker(max_failures)
        self._known: dict[tuple[str, str], Verdict] = {}
        self._failed = 0
        self._usage = Usage()

    async def rank(self, **options: Any) -> None:
        """Rank each document's candidates."""
        if self._log:
            self._resume(self._log)
        with progress(len(self.groups), 0) as tick:
            ranked = self._rank(self.comparer, self.groups, self._known, self._keep, **options)
            async with aclosing(ranked) as documents:
                async for name, document in documents:
                    self._ranked[name] = document
                    tick(self._failed, report.cost(self._usage))

    def _resume(self, log: RunLog) -> None:
        expected = self.comparer.expected()
        samples = {sample.id: sample for group in self.groups.values() for sample in group}

        def take(row: dict[str, Any]) -> None:
            _check_kind(log, "verdicts", row, expected)
            first, second = samples.get(row["first"]), samples.get(row["second"])
            if first is None or second is None:
                return
            verdict = Verdict.from_dict(row, first, second)
            if verdict.to_dict()["sample"] != row["sample"]:
                raise InputError(f"{log.path}: {first.id!r} or {second.id!r} has another text; name another --output")
            if row["error"] is None:
                self._known[first.id, second.id] = verdict
                self._usage += verdict.usage

        log.resume(take)

    def _keep(self, verdict: Verdict) -> None:
        if self._log:
            self._log.write(verdict.to_dict())
        self._usage += verdict.usage
        self._failed += verdict.p_first is None
        self._breaker.count(verdict.error)

    @property
    def documents(self) -> dict[str | None, RankedDocument]:
        """The documents that are ranked, in the order of the input."""
        return {name: self._ranked[name] for name in self.groups if name in self._ranked}

    def verdicts(self) -> Iterator[Verdict]:
        """All verdicts on the documents that are ranked."""
        for document in self.documents.values():
            yield from document.verdicts

    def result(self, method: str) -> Ranked:
        """What the verdicts on the documents that are ranked come to."""
        criterion = self.comparer.criterion
        human: dict[tuple[str | None, Hashable], float] = {
            (name, sample.id): known
            for name, document in self.documents.items()
            for sample in document.samples.values()
            if (known := sample.human_score(criterion)) is not None
        }
        judged = {name: document.outcomes for name, document in self.documents.items()}
        return ranked(criterion.name, method, judged, human, systems=False)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per candidate of the documents that are ranked."""
        for document in self.documents.values():
            yield from document.rows(self.comparer.criterion)


def _check_kind(log: Log, what: str, row: Mapping[str, Any], expected: Mapping[str, Collection[str]]) -> None:
    """Raise InputError where a row of the log is of another kind than this run's rows will be."""
    if wrong := differences(row["signature"], expected):
        raise InputError(
            f"{log.path}: holds {what} that this run's cannot stand beside: {'; '.join(wrong)}."
            " Name another --output, or run as before"
        )


@contextmanager
def progress(total: int, done: int) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal's standard error; nothing where that is piped."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("rating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}/s"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cost]}"),
        TextColumn("{task.fields[failed]} failed"),
    )
    with ExitStack() as stack:
        if not errors.is_terminal:
            yield lambda failed, cost: None
            return
        bar = stack.enter_context(Progress(*columns, console=errors, transient=True))
        task = bar.add_task("rating", total=total, completed=done, rate="-", cost="", failed=0)

        def tick(failed: int, cost: str) -> None:
            bar.update(task, advance=1, failed=failed, cost=cost, rate=f"{bar.tasks[0].speed or 0:.1f}")

        yield tick


def say(note: str, style: str = "yellow") -> None:
    """A remark on standard error."""
    errors.print(report.plain(note, 500), style=style, markup=False, highlight=False, soft_wrap=True)


def say_faults(judge: LiteLLMJudge) -> None:
    """What went wrong with requests, whether it passed when they were sent again or not."""
    if judge.faults:
        counts = ", ".join(f"{count} x {fault}" for fault, count in judge.faults.most_common())
        say(f"faults of {judge.name}: {counts}")


def output_console() -> Console:
    """Standard output; as wide as it takes where it is piped."""
    return Console(width=None if sys.stdout.isatty() else 240, highlight=False)
