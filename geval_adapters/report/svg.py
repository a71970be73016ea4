"""A chart as inline SVG that needs nothing from outside: scales, axes and marks, coloured by the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from .terminal import plain

Span = tuple[float, float]


class Chart:
    """A plane with an x and a y axis; what is drawn is given in their units.

    Args:
        width, height: in pixels at full size; a page shrinks it where it is narrower.
        x, y: what the axes span.
        left, bottom, top: room around the plane for labels.
    """

    def __init__(
        self, width: float, height: float, x: Span, y: Span, *, left: float = 44, bottom: float = 38, top: float = 8
    ) -> None:
        self.width, self.height = width, height
        self.x, self.y = _open(x), _open(y)
        self.left, self.right, self.top, self.bottom = left, width - 12, top, height - bottom
        self._parts: list[str] = []

    def at_x(self, value: float) -> float:
        """Where a value of the x axis lies, in pixels."""
        low, high = self.x
        return self.left + (self.right - self.left) * (min(max(value, low), high) - low) / (high - low)

    def at_y(self, value: float) -> float:
        """Where a value of the y axis lies, in pixels."""
        low, high = self.y
        return self.bottom - (self.bottom - self.top) * (min(max(value, low), high) - low) / (high - low)

    def line(self, places: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through places; `kind` is a class of the page's style."""
        path = " ".join(f"{self.at_x(x):.1f},{self.at_y(y):.1f}" for x, y in places)
        self._parts.append(f'<polyline points="{path}" class="line {kind}"/>')

    def dot(self, x: float, y: float, kind: str, radius: float = 4, title: str = "") -> None:
        """A dot, with a text that shows where a pointer rests on it."""
        hint = f"<title>{escape(plain(title))}</title>" if title else ""
        place = f'cx="{self.at_x(x):.1f}" cy="{self.at_y(y):.1f}"'
        self._parts.append(f'<circle {place} r="{radius:.1f}" class="fill {kind}">{hint}</circle>')

    def box(self, x: Span, y: Span, kind: str, title: str = "") -> None:
        """A filled rectangle."""
        left, right, low, high = self.at_x(x[0]), self.at_x(x[1]), self.at_y(y[0]), self.at_y(y[1])
        hint = f"<title>{escape(plain(title))}</title>" if title else ""
        size = f'width="{max(right - left, 0.5):.1f}" height="{max(low - high, 0):.1f}"'
        self._parts.append(f'<rect x="{left:.1f}" y="{high:.1f}" {size} class="fill {kind}">{hint}</rect>')

    def text(self, x: float, y: float, words: str, kind: str = "start") -> None:
        """Words at a place in pixels."""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(plain(words, 60))}</text>')

    def axes(self, x: str, y: str = "", steps: Sequence[float] = (), whole: bool = False) -> None:
        """Both axes with their names and ticks, y only where it has a name; `steps`: ticks of x, `whole`: y counts."""
        self._parts.append(
            f'<path d="M{self.left:.1f} {self.top:.1f}V{self.bottom:.1f}H{self.right:.1f}" class="line axis"/>'
        )
        for value in steps or ticks(*self.x):
            self.text(self.at_x(value), self.bottom + 14, f"{value:g}", "middle")
        for value in ticks(*self.y) if y else ():
            if not whole or value == int(value):
                self.text(self.left - 5, self.at_y(value) + 4, f"{value:g}", "end")
        self.text((self.left + self.right) / 2, self.bottom + 30, x, "middle")
        if y:
            self._parts.append(
                f'<text transform="translate(11 {(self.top + self.bottom) / 2:.1f}) rotate(-90)" class="middle">'
                f"{escape(plain(y))}</text>"
            )

    def figure(self, title: str = "", legend: Sequence[str] = ()) -> str:
        """The chart under its title, with a legend where several series have names."""
        keys = "".join(
            f'<span><i class="c{place % 5}"></i>{escape(plain(name, 60))}</span>' for place, name in enumerate(legend)
        )
        head = f"<figcaption>{escape(plain(title, 200))}{f'<br>{keys}' if keys else ''}</figcaption>" if title else ""
        label = f' role="img" aria-label="{escape(plain(title, 200))}"' if title else ""
        shape = f'viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}"'
        return f"<figure>{head}<svg {shape}{label}>{''.join(self._parts)}</svg></figure>"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from low to high, some five of them.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    size = 10 ** math.floor(math.log10((high - low) / about))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda each: abs((high - low) / each - about))
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _open(span: Span) -> Span:
    low, high = span
    return (low, high) if high > low else (low - 0.5, high + 0.5)
