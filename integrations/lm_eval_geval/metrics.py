"""What the harness aggregates: agreement with people, its bootstrap limits, and how much could be read.

The harness has no error bars for an aggregation of one's own, so each limit is a metric. Where a figure is undefined
(no score at all, or all alike) it is NaN, never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from geval_adapters.reading import MIN_COVERAGE

from .readings import log

if TYPE_CHECKING:
    from geval_adapters.agreement import Agreement

Items = Sequence[dict[str, Any]]
Aggregation = Callable[[Items], float]
Triple = tuple[str, float | None, float | None]


def _figure(level: str, coefficient: str, part: str = "value") -> Aggregation:
    """An aggregation that is one number of `geval_adapters.agreement.agreement`."""

    def aggregate(items: Items) -> float:
        triples = tuple((item["document"], item["score"], item["human"]) for item in items)
        warn_of_incomplete(tuple((item["document"], item["document_size"]) for item in items))
        figures = getattr(agreement_of(triples), level)
        return number(getattr(getattr(figures, coefficient), part))

    return aggregate


def number(value: float | None) -> float:
    """The harness's numbers are floats: None is NaN."""
    return math.nan if value is None else value


@lru_cache(maxsize=4)
def agreement_of(triples: tuple[Triple, ...]) -> Agreement:
    """All figures of a task come from one computation."""
    from geval_adapters.agreement import agreement

    documents, scores, humans = zip(*triples, strict=True)
    return agreement(scores, humans, documents)


@lru_cache(maxsize=4)  # once for a task, not for each of its metrics
def warn_of_incomplete(documents: tuple[tuple[str, int], ...]) -> None:
    """Say so where `--limit` cut through a document; takes each item's document and how many it should have."""
    sizes = Counter(document for document, _ in documents)
    cut = [document for document, size in set(documents) if sizes[document] < size]
    if cut:
        size = max(size for _, size in documents)
        log.warning(
            "%d of %d documents are incomplete, and stand for what is there of them: --limit counts items, of which"
            " a document has up to %d; a multiple of that takes whole documents",
            len(cut),
            len(sizes),
            size,
        )


document_spearman = _figure("document", "spearman")
document_spearman_low = _figure("document", "spearman", "low")
document_spearman_high = _figure("document", "spearman", "high")
document_kendall_b = _figure("document", "kendall_b")
document_kendall_b_low = _figure("document", "kendall_b", "low")
document_kendall_b_high = _figure("document", "kendall_b", "high")
dataset_pearson = _figure("dataset", "pearson")
dataset_pearson_low = _figure("dataset", "pearson", "low")
dataset_pearson_high = _figure("dataset", "pearson", "high")
dataset_spearman = _figure("dataset", "spearman")
dataset_spearman_low = _figure("dataset", "spearman", "low")
dataset_spearman_high = _figure("dataset", "spearman", "high")
dataset_kendall_b = _figure("dataset", "kendall_b")
dataset_kendall_b_low = _figure("dataset", "kendall_b", "low")
dataset_kendall_b_high = _figure("dataset", "kendall_b", "high")


def unread(items: Items) -> float:
    """The share of replies that could not be read, in [0, 1]."""
    failed = sum(item["n_failed"] for item in items)
    return float(failed / (failed + sum(item["n_valid"] for item in items)))


def coverage(items: Items) -> float:
    """The mean probability that the model gives to the scores of the scale together, in [0, 1]."""
    mean = math.fsum(item["coverage"] for item in items) / len(items)
    if mean < MIN_COVERAGE:
        log.warning(
            "coverage %.3g: the model would mostly not have answered with a score; do not trust these figures"
            " (an instruct model needs --apply_chat_template)",
            mean,
        )
    return mean
