"""What the judge is told where it rates several samples at once, each in tags and on a line of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..criteria import FORMS, digest
from ..errors import InputError
from ..fence import shielded
from ..messages import Messages
from ..prompts import (
    BLANK,
    Prompt,
    check,
    criterion_words,
    render,
    shipped_text,
    surroundings,
    wording,
)
from ..samples import Sample

BATCHED = tuple(form for form in FORMS if form in ("score_only", "rate_explain", "analyze_rate"))
"""The forms in which a judge can rate several samples at once."""


@dataclass(frozen=True)
class BatchPrompt:
    """How some samples are put before a judge in one request (BatchEval, Yuan et al. 2024).

    Samples of one source stand together behind it, in tags with their numbers, which nothing in any of them can close.
    They are numbered as they are given: those of one source must be neighbours.

    Attributes:
        one: how a single sample would be put before it.
        decimals: whether scores between the steps of the scale are asked for.

    Raises:
        InputError: a form or a prompt file that has no place for several samples.
    """

    one: Prompt
    decimals: bool = False

    def __post_init__(self) -> None:
        if self.one.template is not None:
            raise InputError("a published prompt file has a place for one sample: leave per_request out")
        if self.one.form not in BATCHED:
            raise InputError(f"several samples in one request have no form {self.one.form!r}: {' or '.join(BATCHED)}")

    @property
    def noun(self) -> str:
        """What a sample is called: summary, response, output."""
        return str(wording("tasks")[self.one.criterion.task]["fields"]["output"])

    def labels(self, count: int) -> list[str]:
        """What the samples of a batch are called: `Summary 1` and so on."""
        return [f"{self.noun.capitalize()} {number + 1}" for number in range(count)]

    @property
    def _form(self) -> dict[str, Any]:
        return dict(wording("forms")[self.one.form]["batch"])

    def start(self, count: int) -> str:
        """Where the judge's answer begins."""
        return render(self._form["start"], {"labels": self.labels(count)})

    @property
    def begins_with_rating(self) -> bool:
        """Whether nothing stands between that beginning and the first rating."""
        return "labels" in self._form["start"]

    def stop(self, explain: bool) -> str | None:
        """What ends the answer once the ratings stand."""
        return None if explain else self._form.get("stop")

    def room(self, count: int, explain: bool) -> int:
        """How many tokens the answer may take."""
        return count * int(self._form["tokens"]["all" if explain else "rating"])

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change with any word of the prompt, the samples' aside."""
        other = replace(BLANK, source=" ", context=" ", reference=" ")
        return digest(self.text([BLANK, other]) + self.one.hash)

    def texts(self, samples: Sequence[Sample]) -> list[str]:
        """All texts that the judge sees with some samples, those of examples included."""
        around, outputs = self._shown(samples)
        beside = [text for each in self.one.beside(*samples) for _, text in each["shown"]]
        return [*(text for each in around for text in each.values()), *outputs.values(), *beside]

    def _shown(self, samples: Sequence[Sample]) -> tuple[list[dict[str, str]], dict[str, str]]:
        """For each sample what belongs to it, by tag; and the outputs, by tag."""
        given = [surroundings(self.one.criterion, sample) for sample in samples]
        outputs = {f"{self.noun}_{number + 1}": sample.output for number, sample in enumerate(samples)}
        tags = {*outputs, *(tag for each in given for tag in each)}
        inert = {id(each): shielded(each, self.one.control_tokens, tags) for each in given}
        return [inert[id(each)] for each in given], shielded(outputs, self.one.control_tokens, tags)

    def messages(self, samples: Sequence[Sample]) -> Messages:
        """The messages for some samples.

        Raises:
            InputError: a sample lacks a field that the criterion needs.
        """
        return [{"role": "user", "content": self.text(samples)}]

    def text(self, samples: Sequence[Sample]) -> str:
        """The text for some samples.

        Raises:
            InputError: a sample lacks a field that the criterion needs.
        """
        for sample in samples:
            check(self.one.criterion, sample)
        labels = self.labels(len(samples))
        around, outputs = self._shown(samples)
        groups: list[dict[str, Any]] = []
        for label, belongs, output in zip(labels, around, outputs.items(), strict=True):
            if not groups or groups[-1]["around"] != [*belongs.items()]:
                groups.append({"around": [*belongs.items()], "labels": [], "outputs": []})
            groups[-1]["labels"].append(label)
            groups[-1]["outputs"].append(output)
        words = criterion_words(self.one.criterion) | {"labels": labels, "noun": self.noun}
        if self.decimals:
            scale = self.one.criterion.scale
            words["allowed"] = f"a number from {scale.low:g} to {scale.high:g} with one decimal"
        values = words | {
            "intro": wording("tasks")[self.one.criterion.task]["batch"],
            "persona": wording("personas")[self.one.persona] if self.one.persona else "",
            "steps": self.one.steps,
            "examples": self.one.beside(*samples),
            "groups": groups,
            "form": render(self._form["text"], words),
        }
        return render(shipped_text("rate_batch.jinja"), values)
