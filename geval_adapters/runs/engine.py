"""What does the work of a run: this process, or an engine that a package adds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from .log import Log, RunLog
from .rank import Rank, rank_here
from .score import Rate, rate_here


class Engine(NamedTuple):
    """How samples are rated, documents ranked, and ratings kept (in which output, and whether to go on with it)."""

    rate: Rate
    rank: Rank
    log: Callable[[Path, bool], AbstractContextManager[Log]]


LOCAL = Engine(rate_here, rank_here, RunLog)
"""Everything in this process."""
