"""What is rated, and on which scale."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from .content import CUT_AT
from .errors import InputError, brief, checked, one_of
from .rubrics import Rubric
from .settings_file import read_yaml

Field = Literal["source", "context", "reference"]
FIELDS: tuple[Field, ...] = get_args(Field)
"""What a criterion can ask of a sample besides its output, in the order in which a judge sees it."""

Need = Literal[Field, "rubric"]
NEEDS: tuple[Need, ...] = (*FIELDS, "rubric")
"""What a sample may have to have: one of these, or a rubric of its own, by which it is then rated."""

Form = Literal["score_only", "free_text", "rate_explain", "analyze_rate", "json"]
FORMS: tuple[Form, ...] = get_args(Form)
"""How a judge answers: the output forms of Chiang & Lee (2023), §3.2."""

Judges = Literal["last_turn", "each_turn", "conversation", "each_context"]
JUDGES: tuple[Judges, ...] = get_args(Judges)
"""What of a sample is judged: the last of the assistant's turns (or the output), each, all of the conversation; or each
context by itself."""

OffGrid = Literal["keep", "floor", "reject"]
OFF_GRID: tuple[OffGrid, ...] = get_args(OffGrid)
"""What becomes of a rating between two steps of its scale (`2.5` on 1-3)."""

MOST_STEPS = 1001
"""Steps that a scale may have: 0-1000 is finer than any judge or person rates."""


def digest(text: str, length: int = 8) -> str:
    """Hex digits that change with any character of the text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


@dataclass(frozen=True)
class Scale:
    """The ordered finite set of allowed scores.

    Attributes:
        values: the allowed scores, ascending; at least two.
        words: what a score may also be called, word to score (`{"no": 0, "yes": 1}`).
        worded: whether the judge is asked to answer with a word instead of a number.

    >>> Scale.of("1-5").values
    (1.0, 2.0, 3.0, 4.0, 5.0)
    >>> Scale.of({"weak": 1, "strong": 2}).worded
    True
    >>> Scale.of([1, 1.33, 1.67, 2]).normalize(1.67)
    0.67
    """

    values: tuple[float, ...]
    words: Mapping[str, float] = field(default_factory=dict, hash=False)
    worded: bool = False

    def __post_init__(self) -> None:
        if len(set(self.values)) < 2:
            raise InputError(f"a scale needs at least two different values, got {brief(list(self.values))}")
        if len(self.values) > MOST_STEPS:
            raise InputError(f"a scale has at most {MOST_STEPS} steps, got {len(self.values)}")
        if any(not -1e9 < value < 1e9 for value in self.values):
            raise InputError(f"a scale's values must be finite numbers, got {brief(list(self.values))}")
        object.__setattr__(self, "values", tuple(sorted({float(value) for value in self.values})))
        words = self.words or ({"no": 0.0, "yes": 1.0} if self.values == (0.0, 1.0) else {})
        object.__setattr__(self, "words", {word.lower(): float(value) for word, value in words.items()})

    @classmethod
    def of(cls, spec: ScaleLike) -> Scale:
        """A scale from `"1-5"`, a list of scores, score → word (anchors) or word → score (a worded scale).

        Raises:
            InputError: the text is no range, a value is no number, or there are fewer than two values.
        """
        if isinstance(spec, Scale):
            return spec
        try:
            if isinstance(spec, str):
                match = re.fullmatch(r"\s*(-?\d+)\s*(?:-|–|to)\s*(-?\d+)\s*", spec)
                if not match:
                    raise ValueError
                low, high = int(match[1]), int(match[2])
                if high - low >= MOST_STEPS:
                    raise InputError(f"a scale has at most {MOST_STEPS} steps, {spec.strip()} has {high - low + 1}")
                return cls(tuple(range(low, high + 1)))
            if isinstance(spec, Mapping):
                if all(isinstance(key, str) for key in spec):
                    words = {str(word): float(value) for word, value in spec.items()}
                    return cls(tuple(words.values()), words, worded=True)
                return cls(tuple(float(v) for v in spec), {str(word): float(v) for v, word in spec.items()})
            return cls(tuple(float(value) for value in spec))
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f'not a scale: {brief(spec)}; write a range such as "1-5", a list of scores, or a mapping of words'
            ) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Any) -> Any:
        """How a file's scale is read: whatever `of` takes."""
        from pydantic import PlainValidator

        return handler.generate_schema(Annotated[Any, PlainValidator(cls.of)])

    @property
    def low(self) -> float:
        """The lowest allowed score."""
        return self.values[0]

    @property
    def high(self) -> float:
        """The highest allowed score."""
        return self.values[-1]

    def normalize(self, score: float) -> float:
        """`(score − low) / (high − low)`: 0 at the bottom of the scale, 1 at its top."""
        return round((score - self.low) / (self.high - self.low), 12)

    def place(self, value: float, off_grid: OffGrid = "keep") -> float | None:
        """The score that `value` stands for, or None where the scale has no place for it.

        A value within .005 of a step is that step (a judge writes 2.67 for 2⅔). What lies between two
        steps is kept, floored to the step below, or rejected.
        """
        if value in self.values:
            return value
        one_of("off_grid policy", off_grid, OFF_GRID)
        near = min(self.values, key=lambda step: abs(step - value))
        if abs(near - value) < 0.005:
            return near
        if not self.low <= value <= self.high or off_grid == "reject":
            return None
        return max(step for step in self.values if step <= value) if off_grid == "floor" else value

    def __str__(self) -> str:
        steps = [f"{value:g}" for value in self.values]
        if self.worded:
            return " | ".join(self.words)
        is_range = self.values == tuple(range(round(self.low), round(self.low) + len(steps)))
        return f"{steps[0]}-{steps[-1]}" if is_range and len(steps) > 1 else ", ".join(steps)


