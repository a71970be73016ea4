"""Pictures for the HTML pages, as inline SVG that needs nothing from outside."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Interval = tuple[str, float, float | None, float | None]
"""A name, a value, and the interval's two ends."""

INK = "#808890"  # readable on a light page and on a dark one
ACCENT = "#3b82c4"


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


def histogram(columns: dict[str, Sequence[float]], title: str) -> str:
    """How often each score is given, by whom."""
    with _figure(4.6, 3.6) as (axes, svg):
        axes.hist(list(columns.values()), bins=20, label=list(columns), color=[ACCENT, INK][: len(columns)])
        axes.set(xlabel="score", ylabel="items", title=title)
        axes.legend(frameon=False, labelcolor=INK)
    return str(svg())


def intervals(rows: Sequence[Interval], title: str) -> str:
    """A value with its interval, one row each."""
    with _figure(7.2, 0.9 + 0.34 * len(rows)) as (axes, svg):
        for place, (_, value, low, high) in enumerate(reversed(rows)):
            if low is not None and high is not None:
                axes.plot([low, high], [place, place], color=ACCENT, linewidth=2, alpha=0.6)
            axes.plot([value], [place], "o", color=ACCENT)
        axes.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set(title=title)
        axes.margins(y=0.3 / max(1, len(rows)))
    return str(svg())


@contextmanager
def _figure(width: float, height: float) -> Iterator[tuple[Any, Any]]:
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

    yield axes, svg
