"""What is judged: a text and what belongs to it, from a row under any of the names that files use."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from .content import Conversation, Image, text_fields, unmarked
from .criteria import Criterion, digest
from .errors import InputError, brief, checked, one_of
from .rows import is_elsewhere, read_rows
from .rubrics import Rubric, looks_like_rubric
from .seen import Tally

ALIASES: dict[str, tuple[str, ...]] = {
    "source": ("source", "input", "inputs", "user_input", "question", "prompt.raw", "prompt"),
    "output": (
        *("output", "system_output", "actual_output", "outputs", "prediction"),
        *("response.output", "response", "answer"),
    ),
    "reference": ("reference", "expected_output", "reference_outputs", "ground_truth", "__expected", "expected"),
    "context": ("context", "fact", "retrieval_context", "retrieved_contexts", "contexts"),
    "messages": ("messages",),
    "id": ("id",),
    "doc_id": ("doc_id",),
    "system_id": ("system_id",),
    "left_out": ("left_out",),
    "scores": ("scores", "human"),
    "rubric": ("rubric", "rubrics"),
}
"""The names under which a field is looked for in a row, first match first: those of published data sets, DeepEval,
openevals, RAGAS and promptfoo; `response.output` is the `output` inside of a `response`."""


@dataclass(frozen=True)
class Sample:
    """One text to be rated, with what belongs to it.

    Attributes:
        output: the text to be rated.
        source: what it was made from or answers (article, conversation, question).
        reference: an expected output.
        context: facts that it should rest on.
        id: tells samples of one run apart.
        doc_id: samples with the same one share a source; its default is a digest of the source.
        system_id: which system wrote the output.
        human: people's scores, criterion name to score; the mean where there are several.
        annotators: the single scores that `human` was averaged from, where they are known.
        conversation: the turns, where it is of a conversation; `source` and `output` are then what went before the
            assistant's last turn, and that turn. A criterion can ask for other parts (`judged.judged`).
        contexts: the contexts one by one, where there are several.
        images: those whose marks (`[image 1]`) stand in the texts, in the order of their numbers.
        left_out: turns of the conversation that are not in `source` or `output`, because it is too long.
        lacks_output: whether there is none to be rated: a question with contexts alone, a conversation without an
            answer.
        rubric: what it is held to, for a criterion that rates each sample by its own.

    >>> Sample("Paris.", source="Capital of France?").missing(("source", "reference"))
    ['reference']
    """

    output: str
    source: str | None = None
    reference: str | None = None
    context: str | None = None
    id: str = ""
    doc_id: str | None = None
    system_id: str | None = None
    human: Mapping[str, float] = field(default_factory=dict, hash=False)
    annotators: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)
    conversation: Conversation | None = field(default=None, repr=False)
    contexts: tuple[str, ...] = field(default=(), repr=False)
    images: tuple[Image, ...] = ()
    left_out: int = 0
    lacks_output: bool = False
    rubric: Rubric | None = None

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "coerce_numbers_to_str": True}

    def __post_init__(self) -> None:
        if self.doc_id is None and self.source is not None:
            object.__setattr__(self, "doc_id", digest(self.source, 12))

    @property
    def digest(self) -> str:
        """Twelve hex digits that change with any of the texts, with any byte of the images, and with the rubric."""
        seen = [image.digest for image in self.images]
        held_to = {"rubric": self.rubric.to_list()} if self.rubric else {}
        texts = [self.output, self.source, self.reference, self.context]
        return digest(json.dumps([*texts, *filter(None, (seen, held_to))]), 12)

    @property
    def own_doc_id(self) -> bool:
        """Whether its document was named, and is no digest of the source."""
        return self.doc_id is not None and (self.source is None or self.doc_id != digest(self.source, 12))

    def missing(self, needed: Iterable[str]) -> list[str]:
        """Which of the needed fields it does not have."""
        return [name for name in needed if getattr(self, name) is None]

    def human_score(self, criterion: Criterion) -> float | None:
        """People's score for a criterion, looked up by its full and by its short name."""
        return self.human.get(criterion.name, self.human.get(criterion.short_name, self.human.get("")))

    def annotators_of(self, criterion: Criterion) -> tuple[float, ...]:
        """The single scores behind `human_score`; empty where only their mean is known."""
        by_name = self.annotators
        return by_name.get(criterion.name, by_name.get(criterion.short_name, by_name.get("", ())))


