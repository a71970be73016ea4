"""One annotator's way through the queue: what is asked next, what was answered, and what is written down of it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..criteria import Criterion, Scale
from ..errors import GEvalError, InputError
from ..samples import Sample
from .enough import Enough
from .file import LabelFile
from .queue import GAP, Item, Pool, Wave, rate_of
from .rows import Draw, Label

SKIPS = ("cannot tell", "bad item")
"""Why an item may be skipped."""
LATER = 10
"""How many other items come, where there are as many, before one comes back."""


class ConflictError(GEvalError):
    """An answer to what has been answered elsewhere meanwhile, as in another tab."""


class Answer(BaseModel):
    """What the page sends.

    Attributes:
        at: the task's place.
        seen: how many answers to it the page knew of.
        score: on the scale; of a pair, 1 where what was shown first is better.
        marked: field and number of each marked sentence.
    """

    model_config = ConfigDict(extra="forbid")

    at: int = Field(ge=0)
    seen: int = Field(ge=0)
    score: float | None = None
    skipped: Literal["", "cannot tell", "bad item"] = ""
    note: str = Field(default="", max_length=10_000)
    marked: list[tuple[str, int]] = []
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Task(NamedTuple):
    """One question: an item, a criterion, and whether the item comes back."""

    wave: Wave
    place: int
    criterion: Criterion
    repeat: int


@dataclass(frozen=True)
class Plan:
    """What is labelled, and how much of it.

    Attributes:
        criteria: each item is asked about by each of them, one after the other.
        pool: what items are drawn from.
        design: how.
        n: how many items are wanted.
        repeats: the share of items that come back to the same annotator.
        needed: where given, how many items are wanted once all are answered, by the labels that there are.
    """

    criteria: Sequence[Criterion]
    pool: Pool
    design: str
    n: int
    repeats: float
    needed: Callable[[Sequence[Label]], Enough] | None = None


class Session:
    """One annotator, one file.

    Args:
        file: where labels are written.
        plan: what is asked.
        annotator: who is asked.

    Raises:
        InputError: the file was begun with another plan.
    """

    def __init__(self, file: LabelFile, plan: Plan, annotator: str) -> None:
        self.file, self.plan, self.annotator = file, plan, annotator
        self.waves: list[Wave] = []
        self.words = ""
        self.tasks: list[Task] = []
        self._answers: dict[tuple[str, str, str, str, int], list[Label]] = {}
        self._read = 0
        self._refresh()

    # --- the queue ---------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Take in what the file holds, and draw further waves where they are needed."""
        labels = self.file.labels
        for label in labels[self._read :]:
            self._check(label)
            if label.annotator == self.annotator:
                self._answers.setdefault(label.key, []).append(label)
        self._read = len(labels)
        drawn = {label.wave: label.draw for label in labels if label.draw}
        while True:
            known = drawn.get(len(self.waves) + 1)
            rate = known.rate if known else self._further()
            if rate is None:
                break
            wave = self.plan.pool.draw(self.waves, rate)
            if not wave.items:  # less than one was wanted
                break
            self.waves.append(wave)
            self._compare(labels, wave)
            self.tasks += self._shown(wave)

    def _check(self, label: Label) -> None:
        if label.design != self.plan.design or label.seed != self.plan.pool.seed:
            raise InputError(
                f"{self.file.path}: was begun with --design {label.design} --seed {label.seed}; go on with these, or"
                " name another --output"
            )
        for criterion in self.plan.criteria:
            if criterion.name == label.criterion and criterion.hash != label.criterion_hash:
                raise InputError(
                    f"{self.file.path}: holds labels by another wording or scale of {criterion.name}; name another"
                    " --output"
                )

    def _compare(self, labels: Sequence[Label], wave: Wave) -> None:
        """Refuse a file whose waves are not those that are drawn here."""
        keys = {self.plan.pool.items[place].key: place for place in wave.items}
        for label in labels:
            place = keys.get((label.id, label.other))
            if label.wave == wave.number and (place is None or label.draw != self._draw(wave, place)):
                raise InputError(
                    f"{self.file.path}: item {label.id!r} was drawn from other items or by other ratings than those"
                    " given now; go on with the same, or name another --output"
                )

    def _further(self) -> float | None:
        """Up to where the next wave is to draw; None where there is enough for now."""
        pool, n = self.plan.pool, self.plan.n
        if self.plan.needed and self.waves:
            if self.next is not None:
                return None
            found = self.plan.needed(self.file.labels)
            n, self.words = found.n, found.words
        n = min(n, len(pool.items))
        if self.waves and pool.expected(self.waves[-1].rate) > n - 1e-6:
            return None
        return rate_of(pool.weights, n)

    def _draw(self, wave: Wave, place: int) -> Draw:
        weight = self.plan.pool.weights[place]
        return Draw(weight=weight, before=wave.before, rate=wave.rate, queued=len(wave.items))

    def _shown(self, wave: Wave) -> list[Task]:
        """A wave's tasks: its items, and among them those that come back."""
        pool = self.plan.pool
        rng = random.Random(f"{pool.seed}/{wave.number}/{self.annotator}")
        order = [(place, 0) for place in wave.items]
        later = min(LATER, len(order) // 2)
        again = rng.sample(wave.items[: len(order) - later], min(round(self.plan.repeats * len(order)), later))
        for place in again:
            first = order.index((place, 0)) + 1 + later
            document = pool.items[place].document
            fits = [
                at
                for at in range(first, len(order) + 1)
                if all(pool.items[each].document != document for each, _ in order[max(0, at - GAP) : at + GAP])
            ]
            order.insert(rng.choice(fits[: 2 * LATER]) if fits else len(order), (place, 1))
        return [Task(wave, place, each, repeat) for place, repeat in order for each in self.plan.criteria]

    # --- answers -----------------------------------------------------------------------------------------------------

    def _key(self, task: Task) -> tuple[str, str, str, str, int]:
        return (task.criterion.name, *self.plan.pool.items[task.place].key, self.annotator, task.repeat)

    def _given(self, task: Task) -> list[Label]:
        """The answers to a task, the last of which counts."""
        return self._answers.get(self._key(task), [])

    def _open(self, task: Task) -> bool:
        """Whether it waits for an answer; what was skipped does not come back."""
        if self._given(task):
            return False
        first = self._given(task._replace(repeat=0)) if task.repeat else []
        return not (first and first[-1].skipped)

    @property
    def next(self) -> int | None:
        """The place of the first task that waits for an answer."""
        return next((at for at, task in enumerate(self.tasks) if self._open(task)), None)

    def answer(self, answer: Answer) -> None:
        """Write an answer down; on disk when this returns.

        Raises:
            ConflictError: it has been answered elsewhere meanwhile.
            InputError: it is no answer to this task, or cannot be written.
        """
        with self.file.alone():
            self._refresh()
            if answer.at >= len(self.tasks):
                raise InputError(f"there is no task {answer.at}")
            task = self.tasks[answer.at]
            if len(self._given(task)) != answer.seen:
                raise ConflictError("This item has been answered in another tab.")
            self.file.append(self._label(task, answer))
            self._refresh()

    def _label(self, task: Task, answer: Answer) -> Label:
        item, swapped = self.plan.pool.items[task.place], self._swapped(task)
        allowed = (0.0, 0.5, 1.0) if item.other else task.criterion.scale.values
        if (answer.score is None) == (not answer.skipped) or answer.score not in (None, *allowed):
            raise InputError(f"score must be one of {', '.join(f'{each:g}' for each in allowed)}, or a reason to skip")
        score = 1 - answer.score if swapped and answer.score is not None else answer.score
        texts = self._texts(item)
        before = sum(each.seconds or 0.0 for each in self._given(task)[-1:])  # a correction takes time on top
        try:
            marked = tuple((name, *_sentences(texts[name])[number]) for name, number in answer.marked)
        except (KeyError, IndexError):
            raise InputError("there is no such sentence to mark") from None
        return Label(
            id=item.sample.id,
            doc_id=item.sample.doc_id,
            system_id=item.sample.system_id,
            other=item.other.id if item.other else "",
            other_system=item.other.system_id if item.other else None,
            criterion=task.criterion.name,
            score=score,
            annotator=self.annotator,
            seconds=None if answer.seconds is None else round(before + answer.seconds, 2),
            probability=min(1.0, task.wave.rate * self.plan.pool.weights[task.place]),
            design=self.plan.design,
            seed=self.plan.pool.seed,
            wave=task.wave.number,
            criterion_hash=task.criterion.hash,
            skipped=answer.skipped,
            repeat=task.repeat,
            note=answer.note,
            marked=marked,
            swapped=swapped,
            draw=self._draw(task.wave, task.place),
        )

    def _swapped(self, task: Task) -> bool:
        item = self.plan.pool.items[task.place]
        seed = f"{self.plan.pool.seed}/{self.annotator}/{item.key}/{task.repeat}"
        return item.other is not None and random.Random(seed).random() < 0.5

    # --- what the page shows -----------------------------------------------------------------------------------------

    def state(self, at: int | None = None) -> dict[str, Any]:
        """What the page shows: the task at a place, the next one where none is named. No system, no id, no judge."""
        with self.file.alone():
            self._refresh()
        following = self.next
        at = following if at is None or not 0 <= at < len(self.tasks) else at
        answered = [place for place, task in enumerate(self.tasks) if self._given(task)]
        left = sum(map(self._open, self.tasks))
        times = [each[-1].seconds for each in self._answers.values() if each[-1].seconds is not None]
        state: dict[str, Any] = {
            "annotator": self.annotator,
            "words": self.words,
            "at": at,
            "next": following,
            "back": max((place for place in answered if at is None or place < at), default=None),
            "done": len(answered),
            "total": len(answered) + left,
            "seconds_left": round(median(times) * left) if times else None,
        }
        return state if at is None else state | self._task(self.tasks[at])

    def _task(self, task: Task) -> dict[str, Any]:
        item, swapped, criterion = self.plan.pool.items[task.place], self._swapped(task), task.criterion
        texts = {name: _sentences(text) for name, text in self._texts(item).items()}
        names = ["other", "output"] if swapped else ["output", "other"]
        headings = dict(zip(names, "AB", strict=True)) if item.other else {"output": "Output"}
        given = self._given(task)
        answer = given[-1] if given else None
        asked = (*criterion.needs, *criterion.optional)
        return {
            "criterion": {"name": criterion.label, "definition": criterion.definition},
            "pair": item.other is not None,
            "options": _pair_options() if item.other else _options(criterion.scale),
            "range": str(criterion.scale),
            "texts": [
                {
                    "field": name,
                    "heading": headings.get(name) or name.capitalize(),
                    "candidate": name in headings,
                    "open": name in headings or name in asked,
                    "sentences": [self._texts(item)[name][start:end] for start, end in texts[name]],
                }
                for name in ("source", "context", "reference", *(sorted(headings, key=headings.__getitem__)))
                if name in texts
            ],
            "seen": len(given),
            "answer": answer
            and {
                "score": 1 - answer.score if swapped and answer.score is not None else answer.score,
                "skipped": answer.skipped,
                "note": answer.note,
                "marked": [[name, texts[name].index((start, end))] for name, start, end in answer.marked],
            },
        }

    def _texts(self, item: Item) -> dict[str, str]:
        sample: Sample = item.sample
        found = {name: getattr(sample, name) for name in ("source", "context", "reference", "output")}
        found["other"] = item.other.output if item.other else None
        return {name: text for name, text in found.items() if text is not None}

    def summary(self) -> dict[str, Any]:
        """How many were labelled, skipped (and why) and repeated, and how many repeats came out the same."""
        last = [each[-1] for each in self._answers.values()]
        twice = [
            (label.score, first[-1].score)
            for label in last
            if label.repeat and (first := self._answers.get((*label.key[:4], 0)))
        ]
        return {
            "labelled": sum(label.score is not None and not label.repeat for label in last),
            "skipped": Counter(label.skipped for label in last if label.skipped),
            "repeated": len(twice),
            "same": sum(one == other for one, other in twice),
            "left": sum(map(self._open, self.tasks)),
        }


def _sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence of a text begins and ends, the space behind it included, so that they make up the text.

    >>> _sentences("It is 3.5 m long. It floats!")
    [(0, 18), (18, 28)]
    """
    ends = [match.end() for match in re.finditer(r"[.!?…。！？]+[\"'”’)\]]*\s+|(?<=[。！？])|\n+", text)]
    places = [0, *(end for end in ends if end < len(text)), len(text)]
    return [(start, end) for start, end in pairwise(places) if start < end] or [(0, 0)]


def _options(scale: Scale) -> list[Mapping[str, Any]]:
    """The scores that can be given, each with its anchor and its key; none where there are too many for keys."""
    values = scale.values
    if len(values) > 11:
        return []
    anchors: dict[float, str] = {}
    for word, value in scale.words.items():
        anchors.setdefault(value, word)
    if all(value in range(11) for value in values):
        keys = [f"{value:g}" if value < 10 else "-" if 0.0 in values else "0" for value in values]
    else:
        keys = list("1234567890-"[: len(values)])
    return [
        {"score": value, "label": f"{value:g}", "anchor": anchors.get(value, ""), "key": key}
        for value, key in zip(values, keys, strict=True)
    ]


def _pair_options() -> list[Mapping[str, Any]]:
    return [
        {"score": 1.0, "label": "A", "anchor": "is better", "key": "a"},
        {"score": 0.5, "label": "Tie", "anchor": "equally good", "key": "t"},
        {"score": 0.0, "label": "B", "anchor": "is better", "key": "b"},
    ]
