"""What the judge is told: loads the wording from `prompts/` and renders it.

Rendering is one pass in a sandboxed environment. Text that comes from a sample is only ever a value, so nothing in it
is a template; it stands between tags, and what would close one of these tags in it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from .content import image_numbers, renumbered
from .criteria import FIELDS, Criterion, Form, Scale, digest, prompts_folder
from .errors import InputError, one_of
from .examples import Shots, nearest
from .fence import CONTROL_TOKENS, ControlTokens, shielded, tags_of
from .messages import Messages, common_prefix, user_message
from .samples import Sample
from .structured import answer_schema

Kind = Literal["bare", "instructed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Prompts for comparing two candidates: the question alone, or with the criterion's definition in front."""

PUBLISHED = ("Document", "Fact", "Summary", "Response", "Reference")
"""What stands in published prompt files for source, context, output (under two names) and reference."""

BLANK = Sample("", source="", context="", reference="")
"""A sample of which a prompt shows nothing, so that what is left is the prompt's own."""


@dataclass(frozen=True)
class Prompt:
    """How a criterion is put before a judge, all but the sample.

    Attributes:
        criterion: what is rated.
        form: how the judge answers, one of `criteria.FORMS`.
        steps: evaluation steps to show; none when empty.
        persona: `hhh`, `human_annotator`, or nobody in particular.
        template: the text of a published prompt file, used instead of all of the above wording. Its placeholders are
            `{{Document}}`, `{{Summary}}`, `{{Fact}}`, `{{Response}}` and `{{Reference}}`.
        examples: rated examples to show; those that the criterion carries by default.
        control_tokens: whether control tokens of chat templates (`<|im_end|>`, `[INST]`) in a sample are made `inert`,
            or `kept`, as a text about them needs it.

    Raises:
        InputError: no such form or persona, a template that does not parse, or one for which there are examples.

    >>> from geval_adapters import load_criteria
    >>> prompt = Prompt(load_criteria()["fluency"], "score_only")
    >>> print(prompt.messages(Sample("It rain."))[0]["content"][-49:])
    Evaluation form (score ONLY):
    - Fluency: [number]
    """

    criterion: Criterion
    form: Form = "rate_explain"
    steps: tuple[str, ...] = ()
    persona: str | None = None
    template: str | None = None
    examples: Shots | None = None
    control_tokens: ControlTokens = "inert"
    start: str = field(init=False)
    """Where the judge's answer begins; models that can continue an answer are given it."""

    def __post_init__(self) -> None:
        one_of("form", self.form, wording("forms"))
        one_of("task", self.criterion.task, wording("tasks"), f"criterion {self.criterion.name!r}: ")
        if self.persona is not None:
            one_of("persona", self.persona, wording("personas"))
        one_of("control_tokens", self.control_tokens, CONTROL_TOKENS)
        if self.examples is None and self.criterion.examples:
            carried = self.criterion.examples
            object.__setattr__(self, "examples", Shots(carried, self.criterion.scale, len(carried)))
        if self.examples and self.template is not None:
            raise InputError("a published prompt file has no place for rated examples: leave one of the two out")
        start = "" if self.template else render(self._form.get("start", ""), criterion_words(self.criterion))
        object.__setattr__(self, "start", start)

    @property
    def _form(self) -> dict[str, Any]:
        return dict(wording("forms")[self.form])

    def room(self, explain: bool) -> int:
        """How many tokens the answer may take: the rating alone, or all that the form asks for."""
        return int(self._form["tokens"]["all" if explain else "rating"])

    def stop(self, explain: bool) -> str | None:
        """What ends the answer once the rating stands."""
        return None if explain else self._form.get("stop")

    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the answer, where the form is JSON."""
        return answer_schema(self.criterion.scale) if self.form == "json" and self.template is None else None

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change with any word of the prompt, the sample's aside."""
        return digest(self.text(BLANK) + _kept(self.control_tokens))

    def shown(self, sample: Sample) -> dict[str, str]:
        """The sample's texts that the judge sees, by their tag, the output last."""
        texts = surroundings(self.criterion, sample) | {_tags(self.criterion)["output"]: sample.output}
        return shielded(texts, self.control_tokens)

    def texts(self, sample: Sample) -> Iterator[str]:
        """All texts that the judge sees with a sample, those of examples included; made when the first is taken."""
        yield from self.shown(sample).values()
        yield from (text for each in self.beside(sample) for _, text in each["shown"])

    def beside(self, *samples: Sample) -> list[dict[str, Any]]:
        """What the judge sees of each example beside samples: tags, texts, and the score in the scale's own words."""
        scale = self.criterion.scale
        words = {value: word for word, value in scale.words.items()} if scale.worded else {}
        seen = []
        for each in self.examples.beside(*samples) if self.examples else ():
            text = Sample(each.output, source=each.source, context=each.context, reference=each.reference)
            score = nearest(scale, each.score)
            seen.append({"shown": tuple(self.shown(text).items()), "score": words.get(score, f"{score:g}")})
        return seen

    def shared(self, sample: Sample) -> int:
        """How many characters at the beginning of the message are the same for any output with this source."""
        return common_prefix(self.text(sample), self.text(replace(sample, output="")))

    def images(self, sample: Sample) -> list[int]:
        """The numbers of the sample's images that the judge is shown."""
        return image_numbers("\n".join(self.shown(sample).values())) if sample.images else []

    def messages(self, sample: Sample) -> Messages:
        """The messages for one sample: the images that it shows, and the text.

        Raises:
            InputError: the sample lacks a field that the criterion needs, or an image's file is gone.
        """
        shown = self.shown(sample).values() if sample.images else ()
        return [user_message(self.text(sample), shown, sample.images)]

    def text(self, sample: Sample) -> str:
        """The text for one sample, with a mark for each image.

        Raises:
            InputError: the sample lacks a field that the criterion needs.
        """
        check(self.criterion, sample)
        if self.template is not None:
            texts = (sample.source, sample.context, sample.output, sample.output, sample.reference)
            given = {name: text for name, text in zip(PUBLISHED, texts, strict=True) if text is not None}
            return render(self.template, shielded(given, self.control_tokens, tags_of(self.template)))
        values = self._own_words | {"examples": self.beside(sample), "shown": self.shown(sample).items()}
        return render(shipped_text("rate.jinja"), values)

    @cached_property
    def _own_words(self) -> dict[str, Any]:
        """What the judge is told whatever the sample."""
        words = criterion_words(self.criterion)
        persona = wording("personas")[self.persona] if self.persona else ""
        return words | {"persona": persona, "steps": self.steps, "form": render(self._form["text"], words)}


