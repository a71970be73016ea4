"""The command line: one verb per job."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Rate text with an LLM as the judge, and know how far to trust the numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
