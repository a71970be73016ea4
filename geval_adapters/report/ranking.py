"""A ranking as sections: how the judge compared, and what came out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .sections import Section, number

if TYPE_CHECKING:
    from ..ranking.documents import Ranked


def ranking_sections(result: Ranked) -> Iterator[Section]:
    """The tables of a ranking: how the judge compared, and what came out."""
    position, accuracy = result.position, result.accuracy
    share = "-"
    if position.p_first is not None:
        share = f"{position.p_first:.3f} [{position.low:.3f}, {position.high:.3f}]"
    rows = [
        ["calls", str(result.calls)],
        ["unread", str(result.unread)],
        ["ties", str(result.ties)],
        ["P(first position wins)", share],
        ["verdicts that flip with the order", f"{number(position.flip_rate)} of {position.n_pairs} pairs"],
        ["right, each order alone", f"{number(accuracy.one_order)} of {accuracy.n_one_order}"],
        ["right, both orders together", f"{number(accuracy.both_orders)} of {accuracy.n_both_orders}"],
        ["cyclic triples", f"{result.cyclic} of {result.triples}"],
        ["debiasing weight α", number(result.alpha)],
        ["bias of the first position", number(result.bias)],
    ]
    yield Section(f"comparisons: {result.criterion}", ("", ""), rows)
    rows = [
        [place.candidate, place.document or "-", str(place.rank or "-"), number(place.score),
         number(place.std_error), number(place.human)]
        for place in result.places
    ]  # fmt: skip
    heads = ("candidate", "document", "rank", "score", "± std. error", "people")
    yield Section(f"ranking by {result.method}", heads, rows, result.notes)
    if result.methods:
        rows = [[name, number(rho)] for name, rho in result.methods.items()]
        yield Section("Spearman ρ of the ranking with people's, by method", ("method", "ρ"), rows)
