"""Pictures for the HTML pages, as inline SVG that needs nothing from outside."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import require

Interval = tuple[str, float, float | None, float | None]
"""A name, a value, and the interval's two ends."""

INK = "#808890"  # readable on a light page and on a dark one
ACCENT = "#3b82c4"
COLOURS = (ACCENT, "#d08a2e", "#4c9f70", "#b0588f", INK)
VERDICTS = {"beyond": "#d05050", "unclear": "#d08a2e", "within": "#4c9f70", "": ACCENT}
"""Colours of a statistic by its verdict."""


def scatter(judge: Sequence[float], human: Sequence[float], title: str) -> str:
    """People's scores over the judge's; the area of a dot grows with the number of items that fall on it."""
    with _figure(4.6, 3.6) as (axes, svg):
        counts = Counter(zip((round(x, 2) for x in judge), (round(y, 2) for y in human), strict=True))
        places = list(counts)
        axes.scatter(
            [x for x, _ in places], [y for _, y in places], s=[12 * counts[place] for place in places],
            color=ACCENT, alpha=0.45, linewidths=0,
        )  # fmt: skip
        axes.set(xlabel="judge", ylabel="people", title=title)
    return str(svg())


def histogram(columns: Mapping[str, Sequence[float]], title: str, x: str = "score", y: str = "items") -> str:
    """How often each value is given, by whom."""
    with _figure(4.6, 3.6) as (axes, svg):
        axes.hist(list(columns.values()), bins=20, label=list(columns), color=COLOURS[: len(columns)])
        axes.set(xlabel=x, ylabel=y, title=title)
        if len(columns) > 1:
            axes.legend(frameon=False, labelcolor=INK)
    return str(svg())


def intervals(rows: Sequence[Interval], title: str, band: tuple[float, float] | None = None) -> str:
    """A value with its interval, one row each; the band behind them is what is tolerated."""
    with _figure(7.2, 0.9 + 0.34 * len(rows)) as (axes, svg):
        if band:
            ends = [end for _, *values in rows for end in values if end is not None]
            left, right = max(band[0], min(*ends, 0.0)), min(band[1], max(*ends, 0.0, band[0]))
            axes.axvspan(left, right, color=VERDICTS["within"], alpha=0.12, linewidth=0)
        for place, (_, value, low, high) in enumerate(reversed(rows)):
            if low is not None and high is not None:
                axes.plot([low, high], [place, place], color=ACCENT, linewidth=2, alpha=0.6)
            axes.plot([value], [place], "o", color=ACCENT)
        axes.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set(title=title)
        axes.margins(y=0.3 / max(1, len(rows)))
    return str(svg())


def gauge(estimate: tuple[float, float | None, float | None], band: tuple[float, float] | None, verdict: str) -> str:
    """One value with its interval over what is tolerated; from 0 to 1, or from -1 to 1 where it can be negative."""
    value, low, high = estimate
    left = 0.0 if value >= 0 and (low is None or low >= 0) and (band is None or band[0] >= 0) else -1.0
    with _figure(2.6, 0.55) as (axes, svg):
        axes.set(xlim=(left, 1), ylim=(-1, 1), yticks=[], xticks=[left, (left + 1) / 2, 1])
        axes.spines[["left"]].set_visible(False)
        if band:
            axes.axvspan(max(band[0], left), min(band[1], 1), color=VERDICTS["within"], alpha=0.18, linewidth=0)
        if low is not None and high is not None:
            axes.plot([low, high], [0, 0], color=VERDICTS[verdict], linewidth=4, alpha=0.5, solid_capstyle="round")
        axes.plot([value], [0], "o", color=VERDICTS[verdict], markersize=8, clip_on=False)
    return str(svg())


def points(series: Mapping[str, Sequence[tuple[float, float]]], title: str, x: str, y: str) -> str:
    """Pairs of numbers, in a colour for each series; many series of one pair each are named beside it."""
    named = len(series) > len(COLOURS)
    with _figure(4.6, 3.6) as (axes, svg):
        for place, (name, pairs) in enumerate(series.items()):
            colour = ACCENT if named else COLOURS[place]
            axes.plot(*zip(*pairs, strict=True), "o", color=colour, alpha=0.6, markeredgewidth=0, label=name)
            if named:
                axes.annotate(name, pairs[0], xytext=(4, 3), textcoords="offset points", fontsize=7, color=INK)
        axes.set(xlabel=x, ylabel=y, title=title)
        if not named and len(series) > 1:
            axes.legend(frameon=False, labelcolor=INK)
    return str(svg())


def lines(series: Mapping[str, Sequence[tuple[float, float]]], title: str, x: str, y: str) -> str:
    """Pairs of numbers joined up, in a colour for each series."""
    with _figure(4.6, 3.6) as (axes, svg):
        for (name, pairs), colour in zip(series.items(), COLOURS, strict=False):
            axes.plot(*zip(*pairs, strict=True), "o-", color=colour, label=name)
        axes.set(xlabel=x, ylabel=y, title=title)
        axes.legend(frameon=False, labelcolor=INK)
    return str(svg())


def matrix(rows: Mapping[str, Sequence[float | None]], title: str) -> str:
    """Correlations of everything with everything, in numbers and shades."""
    names = list(rows)
    values = [[0.0 if cell is None else cell for cell in row] for row in rows.values()]
    with _figure(1.4 + 0.8 * len(names), 1.0 + 0.7 * len(names)) as (axes, svg):
        axes.imshow(values, cmap="RdBu", vmin=-1.3, vmax=1.3, alpha=0.75)
        for i, row in enumerate(rows.values()):
            for j, cell in enumerate(row):
                text = "-" if cell is None else f"{cell:.2f}"
                axes.text(j, i, text, ha="center", va="center", color="#202428", fontsize=9)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.set(title=title)
    return str(svg())


@contextmanager
def _figure(width: float, height: float) -> Iterator[tuple[Any, Any]]:
    require("plots", "matplotlib")
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)

    def svg() -> str:
        axes.patch.set_alpha(0)
        axes.tick_params(colors=INK)
        for part in (axes.title, axes.xaxis.label, axes.yaxis.label):
            part.set(color=INK, fontsize=10)
        for spine in axes.spines.values():
            spine.set_color(INK)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        text = re.sub(r"(?s)<metadata>.*?</metadata>", "", out.getvalue())
        return text[text.index("<svg") :]

    with rc_context({"text.parse_math": False}):  # a name with a $ in it is a name
        yield axes, svg
