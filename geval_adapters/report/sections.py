"""What a report is made of: sections, which terminal and page show alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..agreement.intervals import Figure


@dataclass(frozen=True)
class Card:
    """A finding at a glance; `anchor` names the section that says more."""

    title: str
    badge: str
    tone: str
    text: str
    plot: str
    anchor: str


@dataclass
class Section:
    """A part of a report: what it is about, pictures, a table and remarks. Terminal and page show the same."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    plots: Sequence[str] = ()
    badge: str = ""
    tone: str = ""
    lead: str = ""
    code: str = ""
    anchor: str = ""
    cards: Sequence[Card] = ()


def number(value: float | None) -> str:
    """Three decimals, two digits where it is tiny, `-` where there is none."""
    return "-" if value is None else f"{value:.2g}" if abs(value) < 0.001 else f"{value:.3f}"


def shown(figure: Figure) -> str:
    """A figure with its interval, or with the words that say why there is none."""
    if figure.value is None:
        return "undefined"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}" + (f" ({figure.why_not})" if figure.why_not else "")
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