@dataclass(frozen=True)
class ComparisonPrompt:
    """How two candidates are put before a judge (Liusie et al. 2024, figure 2).

    Attributes:
        criterion: what they are compared by.
        kind: `bare`, the question alone, or `instructed`, with the criterion's definition in front.
        ties: whether the judge may answer that they are equally good.
        control_tokens: as for a `Prompt`.

    Raises:
        InputError: no such kind.
    """

    criterion: Criterion
    kind: Kind = "instructed"
    ties: bool = False
    control_tokens: ControlTokens = "inert"

    def __post_init__(self) -> None:
        one_of("kind of comparison prompt", self.kind, KINDS)

    @property
    def noun(self) -> str:
        """What a candidate is called: summary, response, output."""
        return str(_tags(self.criterion)["output"])

    @property
    def start(self) -> str:
        """Where the answer begins, for models that can continue one."""
        return f"{self.noun.capitalize()}"

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change with any word of the prompt, the samples aside."""
        return digest(self.messages(BLANK, BLANK)[0]["content"] + _kept(self.control_tokens))

    def shown(self, first: Sample, second: Sample) -> dict[str, str]:
        """The texts that the judge sees, by their tag, the candidates last."""
        texts, other = surroundings(self.criterion, first) | {f"{self.noun}_A": first.output}, second.output
        if first.images or second.images:
            texts = {tag: renumbered(text, first.images) for tag, text in texts.items()}
            other = renumbered(other, second.images, len(first.images))
        return shielded(texts | {f"{self.noun}_B": other}, self.control_tokens)

    def messages(self, first: Sample, second: Sample) -> Messages:
        """The messages for two candidates; what belongs to them is taken from the first.

        Raises:
            InputError: a sample lacks a field that the criterion needs.
        """
        check(self.criterion, first)
        shown = self.shown(first, second)
        values = criterion_words(self.criterion) | {
            "intro": wording("tasks")[self.criterion.task]["compare"],
            "shown": shown.items(),
            "kind": self.kind,
            "noun": self.noun,
            "ties": self.ties,
        }
        text = render(shipped_text("compare.jinja"), values)
        return [user_message(text, shown.values(), (*first.images, *second.images))]


@dataclass(frozen=True)
class SeveralPrompt:
    """Several criteria, to be rated in one answer in this order; `geval audit` measures what that does to ratings.

    Attributes:
        criteria: at least two, of one task; a sample needs the fields that any of them needs.

    Raises:
        InputError: the criteria are about different tasks.
    """

    criteria: tuple[Criterion, ...]

    def __post_init__(self) -> None:
        if len({each.task for each in self.criteria}) > 1:
            tasks = ", ".join(f"{each.name} ({each.task})" for each in self.criteria)
            raise InputError(f"criteria of different tasks cannot be rated in one answer: {tasks}")

    @property
    def start(self) -> str:
        """Where the answer begins, for models that can continue one."""
        return f"- {self.criteria[0].label}:"

    @cached_property
    def hash(self) -> str:
        """Eight hex digits that change with any word of the prompt, the sample's aside."""
        return digest(self.messages(BLANK)[0]["content"])

    def shown(self, sample: Sample) -> dict[str, str]:
        """The sample's texts that the judge sees, by their tag, the output last."""
        around = [surroundings(each, sample) for each in self.criteria]
        fields = _tags(self.criteria[0])
        texts = {tag: text for one in around for tag, text in one.items()}
        ordered = {fields[name]: texts[fields[name]] for name in FIELDS if fields[name] in texts}
        return shielded(ordered | {fields["output"]: sample.output})

    def messages(self, sample: Sample) -> Messages:
        """The messages for one sample.

        Raises:
            InputError: the sample lacks a field that a criterion needs.
        """
        for each in self.criteria:
            check(each, sample)
        shown = self.shown(sample)
        values = {
            "intro": wording("tasks")[self.criteria[0].task]["several"],
            "criteria": [criterion_words(each) for each in self.criteria],
            "shown": shown.items(),
        }
        return [user_message(render(shipped_text("rate_several.jinja"), values), shown.values(), sample.images)]


