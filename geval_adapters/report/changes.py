"""Two runs beside each other: by how much they differ, and which items changed most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .page import Items, Kind, html_page
from .sections import Section, shown

if TYPE_CHECKING:
    from ..agreement.changes import Changes

Texts = Mapping[tuple[str, str], tuple[str, str]]
"""What was rated in the old and in the new run, by criterion and id."""


def changes_sections(found: Sequence[Changes], texts: Texts, names: tuple[str, str]) -> Iterator[Section]:
    """The tables of a comparison of two runs, which have these names."""
    heads = ("criterion", "n", "old mean", "new mean", "new − old", "higher", "lower", "same", "unscored")
    rows = [
        [
            *(each.criterion, str(each.difference.n), f"{each.old.value or 0:.3f}", f"{each.new.value or 0:.3f}"),
            *(shown(each.difference), str(each.up), str(each.down), str(each.same), str(each.unscored)),
        ]
        for each in found
    ]
    notes = [
        f"{each.criterion}: {each.only_old} items stand only in {names[0]}, {each.only_new} only in {names[1]}"
        for each in found
        if each.only_old or each.only_new
    ]
    yield Section(f"{names[1]} against {names[0]}", heads, rows, [*notes, "intervals resample documents"])
    for each in found:
        moved = [change for change in each.most() if abs(change.difference) > 0.001]
        if moved:
            rows = [
                [
                    *(change.id, f"{change.old:.2f}", f"{change.new:.2f}", f"{change.difference:+.2f}"),
                    texts[each.criterion, change.id][1],
                ]
                for change in moved
            ]
            yield Section(f"changed most: {each.criterion}", ("id", "old", "new", "new − old", "text"), rows)


def changes_page(found: Sequence[Changes], texts: Texts, names: tuple[str, str], notes: Sequence[str]) -> str:
    """The same to look at, item by item, side by side."""
    from . import plots

    answer, rows = [], []
    for each in found:
        d = each.difference
        if d.value is None:
            answer.append(f"{each.criterion}: no item has a score in both runs.")
            continue
        word = "higher" if d.value > 0 else "lower" if d.value < 0 else "the same"
        clear = "" if d.low is None or d.high is None or d.low > 0 or d.high < 0 else "; that may be chance"
        answer.append(f"{each.criterion} is {word} in {names[1]}, by {shown(d)} over {d.n:,} items{clear}.")
        rows.append((each.criterion, d.value, d.low, d.high))
    ends = [0.0, *(end for _, *values in rows for end in values if end is not None)]
    picture = plots.intervals(
        rows, "new − old, with 95 % intervals", span=plots.padded(ends), marks=[("no change", 0.0)]
    ) + plots.histogram(
        {each.criterion: [change.difference for change in each.changes] for each in found if each.changes},
        "by how much items changed", x="new − old",
    )  # fmt: skip
    columns: list[tuple[str, Kind]] = [
        *(("id", "text"), ("criterion", "text"), ("old", "number"), ("new", "number"), ("new − old", "number")),
        *(("change", "number"), ("text", "text"), (f"in {names[0]}", "long"), (f"in {names[1]}", "long")),
    ]
    cells = []
    for each in found:
        for change in sorted(each.changes, key=lambda change: -abs(change.difference)):
            old, new = texts[each.criterion, change.id]
            apart = change.difference
            cells.append([change.id, each.criterion, change.old, change.new, apart, abs(apart), new, old, new])
    sections = [*list(changes_sections(found, texts, names))[:1], Section("how they were made", notes=notes)]
    return html_page(
        f"{names[1]} against {names[0]}", sections, answer=answer, picture=f'<div class="plots">{picture}</div>',
        items=Items(columns, cells),
    )  # fmt: skip
