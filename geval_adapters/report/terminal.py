"""The terminal: tables that keep their numbers at any width, and the one sanitiser for text from outside (`plain`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .sections import Section

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NUMBER = re.compile(r"-|free|unknown|undefined|[\W\d]*\d[\W\de]*( (of|to) [\W\d]*\d)?( constant| pairs)?")
"""What a table never cuts short: a number, with its interval and its unit, or what stands where there is none."""

GAP = 2
"""Spaces between two columns."""


def plain(text: str, limit: int = 100) -> str:
    r"""Text that does nothing to a terminal: one line of at most `limit` characters, no control characters.

    >>> plain("a\x1b[31mb\n c")
    'a [31mb c'
    """
    line = " ".join(_CONTROLS.sub(" ", text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def plain_lines(text: str) -> str:
    r"""Text of several lines that does nothing to a terminal: each control character but the line's end is a `�`.

    >>> plain_lines("a\x1b[31m\n  b")
    'a�[31m\n  b'
    """
    return "\n".join(_CONTROLS.sub("�", line.replace("\t", "    ")) for line in text.split("\n"))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> RenderableType:
    """A table whose cells are shown as they are: no markup, no control characters; bare where it is piped.

    Numbers are never cut: where the terminal is too narrow, text gives way first, and then columns go below, beside
    the first one again.
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    columns = [_Column(head, [row[place] for row in cells]) for place, head in enumerate(heads)]
    blocks = list(_blocks(columns, console.width if console.is_terminal else 10**6))
    return Group(*(_block(block, console) for block in blocks))


class _Column:
    """A column: how wide it would be, and how narrow it can be."""

    def __init__(self, head: str, cells: list[str]) -> None:
        self.head, self.cells = head, cells
        widest = max(map(cell_len, cells), default=0)
        word = max(map(cell_len, head.split()), default=0)
        self.is_text = not all(_NUMBER.fullmatch(cell) for cell in cells if cell)
        self.most = max(widest, word if self.is_text or len(cells) > 1 else cell_len(head))
        self.least = min(self.most, max(12, word)) if self.is_text else self.most


def _blocks(columns: Sequence[_Column], room: int) -> Iterator[list[tuple[_Column, int]]]:
    """The columns with their widths, as many beside one another as there is room for; the first stands in each."""
    first, *others = columns
    while True:
        block, used = [first], first.least
        while others and (used + GAP + others[0].least <= room or len(block) == 1):
            used += GAP + others[0].least
            block.append(others.pop(0))
        left = room - used
        widths = []
        for column in block:  # text takes what room is left, the first column first
            more = min(left, column.most - column.least)
            widths.append(column.least + more)
            left -= more
        yield list(zip(block, widths, strict=True))
        if not others:
            return


def _block(columns: Sequence[tuple[_Column, int]], console: Console) -> Table:
    shown = SIMPLE_HEAD if console.is_terminal else None
    made = Table(box=shown, pad_edge=False, show_edge=False, padding=(0, 1 if shown else GAP, 0, 0))
    for column, width in columns:
        head = Text(column.head, overflow="fold") if console.is_terminal else Text(column.head, no_wrap=True)
        made.add_column(head, width=max(width, 1) if console.is_terminal else None, vertical="top")
    for row in zip(*(column.cells for column, _ in columns), strict=True):
        cut = [_cut(cell, columns[0][1]) if place == 0 and shown else cell for place, cell in enumerate(row)]
        made.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cut))
    return made


def _cut(name: str, width: int) -> str:
    """A name without its middle: what tells names apart often stands at their end."""
    if cell_len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Sections as terminal tables."""
    for section in sections:
        console.print(Text(plain(f"{section.title}  {section.badge}"), style="bold"))
        if section.lead:
            console.print(Text(plain(section.lead, 1000)), soft_wrap=not console.is_terminal)
        for line in section.code.splitlines():
            console.print(Text(plain(line, 1000)), soft_wrap=True)
        if section.rows:
            console.print(table(section.heads, section.rows, console))
        for note in section.notes:
            console.print(Text(plain(note, 400), style="dim"), soft_wrap=not console.is_terminal)
        console.print()
