"""The command line: one verb per job."""

from __future__ import annotations

import json

import typer

from .. import report
from ..runs.progress import errors, output_console
from .app import app
from .options import JsonOption


@app.command("tasks")
def list_tasks(as_json: JsonOption = False) -> None:
    """List the tasks for lm-evaluation-harness (lm_eval --tasks NAME), and where their files are."""
    from lm_eval_geval import listing

    listed = listing.tasks()
    if as_json:
        told = [{"name": each.name, "tasks": each.tasks, "about": each.about} for each in listed]
        typer.echo(json.dumps({"include_path": str(listing.INCLUDE_PATH), "tasks": told}, indent=2))
    else:
        console = output_console()
        rows = [(each.name, str(len(each.tasks) or 1), each.about) for each in listed]
        console.print(report.table(("name", "tasks", "what is measured"), rows, console))
        errors.print(f"where lm_eval does not find them: --include_path {listing.INCLUDE_PATH}", soft_wrap=True)
