"""Verdicts on pairs of candidates of one document, each in both orders: what position and contradiction share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from ... import ranking
from ...comparison import Comparer
from ...criteria import Criterion
from ...samples import Sample, by_document
from ..asking import Asking, Question, Unmeasurable


class Pairs(NamedTuple):
    """Candidates of one document to compare, and the comparer."""

    comparer: Comparer
    pairs: Sequence[tuple[Sample, Sample]]

    def questions(self, asking: Asking, place: int) -> dict[str, Question]:
        """Both orders of a pair."""
        first, second = self.pairs[place]
        return {
            "forth": asking.verdict(self.comparer, first, second),
            "back": asking.verdict(self.comparer, second, first),
        }


async def pairs(asking: Asking, criterion: Criterion) -> Pairs:
    """The unordered pairs of each document's candidates in a random order, one of each document in turn.

    Raises:
        Unmeasurable: no document has several candidates.
    """
    scheduled = []
    for candidates in by_document(asking.samples).values():
        by_id = {sample.id: sample for sample in candidates}
        if len(by_id) > 1:
            chosen = ranking.select(list(by_id), "no_repeat", seed=asking.seed)
            scheduled.append([(by_id[a], by_id[b]) for a, b in chosen])
    if not scheduled:
        raise Unmeasurable("needs documents with several candidates (equal doc_id or source)")
    found = [pair for turn in zip_longest(*scheduled) for pair in turn if pair]
    return Pairs(await asking.comparer(criterion), found)
