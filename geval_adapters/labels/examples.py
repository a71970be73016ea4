"""People's labels as rated examples for a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..criteria import Criterion, Example
from ..errors import InputError
from ..examples import Shots, marks
from ..rows import read_rows
from ..samples import Sample, sample_of
from .rows import mean_scores, read_labels


def read_shots(path: str | Path, criterion: Criterion, samples: Iterable[Sample], count: int, seed: int = 0) -> Shots:
    """Examples to draw from: the labelled items, each with the mean of what people gave it when they saw it first.

    Args:
        path: labels, as `read_labels` reads them; with the texts, or without.
        criterion: what the labels are about.
        samples: where the texts are, for a file that holds none; matched by id.
        count: how many a judge is shown.
        seed: decides which.

    Raises:
        InputError: the labels cannot be read, there are no texts for any of them, or so few that some sample could not
            be shown as many of other documents than its own.
    """
    scores = mean_scores(read_labels(path, criterion))
    texts = _texts(path)
    for sample in samples:
        if sample.id not in texts or texts[sample.id].output == sample.output:  # which may know its source, too
            texts[sample.id] = sample
    pool = [
        Example(text.output, scores[key], text.source, text.context, text.reference, key, text.doc_id)
        for key, text in texts.items()
        if key in scores
    ]
    if not pool:
        raise InputError(f"{path}: its labels are of none of the samples, and it holds no texts of its own")
    if any(texts[each.id].images for each in pool):
        raise InputError(f"{path}: examples with images cannot be shown; leave those items out")
    heaviest = max(Counter(mark for each in pool for mark in marks(each)).values(), default=0)
    if len(pool) - heaviest < count:
        raise InputError(
            f"{path}: {count} examples are too many: {len(pool)} items have labels, {heaviest} of them of one document,"
            " whose own samples cannot be shown these"
        )
    return Shots(tuple(pool), criterion.scale, count, seed)


def _texts(path: str | Path) -> dict[str, Sample]:
    """The samples in a file of labels, as far as its rows hold texts."""
    found: dict[str, Sample] = {}

    def keep(row: Mapping[str, Any], number: int) -> None:
        try:
            sample = sample_of(row)
        except InputError:  # a row without a text
            return
        found.setdefault(sample.id or str(number), sample)

    for _ in read_rows(path, keep):
        pass
    return found
