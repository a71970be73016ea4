"""The table of ratings at the end of a run."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from geval_adapters import Usage
from geval_adapters.report import cost, plain, table

from .words import is_close

MOST = 20
"""Rows that are shown without -v; those that reached what they should are left out first."""


def summary(by_test: Mapping[str, Sequence[dict[str, Any]]], width: int, verbose: bool) -> Iterator[str]:
    """The lines of the table: what each test asked for and got, and what it cost."""
    told = [(test, each) for test, rated in by_test.items() for each in rated]
    shown = told if verbose or len(told) <= MOST else [row for row in told if _needs_a_look(row[1])][:MOST]
    if shown:
        rows = [[test, _criterion(each), _rating(each), _outcome(each)] for test, each in shown]
        page = io.StringIO()
        console = Console(file=page, width=width, force_terminal=True, color_system=None)
        console.print(table(("test", "criterion", "rating", "outcome"), rows, console))
        yield from (line.rstrip() for line in page.getvalue().splitlines())
        if any(is_close(each) for _, each in shown):
            yield from textwrap.wrap(
                "~: what was to be reached lies within the interval: another run may end otherwise", width
            )
    left_out = len(told) - len(shown)
    if left_out:
        yield f"{left_out} more ratings: -v shows them"
    usage = sum((Usage(**each["usage"]) for _, each in told), Usage())
    kept = f"{usage.from_cache:,} replies from the cache, " if usage.from_cache else ""
    yield f"{kept}{usage.requests:,} requests to the judge, {cost(usage)}"
    if verbose:
        yield from (plain(each, 1000) for each in dict.fromkeys(each["signature"] for _, each in told))


def _needs_a_look(told: Mapping[str, Any]) -> bool:
    return told["score"] is None or is_close(told) or (told["at_least"] or told["score"]) > told["score"]


def _rating(told: Mapping[str, Any]) -> str:
    if told["score"] is None:
        return "-"
    interval = "" if told["low"] is None else f" [{told['low']:.2f}, {told['high']:.2f}]"
    return f"{told['score']:.2f}{interval}"


def _outcome(told: Mapping[str, Any]) -> str:
    if told["score"] is None:
        return "not rated"
    if told["at_least"] is None:
        return "rated"
    said = "reached" if told["score"] >= told["at_least"] else "under"
    return f"{said} {told['at_least']:g}{' ~' if is_close(told) else ''}"


def _criterion(told: Mapping[str, Any]) -> str:
    return str(told["criterion"]) + (f", mean of {told['n']}" if told["n"] > 1 else "")
