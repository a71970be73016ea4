"""Options that several verbs share, each written once; a verb takes a whole group as one argument (see `app.verb`)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..criteria import FORMS, Criterion
from ..errors import InputError
from ..fence import CONTROL_TOKENS, ControlTokens
from ..judge.client import LiteLLMJudge
from ..recipes import STEPS, StepsFrom
from ..runs.breaker import Breaker
from ..runs.engine import Engine
from ..runs.input import Input
from . import plugins
from .app import choice


def recipes() -> Iterable[str]:
    """The published configurations."""
    from ..prompts import wording

    return wording("recipes")


CriterionOption = Annotated[
    list[str],
    typer.Option("--criterion", "-c", help="A registered name (see `geval criteria`), a YAML file, or free text."),
]
FieldOption = Annotated[list[str], typer.Option(metavar="FIELD=COLUMN", help="For files that name a field otherwise.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RecipeOption = Annotated[str | None, choice(of=recipes, help="A published configuration.")]
FormOption = Annotated[
    str | None, typer.Option(metavar="|".join(FORMS), help="How the judge answers; two joined by + are averaged.")
]
StepsOption = Annotated[StepsFrom | None, choice(of=STEPS, help="Evaluation steps.")]
ControlTokensOption = Annotated[
    ControlTokens, choice(of=CONTROL_TOKENS, help="What chat templates' control tokens in samples become.")
]
PromptFileOption = Annotated[Path | None, typer.Option(help="A published prompt file.")]
ResumeOption = Annotated[bool, typer.Option("--resume/--no-resume", help="Go on with an --output that is there.")]
HtmlOption = Annotated[Path | None, typer.Option(help="Also write one self-contained page to look at.")]


@dataclass(frozen=True)
class JudgeOptions:
    """Who is asked, how fast, and for how much; the fields are the arguments of `LiteLLMJudge`."""

    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="A LiteLLM model or local/...; default $GEVAL_MODEL, then local/smollm2."),
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once, at the most.")] = 16
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one request may take.")] = 120.0
    rpm: Annotated[float | None, typer.Option(min=0.01, help="Requests per minute.")] = None
    tpm: Annotated[float | None, typer.Option(min=1, help="Tokens per minute, prompt and completion.")] = None
    max_requests: Annotated[int | None, typer.Option(min=1, help="Stop after so many requests.")] = None
    max_cost: Annotated[float | None, typer.Option(min=0, help="Stop before this run costs more dollars.")] = None
    router: Annotated[
        Path | None,
        typer.Option(help="A LiteLLM router file (model_list, router_settings); --model names its group."),
    ] = None
    direct: Annotated[bool, typer.Option("--direct/--no-direct", help="Reach OpenAI endpoints past LiteLLM.")] = True
    option: Annotated[
        list[str],
        typer.Option(metavar="NAME=VALUE", help="A further parameter of each request, as in reasoning_effort=low."),
    ] = dataclasses.field(default_factory=list)
    cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep replies there, and take those that are there.")
    ] = None

    batch: Annotated[
        bool, typer.Option("--batch", help="Ask by the provider's batch interface: half the price, within hours.")
    ] = False
    wait: Annotated[bool, typer.Option("--wait", help="With --batch: stay until the answers are there.")] = False

    def judge(self, output: Path | None = None) -> LiteLLMJudge:
        """The judge that they describe; what it asks in batches is kept beside the output.

        Raises:
            InputError: an option cannot be used, or the cache's folder; batches without an output.
            JudgeError: there is no such model, or no key for it, or its provider has no batches.
        """
        given = dict(vars(self))
        options = dict(map(_option, given.pop("option")))
        batch, wait = given.pop("batch"), given.pop("wait")
        if not batch:
            return LiteLLMJudge(**given, options=options)
        if output is None:
            raise InputError("--batch needs an --output: what is under way is kept beside it")
        from ..judge.batches import BatchJudge
        from ..runs.progress import BatchWatch

        ledger = output.with_name(f"{output.stem}.batches.db")
        return BatchJudge(**given, options=options, batch=ledger, wait=wait, watch=BatchWatch())


def _option(text: str) -> tuple[str, Any]:
    """The name and the value of NAME=VALUE; a value that is JSON is what it says, any other is text."""
    name, told, value = text.partition("=")
    if not told or not name:
        raise InputError(f"--option {text}: write NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


_Models = typer.Option("--model", "-m", help="As in `geval score`; given again, judges stand side by side.")


@dataclass(frozen=True)
class JudgesOptions(JudgeOptions):
    """Who is asked, where there may be several."""

    model: Annotated[list[str], _Models] = dataclasses.field(default_factory=list)  # type: ignore[assignment]

    def judges(self, output: Path | None = None) -> list[LiteLLMJudge]:
        """The judges that they describe, as `judge` has them.

        Raises:
            JudgeError: there is no such model, or no key for it.
        """
        models: list[str | None] = [*dict.fromkeys(self.model)] or [None]
        return [self.of_model(model).judge(output) for model in models]

    def jury(self, others: Sequence[str] = (), output: Path | None = None) -> list[LiteLLMJudge]:
        """The judges of one run, and others with the same options: what may be sent and spent is for all together.

        Raises:
            InputError, JudgeError: as from `judges`; several judges ask in batches.
        """
        models: list[str | None] = [*dict.fromkeys([*self.model, *([] if self.model else [None]), *others])]
        if self.batch and len(models) > 1:
            raise InputError("--batch takes one --model: judge by judge, each with an --output of its own")
        judges = [self.of_model(model).judge(output) for model in models]
        for judge in judges:
            judge.budget = judges[0].budget
        return judges

    def of_model(self, model: str | None) -> JudgeOptions:
        """The same options for one model."""
        return JudgeOptions(**{**vars(self), "model": model})


def words_of(*groups: Any, leaving_out: Collection[str] = ()) -> list[str]:
    """The command line of the options in some groups that differ from their defaults.

    >>> words_of(InputOptions(field=["output=text"], limit=5), JudgeOptions(direct=False))
    ['--field', 'output=text', '--limit', '5', '--no-direct']
    """
    words: list[str] = []
    for group in groups:
        for each in dataclasses.fields(group):
            value, flag = getattr(group, each.name), each.name.replace("_", "-")
            default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
            if value == default or each.name in leaving_out:
                continue
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                for one in value if isinstance(value, list) else [value]:
                    words += [f"--{flag}", f"{one:g}" if isinstance(one, float) else str(one)]
    return words


@dataclass(frozen=True)
class InputOptions:
    """How a file of samples is read."""

    field: FieldOption = dataclasses.field(default_factory=list)
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first samples.")] = None
    skip_bad_lines: Annotated[bool, typer.Option("--skip-bad-lines", help="Pass over what cannot be used.")] = False

    def read(self, path: str, wanted: Sequence[Criterion]) -> Input:
        """The samples of a file, checked whole.

        Raises:
            InputError: the file cannot be read, or a row of it cannot be used.
        """
        return Input(path, self.field, wanted, self.limit, self.skip_bad_lines)


@dataclass(frozen=True)
class RunOptions:
    """Where a run keeps what it has done, who does the work, and when it gives up."""

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Rows as JSON lines, from which the same command goes on.")
    ] = None
    resume: ResumeOption = True
    engine: Annotated[str, choice(of=plugins.engines, help="What asks the judge: this process, a cluster.")] = "local"
    address: Annotated[str | None, typer.Option(help="A Ray cluster; the default is one on this machine.")] = None
    max_failures: Annotated[
        float, typer.Option(min=0, max=1, help=f"Stop when more than this share of the last {Breaker.LAST} failed.")
    ] = 0.5

    def open(self) -> Engine:
        """The engine that does the work.

        Raises:
            InputError: what it needs is not installed, there is no cluster, or the output could not be gone on from.
        """
        if self.output and self.output.suffix.lower() in (".csv", ".tsv", ".parquet", ".xlsx", ".html", ".json"):
            raise InputError(
                f"{self.output}: a run is kept as JSON lines, from which it can go on; name it"
                f" {self.output.with_suffix('.jsonl').name} (pandas.read_json(..., lines=True) reads it)"
            )
        return plugins.engine(self.engine, self.address)
