"""What is rated, and on which scale."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from .errors import InputError

FIELDS = ("source", "context", "reference")
"""What a criterion can ask of a sample besides its output, in the order in which a judge sees it."""

OFF_GRID = ("keep", "floor", "reject")
"""What becomes of a rating between two steps of its scale (`2.5` on 1-3)."""


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
            raise InputError(f"a scale needs at least two different values, got {list(self.values)}")
        if any(not -1e9 < value < 1e9 for value in self.values):
            raise InputError(f"a scale's values must be finite numbers, got {list(self.values)}")
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
                return cls(tuple(range(low, high + 1)))
            if isinstance(spec, Mapping):
                if all(isinstance(key, str) for key in spec):
                    words = {str(word): float(value) for word, value in spec.items()}
                    return cls(tuple(words.values()), words, worded=True)
                return cls(tuple(float(v) for v in spec), {str(word): float(v) for v, word in spec.items()})
            return cls(tuple(float(value) for value in spec))
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f'not a scale: {spec!r}; write a range such as "1-5", a list of scores, or a mapping of words'
            ) from None

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

    def place(self, value: float, off_grid: str = "keep") -> float | None:
        """The score that `value` stands for, or None where the scale has no place for it.

        A value within .005 of a step is that step (a judge writes 2.67 for 2⅔). What lies between two
        steps is kept, floored to the step below, or rejected.
        """
        if value in self.values:
            return value
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
    needs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.definition.strip():
            raise InputError(f"criterion {self.name!r} needs a name and a definition")
        unknown = [name for name in (*self.needs, *self.optional) if name not in FIELDS]
        if unknown:
            raise InputError(f"criterion {self.name!r} asks for {unknown}; a sample has {', '.join(FIELDS)}")

    @property
    def short_name(self) -> str:
        """The name without its family: `coherence` for `summeval/coherence`."""
        return self.name.rpartition("/")[2]

    @property
    def label(self) -> str:
        """The name as it stands in a prompt."""
        return self.short_name.replace("_", " ").replace("-", " ").capitalize()

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change whenever anything that the judge reads of it changes."""
        told = {key: value for key, value in asdict(self).items() if key != "origin"}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]

    def on(self, scale: ScaleLike) -> Criterion:
        """The same criterion on another scale."""
        return replace(self, scale=Scale.of(scale))


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
    found: dict[str, Criterion] = {}
    for file in sorted((prompts_folder() / "criteria").glob("*.yaml")):
        found |= read_criteria(file)
    return found


def read_criteria(file: Path) -> dict[str, Criterion]:
    """The criteria of one YAML file: either a single one, or several under `criteria:` with shared defaults.

    Raises:
        InputError: the file cannot be read, is no YAML mapping, or a criterion in it is not valid.
    """
    import yaml

    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{file}: cannot be read as YAML: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: a criterion file is a mapping with name, definition and scale")
    family, entries = data.pop("family", ""), data.pop("criteria", None)
    if entries is None:
        entries = {data.pop("name", file.stem): {}}
    built = {}
    for short, own in entries.items():
        name = f"{family}/{short}" if family else str(short)
        built[name] = _build(file, name, data | own)
    return built


def _build(file: Path, name: str, entry: dict[str, Any]) -> Criterion:
    known = {"definition", "scale", "task", "question", "steps", "needs", "optional", "origin"}
    if unknown := set(entry) - known:
        raise InputError(f"{file}: criterion {name!r} has unknown keys {sorted(unknown)}; known: {sorted(known)}")
    for key in ("definition", "scale"):
        if key not in entry:
            raise InputError(f"{file}: criterion {name!r} has no {key}")
    try:
        return Criterion(
            name,
            definition=str(entry["definition"]).strip(),
            scale=Scale.of(entry["scale"]),
            task=str(entry.get("task", "general")),
            question=str(entry.get("question", "")).strip(),
            steps=tuple(entry.get("steps", ())),
            needs=tuple(entry.get("needs", ())),
            optional=tuple(entry.get("optional", ())),
            origin=str(entry.get("origin", "")).strip(),
        )
    except InputError as error:
        raise InputError(f"{file}: criterion {name!r}: {error}") from None


def find_criterion(spec: str | Criterion, scale: ScaleLike | None = None) -> Criterion:
    """A criterion by its registered name, from a YAML file, from free text, or as it is.

    Free text is anything with a space in it; it is rated on `scale` (1-5 unless told), and the sample's source is
    shown where there is one.

    Raises:
        InputError: no such name (the nearest ones are listed) or a bad file.

    >>> find_criterion("Is the reply polite?", scale="0-1").scale.high
    1.0
    """
    if isinstance(spec, Criterion):
        found = spec
    elif spec in load_criteria():
        found = load_criteria()[spec]
    elif re.search(r"\.ya?ml(#|$)", spec):
        path, _, name = spec.partition("#")
        in_file = read_criteria(Path(path))
        if name not in in_file and (name or len(in_file) > 1):
            raise InputError(f"{path} holds {', '.join(in_file)}; choose one as {path}#{next(iter(in_file))}")
        found = in_file[name] if name else next(iter(in_file.values()))
    elif " " in spec.strip():
        words = re.findall(r"\w+", spec.lower())
        found = Criterion("_".join(words[:6]) or "criterion", spec.strip(), Scale.of("1-5"), optional=("source",))
    else:
        near = difflib.get_close_matches(spec, load_criteria(), n=3, cutoff=0.5)
        near += [name for name in load_criteria() if name.endswith(f"/{spec}")]
        hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "`geval criteria` lists them;"
        raise InputError(f"unknown criterion {spec!r}: {hint} (free text needs a space in it)")
    return found.on(scale) if scale is not None else found
