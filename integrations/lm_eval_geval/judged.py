"""The documents of the tasks whose outputs a judge rates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from geval_adapters import InputError, Sample, read_samples
from geval_adapters.criteria import FIELDS, find_criterion
from geval_adapters.fence import shielded
from geval_adapters.judged import judged
from geval_adapters.prompts import render, shipped_text

from .data import load
from .harness import takes_metadata
from .items import Row, split

if TYPE_CHECKING:
    import datasets

SUMMEVAL = ["summeval/coherence", "summeval/consistency", "summeval/fluency", "summeval/relevance"]


def dataset(
    *,
    path: str,
    name: str | None = None,
    data_files: str | None = None,
    revision: str | None = None,
    judge: str | None = None,
    criterion: str | None = None,
    recipe: str | None = None,
    **_: Any,
) -> datasets.DatasetDict:
    """Any data set of the hub, for `custom_dataset`: with it the filter `geval` knows what `--metadata` says.

    Args:
        path, name, data_files, revision: as for `datasets.load_dataset`; they stand in the task's `dataset_kwargs`.
        judge, criterion, recipe: from `--metadata`; they go before what the filter is told in the task's YAML.
    """
    import datasets

    settings = _settings(judge, criterion, recipe)
    loaded = datasets.load_dataset(path, name, data_files=data_files, revision=revision)
    for split_name, part in loaded.items():
        for column, value in settings.items():
            part = part.add_column(column, [value] * len(part))
        loaded[split_name] = part
    return loaded


@takes_metadata
def articles(
    *,
    data: str | None = None,
    judge: str | None = None,
    criterion: str | list[str] | None = None,
    recipe: str | None = None,
) -> datasets.DatasetDict:
    """A data set for `custom_dataset`: SummEval's articles, to be summarised; rated by its four criteria."""
    template = shipped_text("summarize.jinja")
    sources = {sample.doc_id: sample.source or "" for sample in load("summeval", data)}
    settings = _settings(judge, criterion or SUMMEVAL, recipe)
    return split(
        {
            "document": document,
            "source": source,
            "prompt": render(template, {"shown": shielded({"article": source}).items()}),
        }
        | settings
        for document, source in sources.items()
    )


@takes_metadata
def outputs(
    *,
    data: str | None = None,
    judge: str | None = None,
    criterion: str | None = None,
    recipe: str | None = None,
) -> datasets.DatasetDict:
    """A data set for `custom_dataset`: outputs that are there already, one in each row of a file.

    Raises:
        InputError: no file is named, or it cannot be read.
    """
    if data is None:
        raise InputError("""no file of outputs: name it with --metadata '{"data": "outputs.jsonl"}'""")
    settings = _settings(judge, criterion, recipe)
    samples = [part for sample in read_samples(data) for part in _judged(sample, criterion)]
    present = [name for name in FIELDS if any(getattr(sample, name) is not None for sample in samples)]
    names = ("id", "output", *present)
    rows: list[Row] = [{name: getattr(sample, name) for name in names} | settings for sample in samples]
    if any(sample.rubric for sample in samples):
        for row, sample in zip(rows, samples, strict=True):
            row["rubric"] = json.dumps(sample.rubric.to_list()) if sample.rubric else None
    return split(rows)


def _judged(sample: Sample, criterion: str | None) -> list[Sample]:
    """What the criterion judges of a sample, as texts."""
    if sample.images:
        raise InputError(f"sample {sample.id}: has images, which the harness's judge is not shown: use `geval score`")
    if criterion is None and (sample.conversation or sample.contexts):
        raise InputError("""which part of a sample is judged? Name the criterion: --metadata '{"criterion": "…"}'""")
    return judged(sample, find_criterion(criterion)) if criterion else [sample]


def _settings(judge: str | None, criterion: str | list[str] | None, recipe: str | None) -> Row:
    given = {"geval_judge": judge, "geval_criterion": criterion, "geval_recipe": recipe}
    return {name: value for name, value in given.items() if value}