def read_samples(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    needs: Iterable[str] = (),
    bad_rows: list[str] | None = None,
) -> Iterator[Sample]:
    """The samples of a file, one by one.

    JSON Lines, a JSON list in G-Eval's format, CSV, TSV, Parquet, each but the last also gzipped; a folder of Parquet
    files; `-` is standard input (JSON); `hf:OWNER/NAME[/CONFIG][:SPLIT]` a data set on the Hugging Face hub. Images
    that a row names by paths must lie below the file's folder.

    Args:
        path: the file, or whatever else is read.
        columns: field to column name, for files that call a field otherwise than `ALIASES` knows.
        needs: fields that every sample must have besides the output.
        bad_rows: where given, a row that cannot be used is described here and passed over.

    Raises:
        InputError: the file cannot be read, or, with file and line, a row cannot be used.
    """
    names = {**ALIASES, **{name: (column,) for name, column in (columns or {}).items()}}
    if unknown := set(names) - set(ALIASES):
        raise InputError(f"unknown field {', '.join(sorted(unknown))}; a sample has {', '.join(ALIASES)}")
    seen = Tally()
    folder = None if is_elsewhere(path) else Path(path) if path != "-" and Path(path).is_dir() else Path(path).parent

    def sample(row: Mapping[str, Any], number: int) -> Sample:
        made = numbered(sample_of(row, names, folder), number, seen)
        if absent := made.missing(needs):
            raise InputError(
                f"no {' and no '.join(absent)} {_columns(row)}; name the column with --field {absent[0]}=COLUMN"
            )
        return made

    return read_rows(path, sample, bad_rows)


def sample_of(
    row: Mapping[str, Any], names: Mapping[str, tuple[str, ...]] = ALIASES, folder: Path | None = None
) -> Sample:
    """A row as a sample; its id is the row's own, else `doc_id/system_id`, else empty.

    Args:
        row: what a file or a framework has.
        names: under which names the fields are looked for.
        folder: where images may lie that are named by paths; without it, none may.

    Raises:
        InputError: the row has no output, or a field is not of its kind.

    >>> sample_of({"response": "Paris.", "doc_id": 7, "system_id": "b"}).id
    '7/b'
    """
    values = {
        name: next((value for key in keys if (value := _value(row, key)) is not None), None)
        for name, keys in names.items()
    }
    told = values.pop("left_out")
    values |= ({} if told is None else {"left_out": told}) | text_fields(values, folder)
    del values["messages"]
    if values["output"] is None:
        raise InputError(f"no output {_columns(row)}; name the column with --field output=COLUMN")
    values["rubric"] = _rubric(values["rubric"], asked=names["rubric"] != ALIASES["rubric"])
    annotators = _people(values.pop("scores"))
    human = {name: fmean(scores) for name, scores in annotators.items()}
    several = {name: scores for name, scores in annotators.items() if len(scores) > 1}
    identity = values.pop("id")
    sample = checked(
        Sample, values | {"human": human, "annotators": several, "id": "" if identity is None else identity}
    )
    if identity is None and sample.doc_id is not None and sample.system_id is not None:
        return replace(sample, id=f"{sample.doc_id}/{sample.system_id}")
    return sample


SampleLike = str | Sample | Mapping[str, Any]
"""What can be rated: a text, a sample, or a row with `output` and what belongs to it."""


