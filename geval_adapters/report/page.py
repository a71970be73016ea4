"""What people look at: summaries and tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .sections import Section
from .terminal import plain

if TYPE_CHECKING:
    from ..agreement.levels import Coefficient


def page(title: str, sections: Iterable[Section]) -> str:
    """Sections as one self-contained HTML page; all text in it is escaped."""
    import jinja2

    source = (Path(__file__).parent / "page.html.jinja").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True).from_string(source)
    return template.render(title=title, sections=list(sections))


def _figure(figure: Coefficient) -> str:
    if figure.value is None:
        return "undefined"
    interval = f" [{figure.low:.3f}, {figure.high:.3f}]" if figure.low is not None and figure.high is not None else ""
    return f"{figure.value:.3f}{interval}"


def _tail(name: str) -> str:
    return plain(Path(name).name, 60)


def _once(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))
