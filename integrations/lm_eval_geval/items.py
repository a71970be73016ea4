"""The documents of the rating tasks: each is one output to be rated, with the prompt that the judge gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geval_adapters import Criterion, InputError, Sample, load_criteria
from geval_adapters.criteria import OFF_GRID, Form
from geval_adapters.errors import one_of
from geval_adapters.fence import shielded
from geval_adapters.prompts import Prompt, criterion_words, read_template, render, shipped_text, surroundings, wording

from .data import load
from .harness import takes_metadata

if TYPE_CHECKING:
    import datasets

Row = dict[str, Any]


@takes_metadata
def ratings(
    *,
    rated: str,
    form: Form,
    data: str | None = None,
    prompt_dir: str | None = None,
    steps: str = "none",
    persona: str | None = None,
    off_grid: str = "keep",
) -> datasets.DatasetDict:
    """A data set for `custom_dataset`: every output of the criterion's data, to be rated in text.

    Args:
        rated: the criterion's registered name; the part before the `/` names the data.
        form: how the judge answers, one of `geval_adapters.reading.FORMS`.
        data: a local file or folder instead of the public source.
        prompt_dir: a folder with published prompt files, which replace the wording.
        steps: `none`, or those `stored` with the criterion.
        persona: `hhh` or `human_annotator`.
        off_grid: what to do with a value between two steps of the scale: `keep`, `floor` or `reject`.

    Raises:
        InputError: an option that is not known, or data or a prompt file that cannot be had.
    """
    one_of("off_grid policy", off_grid, OFF_GRID)
    one_of("steps", steps, ("none", "stored"))
    criterion = load_criteria()[rated]
    template = read_template(prompt_file(criterion, Path(prompt_dir))) if prompt_dir else None
    prompt = Prompt(criterion, form, criterion.steps if steps == "stored" else (), persona, template)

    def row(sample: Sample) -> Row:
        return {
            "prompt": prompt.text(sample),
            "start": prompt.start,
            "form": form,
            "off_grid": off_grid,
        }

    return _dataset(criterion, data, row)


def choices(**options: Any) -> datasets.DatasetDict:
    """As `ratings`, to be rated by the log-probability of each score, which is then the model's continuation.

    A choice ends with the line: `1` alone would also be how `10` begins.
    """
    closed = [f"{score:g}\n" for score in load_criteria()[options["rated"]].scale.values]
    # Without a chat template the label stands right behind the prompt: on a line of its own.
    return split(
        {**item, "prompt": item["prompt"] + ("\n\n" if item["start"] else ""), "choices": closed}
        for item in ratings(**options)["test"]
    )


@takes_metadata
def likelihoods(*, rated: str, data: str | None = None) -> datasets.DatasetDict:
    """A data set for `custom_dataset`: every output, to be rated by its likelihood where a good one is asked for.

    GPTScore (Fu et al. 2023, arXiv 2302.04166): the model is not asked for a rating, but given the task of writing.
    """
    criterion = load_criteria()[rated]
    template = shipped_text("write_output.jinja")
    noun = wording("tasks")[criterion.task]["fields"]["output"]

    def row(sample: Sample) -> Row:
        words = criterion_words(criterion) | {"noun": noun, "shown": shielded(surroundings(criterion, sample)).items()}
        return {"prompt": render(template, words), "target": f" {sample.output}"}

    return _dataset(criterion, data, row)


def prompt_file(criterion: Criterion, folder: Path) -> Path:
    """The published prompt file for a criterion: `coherence.txt`, `coh_detailed.txt` and the like.

    Raises:
        InputError: the folder has none, or more than one.
    """
    stem = criterion.short_name[:3]
    files = sorted(file for file in folder.glob(f"{stem}*.txt") if criterion.short_name.startswith(_first_word(file)))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise InputError(f"{folder}: expected one prompt file {stem}*.txt for {criterion.name!r}, found {names}")
    return files[0]


def _first_word(file: Path) -> str:
    return file.stem.replace("-", "_").partition("_")[0].lower()


def _dataset(criterion: Criterion, data: str | None, row: Callable[[Sample], Row]) -> datasets.DatasetDict:
    samples = samples_of(criterion, data)
    sizes = Counter(sample.doc_id for sample in samples)
    rows = [_common(criterion, sample, sizes[sample.doc_id], max(sizes.values())) | row(sample) for sample in samples]
    return split(rows)


def _common(criterion: Criterion, sample: Sample, size: int, largest: int) -> Row:
    return {
        "document": sample.doc_id,
        "system": sample.system_id,
        "source": sample.source,
        "context": sample.context,
        "output": sample.output,
        "human": sample.human_score(criterion),
        "criterion": criterion.name,
        "document_size": size,
        "has_documents": largest > 1,
    }


def split(rows: Iterable[Row]) -> datasets.DatasetDict:
    """Rows as the one split of a data set, as the harness wants it."""
    import datasets

    return datasets.DatasetDict({"test": datasets.Dataset.from_list(list(rows))})


def samples_of(criterion: Criterion, data: str | None) -> tuple[Sample, ...]:
    """The rated outputs that belong to a criterion, document by document."""
    return _load(criterion.name.partition("/")[0], data)


@cache
def _load(family: str, data: str | None) -> tuple[Sample, ...]:
    """A group has a task for each criterion, all over the same data."""
    return tuple(load(family, data))
