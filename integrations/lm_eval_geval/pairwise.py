"""The pairwise tasks: which of two outputs is better? Items, reading, and what the harness aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from geval_adapters import Criterion, Sample, load_criteria, read_verdict
from geval_adapters.prompts import ComparisonPrompt, surroundings
from geval_adapters.reading import combine

from .harness import takes_metadata
from .items import Row, samples_of, split
from .metrics import Aggregation, Items, Triple, agreement_of, number, warn_of_incomplete
from .readings import LIMITS, Doc, Result

if TYPE_CHECKING:
    import datasets

    from geval_adapters.ranking import Outcome

Candidate = tuple[str, int]

METHODS = ("win_ratio", "bradley_terry")
FIGURES = tuple(f"{method}_document_{figure}" for method in METHODS for figure in ("spearman", "kendall_b"))


@takes_metadata
def comparisons(*, rated: str, data: str | None = None, comparisons: int | None = None) -> datasets.DatasetDict:
    """A data set for `custom_dataset`: pairs of outputs of one document, each in both orders.

    A row names its outputs by their places in the data: all pairs of 16 summaries of 100 articles would hold each
    article 240 times.

    Args:
        rated: the criterion's registered name; the part before the `/` names the data.
        data: a local file or folder instead of the public source.
        comparisons: how many for each document, chosen at random (Liusie et al. 2024, §3.4, `symmetric`); the
            default is all, `N·(N - 1)` for N outputs.
    """
    criterion = load_criteria()[rated]
    samples = samples_of(criterion, data)
    by_document = groupby(range(len(samples)), key=lambda place: samples[place].doc_id)
    rows: list[Row] = []
    for seed, (document, places) in enumerate(by_document):
        common = {"document": document, "criterion": rated, "data": data}
        rows += [common | row for row in _rows(criterion, samples, list(places), comparisons, seed)]
    return split(rows)


def _rows(
    criterion: Criterion, samples: Sequence[Sample], places: Sequence[int], budget: int | None, seed: int
) -> Iterator[Row]:
    from geval_adapters.ranking import select

    pairs = select(places, "symmetric", budget, seed)
    for first, second in pairs:
        yield {
            "document_size": len(pairs),
            "first": first,
            "second": second,
            "human_first": samples[first].human_score(criterion),
            "human_second": samples[second].human_score(criterion),
        }


def _shown(doc: Doc) -> tuple[Criterion, Sample, Sample]:
    criterion = load_criteria()[doc["criterion"]]
    samples = samples_of(criterion, doc["data"])
    return criterion, samples[doc["first"]], samples[doc["second"]]


def prompt(doc: Doc) -> str:
    """What the judge is told."""
    criterion, first, second = _shown(doc)
    return str(ComparisonPrompt(criterion, ties=True).messages(first, second)[0]["content"])


def target(doc: Doc) -> str:
    """What people would answer: A, B, C for a tie; nothing where it is not known."""
    first, second = doc["human_first"], doc["human_second"]
    if first is None or second is None:
        return ""
    return "C" if first == second else "A" if first > second else "B"


def read_verdicts(replies: Iterable[Sequence[str | None]], docs: Sequence[Doc]) -> list[Result]:
    """A filter: the probability, from all replies to a pair, that the first output is better."""
    return [_read(each, doc) for each, doc in zip(replies, docs, strict=True)]


def _read(replies: Sequence[str | None], doc: Doc) -> Result:
    criterion, first, second = _shown(doc)
    shown = [*surroundings(criterion, first).values(), first.output, second.output]
    combined = combine([read_verdict(reply or "", shown=shown) for reply in replies])
    return {
        "p_first": combined.score,
        "n_valid": combined.n_valid,
        "n_failed": combined.n_failed,
        "error": combined.error,
    }


def compared(doc: Doc, results: Sequence[Result]) -> Result:
    """The metrics of a pair."""
    kept = ("document", "document_size", "first", "second", "human_first", "human_second")
    item = {name: doc[name] for name in kept} | results[0]
    names = [name + limit for name in FIGURES for limit in LIMITS]
    return dict.fromkeys([*names, "pairwise_accuracy", "flip_rate", "unread"], item)


def pairwise_accuracy(items: Items) -> float:
    """The share of pairs, seen in both orders, that the judge and people order alike (Liusie et al. 2024, §5.4)."""
    from geval_adapters.ranking import pairwise_accuracy

    humans = _humans(items)
    between_rated = [outcome for outcome in _outcomes(items) if {outcome.first, outcome.second} <= humans.keys()]
    return number(pairwise_accuracy(between_rated, humans).both_orders)


def flip_rate(items: Items) -> float:
    """The share of pairs whose verdict changes with the order in which they are shown: position bias."""
    from geval_adapters.ranking import position

    return number(position(_outcomes(items)).flip_rate)


def _figure(method: str, coefficient: str, part: str = "value") -> Aggregation:
    """An aggregation: outputs are ranked within their document, and the ranking is compared with people's scores."""

    def aggregate(items: Items) -> float:
        warn_of_incomplete(tuple((item["document"], item["document_size"]) for item in items))
        triples = _triples(method, tuple(_outcomes(items)), tuple(_humans(items).items()))
        return number(getattr(getattr(agreement_of(triples).document, coefficient), part))

    return aggregate


