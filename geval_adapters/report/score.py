"""Ratings as a page: the means with their intervals, how often each score was given, and every item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .page import Items, Kind, html_page
from .rubric import listed_items, rubric_sections
from .sections import Section, shown
from .summary import Summary, cost, tokens

if TYPE_CHECKING:
    from ..agreement.intervals import Figure
    from ..criteria import Criterion

Row = Mapping[str, Any]
"""A rating, as `Rating.to_dict` gives it."""


def score_page(
    title: str,
    criteria: Sequence[Criterion],
    summaries: Mapping[str, Summary],
    rows: Sequence[Row],
    texts: Mapping[tuple[str, str], str],
    more: Sequence[Section] = (),
) -> str:
    """Ratings as a page.

    Args:
        title: what was rated.
        criteria: by what.
        summaries: what they come to, by the criterion's name.
        rows: all ratings, in the order in which they are to be shown.
        texts: the source of each sample, by its criterion's name and its id; where there is none, it is left out.
        more: what is told of several judges.
    """
    from . import plots

    answer, pictures = [], []
    sections = [_summary(criteria, summaries, rows), *more]
    for criterion in criteria:
        own = [row for row in rows if row["criterion"] == criterion.name]
        scored = [row for row in own if row["score"] is not None]
        answer.append(_answer(criterion, mean_of(scored), own))
        scale = criterion.scale
        pictures.append(
            plots.histogram(
                {criterion.name: [row["normalized"] if criterion.by_items else row["score"] for row in scored]},
                f"how often each score was given, {criterion.name}",
                span=(scale.low, scale.high), steps=() if criterion.by_items else scale.values,
            )
        )  # fmt: skip
        pictures += _by_system(criterion, scored)
    for each in summaries.values():
        sections += rubric_sections(each.title, each.by_items) if each.by_items else []
    signatures = [signature for each in summaries.values() for signature in each.signatures]
    sections.append(Section("signatures", notes=signatures))
    picture = f'<div class="plots">{"".join(pictures)}</div>'
    return html_page(title, sections, answer=answer, picture=picture, items=_items(criteria, rows, texts))


def mean_of(rows: Sequence[Row]) -> Figure:
    """The mean of the scores, with an interval that resamples documents (items, where they name none)."""
    import numpy as np

    from ..agreement.intervals import bootstrap

    scores = np.array([row["score"] for row in rows], dtype=float)
    documents = [("", place) if row["doc_id"] is None else row["doc_id"] for place, row in enumerate(rows)]
    return bootstrap(lambda weights: weights @ scores / weights.sum(axis=1), documents)


def _answer(criterion: Criterion, mean: Figure, rows: Sequence[Row]) -> str:
    failed = sum(row["score"] is None for row in rows)
    missing = f"; {failed:,} of {len(rows):,} could not be rated, and are not in it" if failed else ""
    if mean.value is None:
        return f"Nothing was rated by {criterion.name}{missing}."
    documents = len({row["doc_id"] for row in rows if row["doc_id"] is not None})
    of = f" of {documents:,} documents" if 1 < documents < mean.n else ""
    return f"Mean {criterion.name}: {shown(mean)} on {criterion.scale}, over {mean.n:,} texts{of}{missing}."


def _summary(criteria: Sequence[Criterion], summaries: Mapping[str, Summary], rows: Sequence[Row]) -> Section:
    cells = []
    for criterion in criteria:
        each = summaries[criterion.name]
        mean = mean_of([row for row in rows if row["criterion"] == criterion.name and row["score"] is not None])
        cells.append(
            [
                *(criterion.name, str(criterion.scale), str(each.n), shown(mean), str(each.failed)),
                *(", ".join(each.methods) or "-", f"{each.coverage / each.n:.3f}" if each.n else "-"),
                *(tokens(each.usage), cost(each.usage)),
            ]
        )
    heads = ("criterion", "scale", "n", "mean", "failed", "method", "coverage", "tokens (cached) in/out", "cost")
    reasons = [f"{name}: {n} not rated: {why}" for name, each in summaries.items() for why, n in each.reasons.items()]
    return Section("in short", heads, cells, reasons)


def _by_system(criterion: Criterion, scored: Sequence[Row]) -> Iterator[str]:
    from . import plots

    systems = list(dict.fromkeys(row["system_id"] for row in scored if row["system_id"] is not None))
    if not 2 <= len(systems) <= 40:
        return
    means = {system: mean_of([row for row in scored if row["system_id"] == system]) for system in systems}
    best = sorted(means.items(), key=lambda each: -(each[1].value or 0.0))
    drawn = [(system, mean.value or 0.0, mean.low, mean.high) for system, mean in best]
    span = (criterion.scale.low, criterion.scale.high)
    yield plots.intervals(drawn, f"mean {criterion.name} by system, with 95 % intervals", span=span, x="mean score")


def _images(names: Sequence[str]) -> str | None:
    """What the marks of images in a text stand for."""
    return "\n".join(f"[image {number}] {name}" for number, name in enumerate(names, start=1)) or None


def _items(criteria: Sequence[Criterion], rows: Sequence[Row], texts: Mapping[tuple[str, str], str]) -> Items:
    judges = list(dict.fromkeys(name for row in rows for name in row.get("judges", ())))
    columns: list[tuple[str, Kind]] = [
        *(("id", "text"), ("system", "text"), ("criterion", "text"), ("score", "number"), ("distribution", "bars")),
        *((name, "number") for name in judges),
        *(("± error", "number"), ("coverage", "number"), ("people", "number"), ("why there is none", "why")),
        *(("text", "text"), ("whole text", "long"), ("source", "long"), ("items", "long"), ("judge's reasons", "long")),
        *(("images", "long"), ("turns left out", "number")),
    ]
    cells = [
        [
            *(row["id"], row["system_id"], row["criterion"], row["score"], row["distribution"] or None),
            *(row.get("judges", {}).get(name) for name in judges),
            *(row["std_error"], row["coverage"], row["human"], row["error"]),
            *(row["output"], row["output"], texts.get((row["criterion"], row["id"]))),
            *(listed_items(row.get("items") or ()), row["rationale"]),
            *(_images(row.get("images") or ()), row.get("left_out") or None),
        ]
        for row in rows
    ]
    there = [place for place in range(len(columns)) if any(row[place] is not None for row in cells)]
    if len(criteria) == 1:
        there.remove(2)
    scales = {
        "" if len(criteria) == 1 else each.name: list(each.scale.values)
        for each in criteria
        if len(each.scale.values) <= 20
    }
    return Items([columns[place] for place in there], [[row[place] for place in there] for row in cells], scales)
