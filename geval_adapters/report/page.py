"""The one page design: the answer with its picture, then tables, then the items, as one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .sections import Section
from .terminal import plain, plain_lines

Kind = Literal["text", "number", "bars", "why", "long"]
"""What a column of items holds: a short text, a number, a distribution (score to probability) drawn as small bars, why
something failed, or a long text that is shown where a row is opened."""


@dataclass(frozen=True)
class Items:
    """Single items, for a table that can be sorted, filtered and opened row by row.

    Attributes:
        columns: name and kind of each column.
        rows: the cells, each as its column's kind says; None where there is none.
        scales: what bars stand for: the values of each scale; the criterion is the column of that name, or "".
    """

    columns: Sequence[tuple[str, Kind]]
    rows: Sequence[Sequence[Any]]
    scales: dict[str, list[float]] = field(default_factory=dict)


def html_page(
    title: str,
    sections: Iterable[Section],
    *,
    answer: Sequence[str] = (),
    picture: str = "",
    items: Items | None = None,
) -> str:
    """One self-contained HTML page; all text in it is inert.

    Args:
        title: what the page is about.
        sections: tables, cards and further pictures.
        answer: the answer in a sentence or two, with its figure and interval.
        picture: one picture that shows it, as `plots` draws them.
        items: the single items.
    """
    import jinja2

    source = (Path(__file__).parent / "page.html.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["plain"] = lambda text: plain(text, 2000)
    return environment.from_string(source).render(
        title=title,
        sections=list(sections),
        answer=answer,
        picture=picture,
        items="" if items is None else _embedded(items),
    )


def _embedded(items: Items) -> str:
    """The items as JSON that can stand in a page: nothing in it ends the element that it stands in."""

    def inert(cell: Any, kind: Kind) -> Any:
        if not isinstance(cell, str):
            return cell
        return _shortened(plain_lines(cell)) if kind == "long" else plain(cell, 200)

    rows = [[inert(cell, kind) for cell, (_, kind) in zip(row, items.columns, strict=True)] for row in items.rows]
    text = json.dumps({"columns": list(items.columns), "rows": rows, "scales": items.scales})
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shortened(text: str, most: int = 8000) -> str:
    """A long text by its beginning and its end, where a conversation's newest turns are."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n… {len(text) - most:,} characters are not shown here …\n{text[-most // 2 :]}"
