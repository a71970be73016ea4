"""`geval batches`: what a run has under way at a provider."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..errors import InputError, JudgeError
from ..runs.progress import output_console, say
from .app import verb
from .ending import Exit
from .options import JsonOption

if TYPE_CHECKING:
    from ..judge.ledger import Batch, Ledger


@verb("batches")
def show_batches(
    file: Annotated[Path, typer.Argument(help="The batches of a run: NAME.batches.db beside its output.")],
    cancel: Annotated[bool, typer.Option("--cancel", help="Give up what is under way; what is done is kept.")] = False,
    adopt: Annotated[
        str | None, typer.Option(metavar="N=ID", help="Batch N, of which it is not known whether it was sent, is ID.")
    ] = None,
    drop: Annotated[
        int | None, typer.Option(metavar="N", help="Batch N was never sent, or is lost: its requests are sent anew.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the batches of a run: state, age, counts and price.

    Exit code: 0 all are done, 4 some are under way, 2 bad usage or input.
    """
    from ..judge.ledger import Ledger

    ledger = Ledger(file, create=False)
    if adopt is not None:
        number, _, remote = adopt.partition("=")
        if not remote:
            raise InputError(f"--adopt {adopt}: write N=ID, the number shown here and the provider's id")
        ledger.write(replace(_open(ledger, number, "sending"), stage="under way", remote=remote))
    if drop is not None:
        ledger.forget(_open(ledger, str(drop), "sending", "under way"))
    if cancel:
        asyncio.run(_cancel(ledger))
    batches = ledger.batches()
    if as_json:
        typer.echo(json.dumps({"batches": [batch.to_dict() for batch in batches]}, indent=2))
    elif batches:
        console = output_console()
        heads = ("batch", "model", "state", "age", "done", "failed", "of", "estimate", "at the provider", "")
        console.print(report.table(heads, [_row(batch) for batch in batches], console))
    else:
        say(f"{file}: no batch was sent")
    raise typer.Exit(Exit.BUSY if any(batch.stage != "ended" for batch in batches) else Exit.DONE)


def _open(ledger: Ledger, number: str, *stages: str) -> Batch:
    """The batch of this number, if it is in one of these stages."""
    for batch in ledger.batches():
        if str(batch.number) == number and batch.stage in stages:
            return batch
    raise InputError(f"{ledger.path}: there is no batch {number} that is {' or '.join(stages)}")


def _row(batch: Batch) -> tuple[str, ...]:
    age = "" if batch.sent is None else _span(time.time() - batch.sent)
    cost = "unknown" if batch.cost is None else f"${batch.cost:.4f}"
    counts = (str(batch.done), str(batch.failed), str(batch.size))
    return (str(batch.number), batch.model, batch.stage, age, *counts, cost, batch.remote or "", batch.why)


def _span(seconds: float) -> str:
    """A length of time as people say it.

    >>> _span(90), _span(7300)
    ('1 min', '2 h')
    """
    return f"{seconds / 3600:.0f} h" if seconds >= 5400 else f"{seconds // 60:.0f} min"


async def _cancel(ledger: Ledger) -> None:
    from ..judge.batch_apis import batch_api
    from ..judge.faults import Fault

    for batch in ledger.batches():
        if batch.stage == "under way" and batch.remote:
            try:
                await batch_api(batch.model).cancel(batch.remote)
            except Fault as fault:
                raise JudgeError(f"{batch.model}: batch {batch.remote}: {fault.message}") from None
            say(f"batch {batch.remote} is being cancelled; the run's command takes what was done")
