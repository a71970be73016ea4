"""A meta-evaluation as sections: how well judges agree with people, level by level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .page import Items, Kind, html_page
from .sections import Section, number
from .terminal import plain

if TYPE_CHECKING:
    from ..agreement.levels import Agreement, Coefficient
    from ..agreement.meta_eval import MetaEvaluation

_COEFFICIENTS = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "kendall_b": "Kendall τ-b",
    "kendall_c": "Kendall τ-c",
    "pairwise_accuracy": "pairs right",
    "pairwise_accuracy_calibrated": "pairs right (ε)",
}
LEVELS = ("dataset", "document", "system")


def agreement_sections(result: MetaEvaluation, levels: Sequence[str] = LEVELS) -> Iterator[Section]:
    """The tables of a meta-evaluation: one per level, then tests and α."""
    everyone = [*result.judges, *result.baselines]
    for level in levels:
        heads = ("judge", "n", "unread", *_COEFFICIENTS.values(), "skipped")
        rows, notes = [], []
        for judged, agreement in everyone:
            figures = getattr(agreement, level)
            if figures is None:
                notes += [f"{_tail(judged.file)}: {note}" for note in agreement.notes if level in note]
                continue
            first = figures.pearson
            shown = [_figure(getattr(figures, name)) for name in _COEFFICIENTS]
            skipped = f"{first.skipped} constant" if first.skipped else "0"
            rows.append([_tail(judged.file), str(first.n), str(judged.unread), *shown, skipped])
        if rows:
            yield Section(f"{level}-level agreement with people: {result.criterion}", heads, rows, _once(notes))
    notes = _once(
        f"{_tail(judged.file)}: {note}" for judged, agreement in result.judges for note in _remarks(agreement)
    )
    if notes:
        yield Section("remarks", notes=notes)
    if result.tests:
        heads = ("judge", "against", "test", "statistic", "p", "p one-sided", "p (Holm)", "n", "unmatched", "")
        rows = [
            [
                *(_tail(test.judge), _tail(test.baseline), test.test),
                *map(number, (test.statistic, test.p, test.p_one_sided, test.p_holm)),
                *(str(test.n), str(test.unmatched), test.note),
            ]
            for test in result.tests
        ]  # fmt: skip
        what = "resampling of documents: dataset-level r; permutation within documents: document-level τ-b"
        yield Section("is the judge better than the baseline?", heads, rows, [what])
    known = {name: each for name, each in result.soft_accuracies.items() if each.value is not None}
    if known:
        rows = [[_tail(name), number(each.value), str(each.n)] for name, each in known.items()]
        what = "1 − |p of people − p of the judge|, where p is how sure one system is better than another"
        yield Section(f"soft pairwise accuracy of systems: {result.criterion}", ("judge", "", "pairs"), rows, [what])
    if result.alphas:
        rows = [[_tail(name), *map(number, alphas.values())] for name, alphas in result.alphas.items()]
        yield Section(
            "Krippendorff's α between a judge's replies, and between judges",
            ("", "nominal", "ordinal", "interval"),
            rows,
        )


def agreement_page(result: MetaEvaluation, levels: Sequence[str] = LEVELS) -> str:
    """The same to look at: how well the judges agree with people, beside what knows nothing of the texts."""
    from . import plots

    drawn = [
        (_tail(judged.file), figure.value, figure.low, figure.high)
        for judged, agreement in [*result.judges, *result.baselines]
        if (figure := agreement.dataset.pearson).value is not None
    ]
    best = _best_baseline(result)
    picture = plots.intervals(
        drawn,
        "Pearson r with people over all items, with 95 % intervals",
        span=(min([-0.2, *(low for *_, low, _ in drawn if low is not None)]), 1.0),
        marks=[("without reading the texts", best[1])] if best else [],
        x="0: as chance has it · 1: as people",
    )
    sections = [*agreement_sections(result, levels), *_pictures(result)]
    title = f"Agreement with people: {result.criterion}"
    return html_page(title, sections, answer=_answer(result), picture=picture, items=_items(result))


def _best_baseline(result: MetaEvaluation) -> tuple[str, float] | None:
    known = [(judged.file, agreement.dataset.pearson.value) for judged, agreement in result.baselines]
    return max(((name, r) for name, r in known if r is not None), key=lambda each: each[1], default=None)


def _answer(result: MetaEvaluation) -> list[str]:
    said = []
    for judged, agreement in result.judges:
        r = agreement.dataset.pearson
        what = f"{_tail(judged.file)} agrees with people at r {_figure(r)} over {r.n:,} items"
        said.append(what if r.value is not None else f"{_tail(judged.file)}: r with people is {r.note or r.why_not}")
    if best := _best_baseline(result):
        name = _tail(best[0]).strip("()")
        said[0] += f"; {'response length' if name == 'length' else name} alone reaches {best[1]:.3f}"
    return [f"{each}." for each in said]


def _items(result: MetaEvaluation) -> Items:
    """Each item once, with people's score and every judge's."""
    judges = [judged for judged, _ in result.judges]
    rows = []
    for key in dict.fromkeys(key for judged in judges for key in judged.items):
        there = [judged.items.get(key) for judged in judges]
        first = next(item for item in there if item is not None)
        scores = [None if item is None else item.score for item in there]
        apart = None if first.human is None or scores[0] is None else abs(scores[0] - first.human)
        rows.append([key, first.document, first.system, first.human, *scores, apart, first.output])
    columns: list[tuple[str, Kind]] = [("id", "text"), ("document", "text"), ("system", "text"), ("people", "number")]
    columns += [(_tail(judged.file), "number") for judged in judges]
    return Items([*columns, ("apart from people", "number"), ("output", "long")], rows)


def _pictures(result: MetaEvaluation) -> Iterator[Section]:
    from . import plots

    for judged, _ in result.judges:
        pairs = [(i.score, i.human) for i in judged.items.values() if i.score is not None and i.human is not None]
        if pairs:
            judge, human = [score for score, _ in pairs], [score for _, score in pairs]
            drawn = [
                plots.scatter(judge, human, "items by both scores; larger: more items"),
                plots.histogram({"judge": judge, "people": human}, "how often each score is given"),
            ]
            yield Section(_tail(judged.file), plots=drawn)


def _remarks(agreement: Agreement) -> Iterator[str]:
    yield from agreement.notes
    for level in LEVELS:
        figures = getattr(agreement, level)
        for name, shown in _COEFFICIENTS.items() if figures else ():
            figure = getattr(figures, name)
            if figure.value is None:
                yield f"{shown}, {level} level, is {figure.note}"
            elif figure.skipped and figure.value_constant_as_zero is not None:
                zero = figure.value_constant_as_zero
                yield f"{shown}, {level} level: {zero:.3f} if the {figure.skipped} constant documents count as 0"


def _figure(figure: Coefficient) -> str:
    if figure.value is None:
        return "undefined"
    interval = f" [{figure.low:.3f}, {figure.high:.3f}]" if figure.low is not None and figure.high is not None else ""
    return f"{figure.value:.3f}{interval}"


def _tail(name: str) -> str:
    return plain(re.sub(r"(\.jsonl?|\.parquet)?(\.gz)?$", "", Path(name).name), 60)


def _once(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))
