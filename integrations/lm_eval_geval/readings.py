"""From what the harness's models return to a score for each item: filters, and what `process_results` calls."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from geval_adapters import load_criteria, read_text
from geval_adapters.reading import combine

Doc = Mapping[str, Any]
Result = dict[str, Any]

log = logging.getLogger("lm_eval.geval")

SHOWN = ("source", "context", "output")
"""The columns of a document whose text is not the judge speaking where a reply repeats it."""

LIMITS = ("", "_low", "_high")
"""A figure, and the limits of its bootstrap interval, each a metric of the harness."""
DOCUMENT_FIGURES = ("document_spearman", "document_kendall_b", "dataset_pearson")
DATASET_FIGURES = ("dataset_spearman", "dataset_kendall_b", "dataset_pearson")
"""What is told where each document has only one output: there is nothing to rank within a document."""


def read_replies(replies: Iterable[Sequence[str | None]], docs: Sequence[Doc]) -> list[Result]:
    """A filter: all replies to each item, read on their own and averaged; none is passed over.

    The result says which score, how many replies were read and how many were not, and why.

    >>> doc = {"criterion": "summeval/fluency", "form": "rate_explain", "off_grid": "keep", "output": "It rains."}
    >>> reading = read_replies([["Rating: 4", "Rating: 5", "Well."]], [doc])[0]
    >>> reading["score"], reading["n_valid"], reading["n_failed"]
    (4.5, 2, 1)
    """
    sampled = [[reply or "" for reply in each] for each in replies]
    if len(sampled) > 1 and all(len(each) > 1 and len(set(each)) == 1 for each in sampled):
        log.warning(
            "the %d replies to each item are all the same: the model is not sampled, or with a fixed seed;"
            " see the README of these tasks",
            len(sampled[0]),
        )
    return [_read(each, doc) for each, doc in zip(sampled, docs, strict=True)]


def _read(replies: Sequence[str], doc: Doc) -> Result:
    criterion = load_criteria()[doc["criterion"]]
    shown = [doc[name] for name in SHOWN if doc.get(name)]
    readings = {  # short replies are often the same
        reply: read_text(reply, criterion.scale, doc["form"], criterion, off_grid=doc["off_grid"], shown=shown)
        for reply in set(replies)
    }
    combined = combine([readings[reply] for reply in replies])
    return {
        "score": combined.score,
        "distribution": {f"{score:g}": p for score, p in combined.distribution.items()},
        "std_error": combined.std_error,
        "n_valid": combined.n_valid,
        "n_failed": combined.n_failed,
        "error": combined.error,
    }


def rated(doc: Doc, results: Sequence[Result]) -> Result:
    """The metrics of an item whose replies were read as text."""
    item = _item(doc, results[0])
    return _figures(doc, item) | {"unread": item}


def rated_by_logprobs(doc: Doc, results: Sequence[tuple[float, bool]]) -> Result:
    """The metrics of an item from the log-probability of each score as the continuation.

    `p(s) = exp(logprob(s)) / coverage` with `coverage = Σ exp(logprob(s))`, and `score = Σ s·p(s)` (Liu et al. 2023,
    eq. 1): exact, as every score of the scale is asked for.
    """
    scores = load_criteria()[doc["criterion"]].scale.values
    logprobs = [logprob for logprob, _ in results]
    top = max(logprobs)  # taken out before exp(), so that tiny probabilities do not all become 0
    masses = [math.exp(logprob - top) for logprob in logprobs]
    distribution = {f"{score:g}": mass / sum(masses) for score, mass in zip(scores, masses, strict=True)}
    reading = {
        "score": sum(score * p for score, p in zip(scores, distribution.values(), strict=True)),
        "distribution": distribution,
        "coverage": min(1.0, sum(masses) * math.exp(min(top, 0.0))),
    }
    item = _item(doc, reading)
    return _figures(doc, item) | {"coverage": item}


def rated_by_likelihood(doc: Doc, results: Sequence[tuple[float, bool]]) -> Result:
    """The metrics of an item whose score is its log-likelihood for each byte of UTF-8.

    GPTScore (Fu et al. 2023) divides by tokens, which the harness does not tell; bytes are what it divides by itself.
    """
    score = results[0][0] / max(1, len(doc["output"].encode()))
    return _figures(doc, _item(doc, {"score": score}))


def _item(doc: Doc, reading: Result) -> Result:
    """What the aggregations of `metrics` take, and `--log_samples` shows."""
    place = {name: doc[name] for name in ("document", "document_size", "human")}
    return place | {"score": reading["score"]} | reading


def _figures(doc: Doc, item: Result) -> Result:
    names = DOCUMENT_FIGURES if doc["has_documents"] else DATASET_FIGURES
    return {name + limit: item for name in names for limit in LIMITS}
