"""The terminal: tables, and the one sanitiser for text from outside (`plain`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .sections import Section


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> Table:
    """A table whose cells are shown as they are: no markup, no control characters; bare where it is piped."""
    made = Table(box=SIMPLE if console.is_terminal else None, pad_edge=False)
    for head in heads:
        made.add_column(head, overflow="ellipsis", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, limit: int = 100) -> str:
    r"""Text that does nothing to a terminal: one line of at most `limit` characters, no control characters.

    >>> plain("a\x1b[31mb\n c")
    'a [31mb c'
    """
    line = " ".join(_CONTROLS.sub(" ", text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Sections as terminal tables."""
    for section in sections:
        console.print(Text(plain(f"{section.title}  {section.badge}"), style="bold"))
        if section.lead:
            console.print(Text(plain(section.lead, 1000)), soft_wrap=True)
        if section.code:
            for line in section.code.splitlines():
                console.print(Text(plain(line, 1000)), soft_wrap=True)
        if section.rows:
            console.print(table(section.heads, section.rows, console))
        for note in section.notes:
            console.print(Text(plain(note, 400), style="dim"), soft_wrap=True)
        console.print()
