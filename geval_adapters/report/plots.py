"""Pictures for the HTML pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from .svg import Chart, Span

Interval = tuple[str, float, float | None, float | None]
"""A name, a value, and the interval's two ends."""

Series = Mapping[str, Sequence[tuple[float, float]]]
"""Pairs of numbers by the name of what they belong to."""

VERDICTS = {"beyond": "bad", "unclear": "open", "within": "good", "": "c0"}
"""Colours of a statistic by its verdict."""


def scatter(judge: Sequence[float], human: Sequence[float], title: str) -> str:
    """People's scores over the judge's; the area of a dot grows with the number of items that fall on it."""
    counts = Counter(zip((round(x, 2) for x in judge), (round(y, 2) for y in human), strict=True))
    chart = Chart(380, 300, padded(judge), padded(human))
    chart.axes("judge", "people")
    most = max(counts.values(), default=1)
    for (x, y), count in counts.items():
        chart.dot(x, y, "c0 soft", 2.5 + 7.5 * (count / most) ** 0.5, f"judge {x:g}, people {y:g}: {count}")
    return chart.figure(title)


def histogram(
    columns: Mapping[str, Sequence[float]],
    title: str,
    x: str = "score",
    y: str = "items",
    span: Span | None = None,
    steps: Sequence[float] = (),
) -> str:
    """How often each value is given, by whom; a bar for each step of a short scale, else 20 over the span."""
    values = [value for column in columns.values() for value in column]
    low, high = span or (min(values, default=0.0), max(values, default=1.0))
    short = 2 <= len(steps) <= 12 and set(values) <= set(steps)
    if short:
        edges = list(steps)
        half = min(b - a for a, b in pairwise(edges)) / 2
        low, high, width = edges[0] - half, edges[-1] + half, 2 * half
        places = {step: place for place, step in enumerate(edges)}
        counts = {name: Counter(places[value] for value in column) for name, column in columns.items()}
        starts = [step - half for step in edges]
    else:
        width = (high - low) / 20 or 1.0
        counts = {
            name: Counter(min(19, int((value - low) / width)) for value in column) for name, column in columns.items()
        }
        starts = [low + place * width for place in range(20)]
    most = max((count for each in counts.values() for count in each.values()), default=1)
    chart = Chart(380, 240, (low, max(high, low + width)), (0, most * 1.05))
    chart.axes(x, y, steps=steps if short else (), whole=True)
    for series, each in enumerate(counts.values()):
        share = 0.88 * width / len(counts)
        for place, count in each.items():
            left = starts[place] + 0.06 * width + series * share
            chart.box((left, left + share), (0, count), f"c{series % 5}", f"{count}")
    return chart.figure(title, list(columns) if len(columns) > 1 else ())


def intervals(
    rows: Sequence[Interval],
    title: str,
    band: Span | None = None,
    span: Span | None = None,
    marks: Sequence[tuple[str, float]] = (),
    x: str = "",
) -> str:
    """A value with its interval, one row each, under its name.

    Args:
        rows: the values.
        title: what they are.
        band: what is tolerated, shaded behind them.
        span: what the axis spans; default: as far as the intervals reach, and 0.
        marks: places on the axis that say what good is, by name.
        x: the axis's name.
    """
    ends = [end for _, *values in rows for end in values if end is not None] + [place for _, place in marks]
    low, high = span or padded([*ends, 0.0])
    height = 34.0 * len(rows) + 40 + 12 * bool(marks)
    chart = Chart(460, height + 14 * bool(x), (low, high), (0, len(rows)), left=20, bottom=26 + 14 * bool(x), top=14)
    if band:
        chart.box((max(band[0], low), min(band[1], high)), (0, len(rows)), "good faint")
    chart.axes(x)
    if low <= 0 <= high:
        chart.line([(0, 0), (0, len(rows))], "axis")
    for name, place in marks:
        chart.line([(place, 0), (place, len(rows))], "dashed")
        chart.text(chart.at_x(place), 10, name, "middle" if chart.at_x(place) < 360 else "end")
    for place, (name, value, left, right) in enumerate(rows):
        y = len(rows) - place - 0.72
        told = f"{value:.2f}" + (f" [{left:.2f}, {right:.2f}]" if left is not None and right is not None else "")
        chart.text(chart.left + 4, chart.at_y(y) - 8, name, "name")
        chart.text(chart.right, chart.at_y(y) - 8, told, "end")
        if left is not None and right is not None:
            chart.line([(left, y), (right, y)], "c0 thick")
        chart.dot(value, y, "c0", 4.5, f"{name}: {told}")
    return chart.figure(title)


