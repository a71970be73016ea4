"""`geval criteria`: what can be rated, and what a judge reads of it."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .. import report
from ..criteria import Criterion, find_criterion, load_criteria
from ..runs.progress import output_console
from .app import verb
from .options import JsonOption

JUDGED = {"last_turn": "output", "each_turn": "each turn", "each_context": "each context"}
"""What is judged, in words; a `conversation` is called so."""


@verb("criteria")
def list_criteria(
    criterion: Annotated[
        str | None, typer.Argument(help="Show this one in full: a name, a YAML file, or free text.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what can be rated, with scale and source; or show one criterion in full."""
    if criterion is not None:
        _show(find_criterion(criterion), as_json)
        return
    rows = [
        (name, str(each.scale), ", ".join((JUDGED.get(each.judges, each.judges), *each.needs)), each.task, each.origin)
        for name, each in sorted(load_criteria().items(), key=lambda item: ("/" in item[0], item[0]))
    ]
    heads = ("criterion", "scale", "needs", "task", "origin")
    if as_json:
        typer.echo(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=2))
    else:
        console = output_console()
        console.print(report.table(heads, rows, console))


def _show(criterion: Criterion, as_json: bool) -> None:
    said: dict[str, Any] = {
        "criterion": criterion.name,
        "scale": str(criterion.scale),
        "definition": criterion.definition,
        "anchors": {f"{value:g}": text for value, text in sorted(criterion.anchors.items())},
        "steps": list(criterion.steps),
        "needs": [JUDGED.get(criterion.judges, criterion.judges), *criterion.needs],
        "hash": criterion.hash,
        "origin": criterion.origin,
    }
    if as_json:
        typer.echo(json.dumps(said, indent=2))
        return
    parts = {name: value if isinstance(value, str) else ", ".join(value) for name, value in said.items()}
    anchors = [f"{value}: {text}" for value, text in said["anchors"].items()]
    lines = {**parts, "anchors": "\n".join(anchors), "steps": "\n".join(criterion.steps)}
    for name, text in lines.items():
        if text:
            typer.echo(f"{name}:" + ("\n  " if "\n" in text else " ") + report.plain_lines(text).replace("\n", "\n  "))
