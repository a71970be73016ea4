"""What a judge is told of a sample and of items that may be true of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..criteria import Criterion, digest
from ..errors import InputError, one_of
from ..fence import CONTROL_TOKENS, ControlTokens, shielded
from ..messages import Messages, user_message
from ..prompts import BLANK, check, render, shipped_text, surroundings, wording
from ..rubrics import RubricItem
from ..samples import Sample


@dataclass(frozen=True)
class RubricPrompt:
    """How the items of a rubric are put before a judge, one by one or several in one request.

    What belongs to the sample comes first, so that the questions about one sample share their beginning.

    Attributes:
        criterion: what the rubric belongs to.
        form: how the judge answers.
        persona, control_tokens: as for a `prompts.Prompt`.
        together: whether several items are asked about in one request.

    Raises:
        InputError: a form in which items are not asked about, or no such persona.
    """

    criterion: Criterion
    form: str = "rate_explain"
    persona: str | None = None
    control_tokens: ControlTokens = "inert"
    together: bool = False

    def __post_init__(self) -> None:
        one_of("form of a rubric", self.form, wording("rubric")["forms"])
        if self.together and self.form == "analyze_rate":
            raise InputError("items that are asked about together are answered without an analysis: leave one out")
        if self.persona is not None:
            one_of("persona", self.persona, wording("personas"))
        one_of("control_tokens", self.control_tokens, CONTROL_TOKENS)

    @property
    def _form(self) -> dict[str, Any]:
        said = wording("rubric")
        return dict(said["together"] if self.together else said["forms"][self.form])

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change with any word of the prompt, the sample's and the items' aside."""
        return digest(self.text(BLANK, {"Item1": RubricItem("-")}))

    def start(self, items: Mapping[str, RubricItem]) -> str:
        """Where the answer begins, for models that can continue one."""
        return render(self._form["start"], {"labels": list(items)})

    def stop(self, explain: bool) -> str | None:
        """What ends the answer once it stands."""
        return None if explain else self._form.get("stop")

    def room(self, items: Mapping[str, RubricItem], explain: bool) -> int:
        """How many tokens the answer may take."""
        return int(self._form["tokens"]["all" if explain else "rating"]) * len(items)

    def texts(self, sample: Sample, items: Mapping[str, RubricItem]) -> dict[str, str]:
        """What the judge sees of the sample and of the items, by tag."""
        noun = self._noun
        said = {label: " ".join(item.criterion.split()) for label, item in items.items()}
        if self.together:
            asked = {"items": "\n".join(f"{label}: {text}" for label, text in said.items())}
        else:
            asked = {"item": "\n".join(said.values())}
        return shielded(surroundings(self.criterion, sample) | {noun: sample.output} | asked, self.control_tokens)

    def messages(self, sample: Sample, items: Mapping[str, RubricItem]) -> Messages:
        """The messages about one sample and some items, each by its label: its images, and the text.

        Raises:
            InputError: an image's file is gone.
        """
        return [user_message(self.text(sample, items), self.texts(sample, items).values(), sample.images)]

    def text(self, sample: Sample, items: Mapping[str, RubricItem]) -> str:
        """The text about one sample and some items."""
        words = {"noun": self._noun, "labels": list(items), "ask": wording("rubric")["ask"]}
        values = {
            "persona": wording("personas")[self.persona] if self.persona else "",
            "intro": wording("tasks")[self.criterion.task]["rubric"],
            "definition": self.criterion.definition,
            "shown": self.texts(sample, items).items(),
            "form": render(self._form["text"], words),
        }
        return render(shipped_text("rubric.jinja"), values)

    @property
    def _noun(self) -> str:
        return str(wording("tasks")[self.criterion.task]["fields"]["output"])


def items_of(criterion: Criterion, sample: Sample) -> dict[str, RubricItem]:
    """What a sample is held to: the criterion's rubric, or its own, each item by a label.

    Raises:
        InputError: it has none, or lacks another field that the criterion needs.
    """
    check(criterion, sample)
    rubric = criterion.rubric or sample.rubric or ()
    return {f"Item{number}": item for number, item in enumerate(rubric, start=1)}