ScaleLike = Scale | str | Iterable[float] | Mapping[str, float] | Mapping[float, str]


@dataclass(frozen=True)
class Example:
    """A text that people rated, to be shown to a judge before what it is to rate.

    Attributes:
        output: the text that was rated.
        score: people's score.
        source, context, reference: what belongs to it, as in a `Sample`.
        id, doc_id: the sample's and its document's, where it comes from a file.
    """

    output: str
    score: float
    source: str | None = None
    context: str | None = None
    reference: str | None = None
    id: str = ""
    doc_id: str | None = None

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True)
class Criterion:
    """What a judge is asked to rate.

    Attributes:
        name: how it is called; the part after a `/` is what a judge sees and what a reply is labelled with.
        definition: what the scores mean, in the words that the judge reads.
        scale: the allowed scores.
        task: which task introduction stands above it (`summarization`, `dialogue`, `general`).
        question: the question of the free-text form; built from the name when empty.
        steps: stored evaluation steps, for `steps="stored"`.
        needs: the sample fields that must be there besides the output; they are shown to the judge.
        optional: fields shown only where a sample has them.
        origin: where the criterion and its scale come from.
        examples: rated texts that a judge is shown, all but those that belong to the sample's own document.
        anchors: what a score of the scale means, in words that the judge reads; on another scale there are none.
        judges: what of a sample is judged, one of `JUDGES`; each part of it is a rating of its own.
        cut_at: characters of a conversation that the judge is shown at the most; a longer one is cut at turns.
        rubric: items that are judged one by one, for a criterion that is what they come to; its scale is 0-1.

    >>> polite = Criterion("politeness", "Is the reply polite?", Scale.of("0-1"))
    >>> polite.label
    'Politeness'
    """

    name: str
    definition: str
    scale: Scale
    task: str = "general"
    question: str = ""
    steps: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    optional: tuple[Field, ...] = ()
    origin: str = ""
    examples: tuple[Example, ...] = ()
    anchors: Mapping[float, str] = field(default_factory=dict, hash=False)
    judges: Judges = "last_turn"
    cut_at: int = CUT_AT
    rubric: Rubric | None = None

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "str_strip_whitespace": True}

    def __post_init__(self) -> None:
        if not self.name or not (self.definition.strip() or self.by_items):
            raise InputError(f"criterion {self.name!r} needs a name and a definition")
        for name in (*self.needs, *self.optional):
            one_of("field of a sample", name, NEEDS)
        one_of("part of a sample", self.judges, JUDGES, f"criterion {self.name!r} judges: ")
        if self.cut_at < 1:
            raise InputError(f"criterion {self.name!r}: cut_at must be a number of characters, got {self.cut_at}")
        if self.rubric and "rubric" in self.needs:
            raise InputError(f"criterion {self.name!r} has a rubric and needs each sample's own: leave one of both out")
        if self.by_items and self.scale.values != (0.0, 1.0):
            raise InputError(f"criterion {self.name!r} is a rubric, whose scale is 0-1, not {self.scale}")
        if wrong := [value for value in self.anchors if value not in self.scale.values]:
            raise InputError(f"criterion {self.name!r} has an anchor for {wrong[0]:g}, not on {self.scale}")
        for each in self.examples:
            if not self.scale.low <= each.score <= self.scale.high:
                raise InputError(f"criterion {self.name!r} has an example rated {each.score:g}, not on {self.scale}")

    @property
    def short_name(self) -> str:
        """The name without its family and without the mark of a long free text: `fluency` for `summeval/fluency`."""
        return self.name.rpartition("/")[2].partition("#")[0]

    @property
    def label(self) -> str:
        """The name as it stands in a prompt."""
        return self.short_name.replace("_", " ").replace("-", " ").capitalize()

    @property
    def by_items(self) -> bool:
        """Whether it is rated item by item: by its own rubric, or by each sample's."""
        return self.rubric is not None or "rubric" in self.needs

    def allows(self, score: float) -> bool:
        """Whether it could have given a score: one on its scale, or, by items, of the least points up to all."""
        low = (self.rubric.low if self.rubric else -math.inf) if self.by_items else self.scale.low
        return low - 1e-9 <= score <= self.scale.high + 1e-9

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change whenever anything that the judge reads of it changes."""
        usual = {"examples": (), "anchors": {}, "judges": "last_turn", "cut_at": CUT_AT, "rubric": None}
        unread = {"origin", *(name for name, value in usual.items() if getattr(self, name) == value)}
        parts = {key: value for key, value in asdict(self).items() if key not in unread}
        return digest(json.dumps(parts, sort_keys=True))

    @property
    def key(self) -> str:
        """The name and the hash: two criteria of one name are still two."""
        return f"{self.name}@{self.hash}"

    def on(self, scale: ScaleLike) -> Criterion:
        """The same criterion on another scale."""
        other = Scale.of(scale)
        return replace(self, scale=other, anchors=self.anchors if other.values == self.scale.values else {})

    @property
    def meaning(self) -> str:
        """The definition, and below it what each score means that has an anchor.

        >>> print(Criterion("tone", "How kind is it?", Scale.of("1-3"), anchors={1: "rude", 3: "warm"}).meaning)
        How kind is it?
        1: rude
        3: warm
        """
        return "\n".join([self.definition, *(f"{value:g}: {self.anchors[value]}" for value in sorted(self.anchors))])


def prompts_folder() -> Path:
    """Where the wording lies: inside the installed package, or beside it in a source checkout."""
    here = Path(__file__).parent
    return here / "prompts" if (here / "prompts").is_dir() else here.parent / "prompts"


@cache
def load_criteria() -> dict[str, Criterion]:
    """All criteria that ship with the package, by name.

    >>> load_criteria()["qags/consistency"].scale.values
    (0.0, 1.0)
    """
    files = sorted((prompts_folder() / "criteria").glob("*.yaml"))
    return {name: criterion for file in files for name, criterion in read_criteria(file).items()}


def read_criteria(file: Path) -> dict[str, Criterion]:
    """The criteria of one YAML file: either a single one, or several under `criteria:` with shared defaults.

    Raises:
        InputError: the file cannot be read, is no YAML mapping, or a criterion in it is not valid.
    """
    data = read_yaml(file)
    family = checked(_Family, data, str(file))
    shared = {key: value for key, value in data.items() if key not in ("family", "criteria", "name")}
    criteria = {}
    for short, own in (family.criteria or {family.name or file.stem: {}}).items():
        name = f"{family.family}/{short}" if family.family else short
        criteria[name] = _of_fields({"name": name, **shared, **own}, f"{file}: criterion {name!r}")
    return criteria


def _of_fields(data: Mapping[str, Any], where: str) -> Criterion:
    """A criterion from its fields; a rubric speaks for itself, on a scale of its own."""
    by_items = "rubric" in data or "rubric" in (data.get("needs") or ())
    return checked(Criterion, {**({"definition": "", "scale": "0-1"} if by_items else {}), **data}, where)


@dataclass(frozen=True)
class _Family:
    """What a file of criteria says besides what its criteria share."""

    family: str = ""
    name: str = ""
    criteria: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    __pydantic_config__: ClassVar[dict[str, Any]] = {"coerce_numbers_to_str": True}


def find_criterion(spec: str | Criterion | Mapping[str, Any], scale: ScaleLike | None = None) -> Criterion:
    """A criterion by its registered name, from a YAML file, from free text, from its fields, or as it is.

    Free text is anything with a space in it; it is rated on `scale` (1-5 by default), and the sample's source is
    shown where there is one.

    Raises:
        InputError: no such name (the nearest ones are listed), a bad file, or something else than one criterion.

    >>> find_criterion("Is the reply polite?", scale="0-1").scale.high
    1.0
    """
    criterion = _find(spec)
    if scale is None:
        return criterion
    if criterion.anchors and Scale.of(scale).values != criterion.scale.values:
        raise InputError(
            f"criterion {criterion.name!r} has anchors for {criterion.scale}, and none for {Scale.of(scale)}"
        )
    return criterion.on(scale)


def _find(spec: str | Criterion | Mapping[str, Any]) -> Criterion:
    if isinstance(spec, Criterion):
        return spec
    if isinstance(spec, Mapping):
        return _of_fields(spec, "criterion")
    if not isinstance(spec, str):
        raise InputError(
            f"a criterion is a name, a YAML file, free text or a Criterion, found {brief(spec)};"
            " for several criteria, make one GEval for each"
        )
    if spec in load_criteria():
        return load_criteria()[spec]
    if re.search(r"\.ya?ml(#|$)", spec):
        path, _, name = spec.partition("#")
        in_file = read_criteria(Path(path))
        if name not in in_file and (name or len(in_file) > 1):
            raise InputError(f"{path} holds {', '.join(in_file)}; choose one as {path}#{next(iter(in_file))}")
        return in_file[name] if name else next(iter(in_file.values()))
    if " " in spec.strip():
        return Criterion(_name_of(spec), spec.strip(), Scale.of("1-5"), optional=("source",))
    near = difflib.get_close_matches(spec, load_criteria(), n=3, cutoff=0.5)
    near += [name for name in load_criteria() if name.endswith(f"/{spec}")]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "`geval criteria` lists them;"
    raise InputError(f"unknown criterion {brief(spec)}: {hint} (free text needs a space in it)")


def _name_of(text: str) -> str:
    """What a criterion in free text is called: its first words, and where there are more, a mark that stands for them.

    >>> _name_of("Is the reply polite?"), _name_of("Is the reply of the assistant polite?")
    ('is_the_reply_polite', 'is_the_reply_of_the_assistant#1ee7')
    """
    words = re.findall(r"\w+", text.lower())
    name = "_".join(words[:6]) or "criterion"
    return name if 0 < len(words) <= 6 else f"{name}#{digest(' '.join(text.split()), 4)}"
