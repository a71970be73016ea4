"""The one page design: sections as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .sections import Section


def page(title: str, sections: Iterable[Section]) -> str:
    """Sections as one self-contained HTML page; all text in it is escaped."""
    import jinja2

    source = (Path(__file__).parent / "page.html.jinja").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True).from_string(source)
    return template.render(title=title, sections=list(sections))
