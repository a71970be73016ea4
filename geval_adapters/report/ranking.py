"""A ranking as sections: how the judge compared, and what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .page import Items, Kind, html_page
from .sections import Section, number, shown

if TYPE_CHECKING:
    from ..ranking.documents import Ranked

_RANKING = "ranking by {}"


def ranking_sections(result: Ranked) -> Iterator[Section]:
    """The tables of a ranking: how the judge compared, and what came out."""
    position, accuracy = result.position, result.accuracy
    rows = [
        ["calls", str(result.calls)],
        ["unread", str(result.unread)],
        ["ties", str(result.ties)],
        ["P(first position wins)", shown(position.p_first)],
        ["verdicts that flip with the order", f"{number(position.flip_rate)} of {position.n_pairs} pairs"],
        ["of these, reversed; a tie one way", f"{position.reversals}; {position.one_sided_ties}"],
        ["right, each order alone", f"{number(accuracy.one_order)} of {accuracy.n_one_order}"],
        ["right, both orders together", f"{number(accuracy.both_orders)} of {accuracy.n_both_orders}"],
        ["cyclic triples", f"{result.cyclic} of {result.triples}"],
        ["debiasing weight α", "undefined" if result.alpha is None else number(result.alpha)],
        ["bias of the first position", number(result.bias)],
    ]
    yield Section(f"comparisons: {result.criterion}", ("", ""), rows)
    rows = [
        [place.candidate, place.document or "-", str(place.rank or "-"), number(place.score),
         number(place.std_error), number(place.human)]
        for place in result.places
    ]  # fmt: skip
    heads = ("candidate", "document", "rank", "score", "± std. error", "people")
    yield Section(_RANKING.format(result.method), heads, rows, result.notes)
    if result.methods:
        rows = [[name, shown(rho)] for name, rho in result.methods.items()]
        why = [f"{name}: {rho.why_not}" for name, rho in result.methods.items() if rho.why_not]
        yield Section("Spearman ρ of the ranking with people's, by method", ("method", "ρ"), rows, why)


def ranking_page(result: Ranked, texts: Mapping[tuple[str | None, str], str]) -> str:
    """The same to look at; `texts` are the candidates', by document and id."""
    columns: list[tuple[str, Kind]] = [
        *(("candidate", "text"), ("document", "text"), ("rank", "number"), ("score", "number")),
        *(("± error", "number"), ("people", "number"), ("text", "text"), ("whole text", "long")),
    ]
    rows: list[list[Any]] = []
    for place in result.places:
        text = texts.get((place.document, place.candidate))
        own = [place.candidate, place.document, place.rank, place.score, place.std_error, place.human]
        rows.append([*own, text, text])
    there = [at for at in range(len(columns)) if any(row[at] is not None for row in rows)]
    items = Items([columns[at] for at in there], [[row[at] for at in there] for row in rows])
    sections = [section for section in ranking_sections(result) if section.title != _RANKING.format(result.method)]
    title = f"Ranking by {result.criterion}"
    return html_page(title, sections, answer=list(_answer(result)), picture=_picture(result), items=items)


def _answer(result: Ranked) -> Iterator[str]:
    documents = len({place.document for place in result.places})
    first = [place for place in result.places if place.rank == 1]
    if documents == 1 and first:
        names = " and ".join(place.candidate for place in first[:3])
        error = "" if first[0].std_error is None else f" ± {first[0].std_error:.3f}"
        score = f" (score {number(first[0].score)}{error})"
        yield f"First of {len(result.places)} by {result.criterion}: {names}{score}, from {result.calls:,} comparisons."
    else:
        yield f"{len(result.places):,} candidates of {documents:,} documents, from {result.calls:,} comparisons."
    position = result.position
    if position.n_pairs and position.flip_rate is not None:
        yield f"{position.flip_rate:.0%} of {position.n_pairs:,} verdicts flip when the two change places."
    if result.unread:
        yield f"{result.unread:,} comparisons could not be read, and are not in it."


def _picture(result: Ranked) -> str:
    from . import plots

    if len({place.document for place in result.places}) == 1 and len(result.places) <= 40:
        drawn = [
            (
                place.candidate, place.score,
                None if place.std_error is None else place.score - 1.96 * place.std_error,
                None if place.std_error is None else place.score + 1.96 * place.std_error,
            )
            for place in sorted(result.places, key=lambda each: each.rank or len(result.places))
            if place.score is not None
        ]  # fmt: skip
        return plots.intervals(drawn, f"scores by {result.method}, with 95 % intervals where there are standard errors")
    first = result.position.p_first
    if first.value is None:
        return ""
    rows: list[plots.Interval] = [("the first of the two wins", first.value, first.low, first.high)]
    return plots.intervals(rows, "how often the first position wins", span=(0.0, 1.0), marks=[("fair", 0.5)])
