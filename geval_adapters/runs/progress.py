"""One run of the command line: what is read, what was done before, how it goes on, and what is printed of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from .. import report
from ..judge.client import LiteLLMJudge

if TYPE_CHECKING:
    from ..judge.ledger import Batch

errors = Console(stderr=True)


@contextmanager
def progress_bar(total: int, done: int) -> Iterator[Callable[[int, str], None]]:
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


class BatchWatch:
    """Says how far a run's batches are, whenever that has changed."""

    def __init__(self) -> None:
        self._said: dict[int, str] = {}

    def __call__(self, batches: list[Batch]) -> None:
        """Say what is new of a ledger's batches."""
        for batch in batches:
            answered = f", {batch.done + batch.failed} answered" if batch.done + batch.failed else ""
            line = f"batch {batch.number}: {batch.stage}, {batch.size} requests{answered}"
            if batch.stage != "prepared" and self._said.get(batch.number) != line:
                self._said[batch.number] = line
                say(line, "")


def say_faults(judge: LiteLLMJudge) -> None:
    """What went wrong with requests, whether it passed when they were sent again or not."""
    if judge.faults:
        counts = ", ".join(f"{count} x {fault}" for fault, count in judge.faults.most_common())
        say(f"faults of {judge.name}: {counts}")


def output_console() -> Console:
    """Standard output; as wide as it takes where it is piped."""
    return Console(width=None if sys.stdout.isatty() else 240, highlight=False)
