"""What the command line and engines run: input, log, progress, rating and ranking of files."""

from .breaker import Breaker
from .engine import LOCAL, Engine
from .input import Input
from .log import Log, RunLog, lock
from .progress import errors, output_console, progress_bar, say, say_faults
from .rank import Groups, Known, Rank, RankRun, abreast, rank_here
from .score import Rate, ScoreRun, rate_here

__all__ = [
    "LOCAL",
    "Breaker",
    "Engine",
    "Groups",
    "Input",
    "Known",
    "Log",
    "Rank",
    "RankRun",
    "Rate",
    "RunLog",
    "ScoreRun",
    "abreast",
    "errors",
    "lock",
    "output_console",
    "progress_bar",
    "rank_here",
    "rate_here",
    "say",
    "say_faults",
]
