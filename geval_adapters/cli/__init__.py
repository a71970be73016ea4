"""The command line: one file for each verb."""

from __future__ import annotations

import io
import logging
import sys

from ..errors import BusyError, GEvalError
from ..runs.progress import say
from . import (
    app,
    audit,
    batches,
    compare,
    criteria,
    estimate,
    gate,
    label,
    meta_eval,
    prompt,
    rank,
    read,
    score,
    tasks,
    tune,
    write_rubric,
)
from .ending import Exit

__all__ = [
    "Exit",
    "app",
    "audit",
    "batches",
    "compare",
    "criteria",
    "estimate",
    "gate",
    "label",
    "main",
    "meta_eval",
    "prompt",
    "rank",
    "read",
    "score",
    "tasks",
    "tune",
    "write_rubric",
]


def main() -> None:
    """Run the command line: what users can mend is one line, never a traceback."""
    logging.basicConfig(handlers=[_Remarks()], format="%(message)s", level=logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal or pipe that lacks a character gets a ? for it
            stream.reconfigure(errors="replace")
    try:
        app.app()
    except GEvalError as error:
        say(f"error: {error}", "bold red")
        sys.exit(Exit.BUSY if isinstance(error, BusyError) else Exit.USAGE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


class _Remarks(logging.Handler):
    """Log records as remarks: what they quote does nothing to the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record), "")