@lru_cache(maxsize=4)
def _triples(
    method: str, outcomes: tuple[Outcome, ...], humans: tuple[tuple[Candidate, float], ...]
) -> tuple[Triple, ...]:
    """Document, rank (the best is the highest) and human score of each candidate: once for all figures of a method."""
    from geval_adapters import ranking

    by_document: dict[Any, list[Outcome]] = {}
    for outcome in outcomes:
        first: Any = outcome.first
        by_document.setdefault(first[0], []).append(outcome)
    scores: dict[Any, float | None] = {}
    for own in by_document.values():
        ranks = getattr(ranking, method)(own).ranks()  # scores that differ by rounding alone share a rank
        scores |= {candidate: None if rank is None else -rank for candidate, rank in ranks.items()}
    return tuple((candidate[0], scores[candidate], human) for candidate, human in humans)


def _outcomes(items: Items) -> list[Outcome]:
    """Items as the pure functions of `ranking` take them."""
    from geval_adapters.ranking import Outcome

    return [
        Outcome((item["document"], item["first"]), (item["document"], item["second"]), item["p_first"])
        for item in items
    ]


def _humans(items: Items) -> dict[Candidate, float]:
    """People's scores of the candidates that have one."""
    human = {(item["document"], item[place]): item[f"human_{place}"] for item in items for place in ("first", "second")}
    return {candidate: score for candidate, score in human.items() if score is not None}


win_ratio_document_spearman = _figure("win_ratio", "spearman")
win_ratio_document_spearman_low = _figure("win_ratio", "spearman", "low")
win_ratio_document_spearman_high = _figure("win_ratio", "spearman", "high")
win_ratio_document_kendall_b = _figure("win_ratio", "kendall_b")
win_ratio_document_kendall_b_low = _figure("win_ratio", "kendall_b", "low")
win_ratio_document_kendall_b_high = _figure("win_ratio", "kendall_b", "high")
bradley_terry_document_spearman = _figure("bradley_terry", "spearman")
bradley_terry_document_spearman_low = _figure("bradley_terry", "spearman", "low")
bradley_terry_document_spearman_high = _figure("bradley_terry", "spearman", "high")
bradley_terry_document_kendall_b = _figure("bradley_terry", "kendall_b")
bradley_terry_document_kendall_b_low = _figure("bradley_terry", "kendall_b", "low")
bradley_terry_document_kendall_b_high = _figure("bradley_terry", "kendall_b", "high")
