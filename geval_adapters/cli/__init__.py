"""The command line: one file for each verb."""

from __future__ import annotations

import logging
import sys

from ..errors import GEvalError
from ..runs.progress import errors
from . import audit, criteria, meta_eval, prompt, rank, score, tasks
from .app import app

__all__ = ["app", "audit", "criteria", "main", "meta_eval", "prompt", "rank", "score", "tasks"]


def main() -> None:
    """Run the command line: what users can mend is one line, never a traceback."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        app()
    except GEvalError as error:
        errors.print(f"error: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