def gauge(estimate: tuple[float, float | None, float | None], band: Span | None, verdict: str) -> str:
    """One value with its interval over what is tolerated; from 0 to 1, or from -1 to 1 where it can be negative."""
    value, low, high = estimate
    left = 0.0 if value >= 0 and (low is None or low >= 0) and (band is None or band[0] >= 0) else -1.0
    chart = Chart(260, 44, (left, 1), (-1, 1), left=12, bottom=18, top=4)
    if band:
        chart.box((max(band[0], left), min(band[1], 1)), (-1, 1), "good faint")
    chart.line([(left, -1), (1, -1)], "axis")
    for step in (left, (left + 1) / 2, 1):
        chart.text(chart.at_x(step), 38, f"{step:g}", "middle")
    if low is not None and high is not None:
        chart.line([(low, 0), (high, 0)], f"{VERDICTS[verdict]} thick")
    chart.dot(value, 0, VERDICTS[verdict], 5)
    return chart.figure()


def points(series: Series, title: str, x: str, y: str) -> str:
    """Pairs of numbers, in a colour for each series; many series of one pair each are named beside it."""
    named = len(series) > 5
    chart = _plane(series, x, y)
    for place, (name, pairs) in enumerate(series.items()):
        for pair in pairs:
            chart.dot(*pair, "c0 soft" if named else f"c{place} soft", 4, name)
        if named and pairs:
            chart.text(chart.at_x(pairs[0][0]) + 5, chart.at_y(pairs[0][1]) - 4, name, "small")
    return chart.figure(title, [] if named or len(series) < 2 else list(series))


def lines(series: Series, title: str, x: str, y: str) -> str:
    """Pairs of numbers joined up, in a colour for each series."""
    chart = _plane(series, x, y)
    for place, (name, pairs) in enumerate(series.items()):
        chart.line(pairs, f"c{place % 5}")
        for pair in pairs:
            chart.dot(*pair, f"c{place % 5}", 3, name)
    return chart.figure(title, list(series))


def matrix(rows: Mapping[str, Sequence[float | None]], title: str) -> str:
    """Correlations of everything with everything, in numbers and shades."""
    names = list(rows)
    label = 8 + 6.2 * max(min(len(name), 24) for name in names)
    size = len(names)
    chart = Chart(label + 52 * size + 12, 40 * size + 24, (0, size), (0, size), left=label, bottom=4, top=20)
    for i, (name, row) in enumerate(rows.items()):
        y = size - i - 1
        chart.text(label - 6, chart.at_y(y + 0.5) + 4, name[:24], "end")
        chart.text(chart.at_x(i + 0.5), 14, name[:8], "middle")
        for j, cell in enumerate(row):
            shade = "none" if cell is None else f"{'c0' if cell >= 0 else 'bad'} s{min(9, round(abs(cell) * 9))}"
            chart.box((j + 0.02, j + 0.98), (y + 0.03, y + 0.97), shade)
            chart.text(
                chart.at_x(j + 0.5), chart.at_y(y + 0.5) + 4, "-" if cell is None else f"{cell:.2f}", "middle ink"
            )
    return chart.figure(title)


def _plane(series: Series, x: str, y: str) -> Chart:
    pairs = [pair for each in series.values() for pair in each]
    chart = Chart(380, 300, padded([first for first, _ in pairs]), padded([second for _, second in pairs]))
    chart.axes(x, y)
    return chart


def padded(values: Sequence[float]) -> Span:
    """What values span, with a little room at both ends."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.05 or 0.5
    return low - room, high + room