def to_sample(given: SampleLike, **fields: str) -> Sample:
    """What was given, with further fields, as a sample.

    Raises:
        InputError: it is nothing that can be rated, or a sample has no such field.

    >>> to_sample({"output": "Paris.", "input": "Capital?"}) == to_sample("Paris.", source="Capital?")
    True
    """
    for name in fields:
        one_of("field", name, Sample.__dataclass_fields__)
    if isinstance(given, str):
        return checked(Sample, {"output": given, **fields}) if fields else Sample(given)
    if isinstance(given, Sample):
        if "source" in fields and not given.own_doc_id:
            fields = {"doc_id": None, **fields}  # type: ignore[dict-item]
        if {"source", "output"} & fields.keys():  # the turns would say otherwise
            fields = {"conversation": None, **fields}  # type: ignore[dict-item]
        if given.images:  # their marks are not for others to set
            fields = {name: unmarked(text) if isinstance(text, str) else text for name, text in fields.items()}
        return checked(Sample, {**vars(given), **fields}) if fields else given
    if isinstance(given, Mapping):
        return sample_of({**given, **fields})
    raise InputError(f"expected a text, a Sample or a mapping with output, found {brief(given)}")


def _value(row: Mapping[str, Any], key: str) -> Any:
    """What stands in a column, or, for `a.b`, in the field `b` of what stands in column `a`."""
    if key in row or "." not in key:
        value = row.get(key)
        return None if isinstance(value, float) and math.isnan(value) else value  # data frames write it for nothing
    outer, _, inner = key.partition(".")
    value = row.get(outer)
    return _value(value, inner) if isinstance(value, Mapping) else None


def _columns(row: Mapping[str, Any]) -> str:
    """What there is instead, for errors."""
    names = [str(name)[:40] for name in row]
    return f"(the columns are {', '.join(names[:20])}{', ...' if len(names) > 20 else ''})"


def numbered(sample: Sample, number: int, seen: Counter[str] | Tally) -> Sample:
    """The sample with an id that no other of its file has: its number where it has none, `#2` where one comes again."""
    identity = unique = sample.id or str(number)
    while unique in seen:
        seen[identity] += 1
        unique = f"{identity}#{seen[identity]}"
    seen[unique] += 1
    return replace(sample, id=unique)


def _people(scores: object) -> dict[str, tuple[float, ...]]:
    """People's scores by criterion; a list holds those of several annotators."""
    from pydantic import FiniteFloat

    if isinstance(scores, str) and scores.lstrip().startswith(("{", "[")):
        try:
            scores = json.loads(scores)
        except (ValueError, RecursionError) as error:
            raise InputError(f"scores: is not valid JSON: {error}") from None
    if scores is None or scores == "":
        return {}
    by_name = scores if isinstance(scores, Mapping) else {"": scores}
    there = {name: score for name in by_name if (score := _value(by_name, name)) is not None}
    lists = {
        name: [each for each in given if each is not None] for name, given in there.items() if isinstance(given, list)
    }
    single = {name: score for name, score in there.items() if name not in lists}
    people = {name: (score,) for name, score in checked(dict[str, FiniteFloat], single, "scores").items()}
    several = checked(dict[str, list[FiniteFloat]], lists, "scores")
    return {**people, **{name: tuple(scores) for name, scores in several.items() if scores}}


def _rubric(value: object, asked: bool) -> Rubric | None:
    """A row's rubric; what looks otherwise is of another kind, unless it was asked for by its column's name."""
    if not asked and not looks_like_rubric(value):
        return None
    try:
        return None if value is None or value == "" else Rubric.of(value)
    except InputError as error:
        raise InputError(f"rubric: {error}") from None


def length_of(text: str) -> int:
    """How long a text is, wherever length is measured: its characters, for not every script parts its words.

    >>> length_of("long text")
    9
    """
    return len(text)


def by_document(samples: Iterable[Sample]) -> dict[str | None, list[Sample]]:
    """Samples by the document that they belong to: equal `doc_id`, or equal source."""
    groups: dict[str | None, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.doc_id, []).append(sample)
    return groups
