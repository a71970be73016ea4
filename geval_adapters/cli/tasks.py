"""`geval tasks`: what a harness can run with the tasks that ship here."""

from __future__ import annotations

import json

import typer

from .. import report
from ..runs.progress import output_console, say
from . import plugins
from .app import verb
from .options import JsonOption


@verb("tasks")
def list_tasks(as_json: JsonOption = False) -> None:
    """List the tasks for lm-evaluation-harness (lm_eval --tasks NAME), and where their files are."""
    for listing in plugins.listings():
        listed = listing.tasks()
        if as_json:
            told = [{"name": each.name, "tasks": each.tasks, "about": each.about} for each in listed]
            typer.echo(json.dumps({"include_path": str(listing.INCLUDE_PATH), "tasks": told}, indent=2))
            continue
        console = output_console()
        rows = [(each.name, str(len(each.tasks) or 1), each.about) for each in listed]
        console.print(report.table(("name", "tasks", "what is measured"), rows, console))
        say(f"where lm_eval does not find them: --include_path {listing.INCLUDE_PATH}", "")
