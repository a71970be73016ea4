"""`geval criteria`: what can be rated."""

from __future__ import annotations

import json

import typer

from .. import report
from ..criteria import load_criteria
from ..runs.progress import output_console
from .app import verb
from .options import JsonOption


@verb("criteria")
def list_criteria(as_json: JsonOption = False) -> None:
    """List what can be rated, with scale and source."""
    rows = [
        (name, str(each.scale), ", ".join(("output", *each.needs)), each.task, each.origin)
        for name, each in sorted(load_criteria().items(), key=lambda item: ("/" in item[0], item[0]))
    ]
    heads = ("criterion", "scale", "needs", "task", "origin")
    if as_json:
        typer.echo(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=2))
    else:
        console = output_console()
        console.print(report.table(heads, rows, console))