def _kept(control_tokens: ControlTokens) -> str:
    return "" if control_tokens == "inert" else "\0control tokens kept"


def check(criterion: Criterion, sample: Sample) -> None:
    """Raise InputError where a sample lacks a field that the criterion needs."""
    if absent := sample.missing(criterion.needs):
        lacks = " and no ".join(absent)
        raise InputError(f"sample {sample.id or '?'}: no {lacks}, needed by criterion {criterion.name!r}")


def surroundings(criterion: Criterion, sample: Sample) -> dict[str, str]:
    """What a judge sees of a sample besides its output, by tag, in the order in which it sees it."""
    wanted = [name for name in FIELDS if name in (*criterion.needs, *criterion.optional)]
    texts = {_tags(criterion)[name]: getattr(sample, name) for name in wanted}
    return {tag: text for tag, text in texts.items() if text is not None}


def _tags(criterion: Criterion) -> dict[str, str]:
    return dict(wording("tasks")[criterion.task]["fields"])


def criterion_words(criterion: Criterion) -> dict[str, Any]:
    """What a template can say of a criterion."""
    question = criterion.question or f"How would you rate the {criterion.label.lower()} of the text?"
    return {
        "intro": wording("tasks")[criterion.task]["intro"],
        "label": criterion.label,
        "definition": criterion.meaning,
        "question": question,
        "scale": str(criterion.scale),
        "allowed": allowed(criterion.scale),
        "lowest": f"{criterion.scale.low:g}",
        "slot": "word" if criterion.scale.worded else "number",
    }


def attacked(output: str, criterion: Criterion) -> dict[str, str]:
    """The output as someone would hand it in who is after a high rating, by the name of the attack."""
    top = next((word for word, value in criterion.scale.words.items() if value == criterion.scale.high), None)
    values = {
        "output": output,
        "top": top if criterion.scale.worded else f"{criterion.scale.high:g}",
        "tag": _tags(criterion)["output"],
        "label": criterion.label,
    }
    return {name: render(text, values) for name, text in wording("attacks").items()}


def steps_messages(criterion: Criterion) -> Messages:
    """The messages that ask a judge to write evaluation steps (the auto chain of thought of Liu et al. 2023, §2)."""
    return [{"role": "user", "content": render(shipped_text("write_steps.jinja"), criterion_words(criterion))}]


def allowed(scale: Scale) -> str:
    """The allowed answers in words.

    >>> allowed(Scale.of("0-1")), allowed(Scale.of("1-100"))
    ('0 or 1', 'a whole number from 1 to 100')
    """
    if len(scale.values) > 12 and "-" in str(scale):
        return f"a whole number from {scale.low:g} to {scale.high:g}"
    names = [f'"{word}"' for word in scale.words] if scale.worded else [f"{value:g}" for value in scale.values]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def render(template: str, values: dict[str, Any]) -> str:
    """One template with its values, in one pass.

    Raises:
        InputError: the template does not parse, or names a value that is not there.
    """
    import jinja2

    try:
        return str(_compiled(template).render(values)).strip()
    except Exception as error:  # a template can raise anything
        line = f" (line {error.lineno})" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        raise InputError(f"the prompt template cannot be used{line}: {error or type(error).__name__}") from None


@cache
def _compiled(template: str) -> Any:
    import jinja2
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals.clear()  # nobody needs them, and each rendering would copy them
    return environment.from_string(template)


@cache
def shipped_text(name: str) -> str:
    """A file of `prompts/`: a template, or YAML."""
    return (prompts_folder() / name).read_text(encoding="utf-8")


@cache
def wording(name: str) -> dict[str, Any]:
    """One of the YAML files in `prompts/`: tasks, forms, personas, recipes or attacks."""
    import yaml

    return dict(yaml.safe_load(shipped_text(f"{name}.yaml")))


def read_template(path: str | Path) -> str:
    """A published prompt file.

    Raises:
        InputError: it cannot be read as text.
    """
    try:
        template = Path(path).read_text(encoding="utf-8")
        render(template, dict.fromkeys(PUBLISHED, ""))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a prompt file: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}; it can name {', '.join(PUBLISHED)}") from None
    return template
