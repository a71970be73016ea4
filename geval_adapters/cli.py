"""The command line: one verb per job."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import local, report
from .criteria import OFF_GRID, criteria, find_criterion
from .elicitation import READOUTS
from .errors import GEvalError, InputError, StopError
from .estimate import Estimate, estimate
from .judge import LiteLLMJudge
from .rating import STEPS, GEval
from .readout import FORMS
from .run import (
    Breaker,
    Input,
    RankRun,
    Rate,
    ScoreRun,
    errors,
    output_console,
    progress,
    rate_here,
    say,
    say_faults,
)
from .runlog import Log, RunLog
from .samples import Sample

if TYPE_CHECKING:
    from .comparison import Ranked
    from .findings import Audit

app = typer.Typer(
    help="Rate text with an LLM as the judge, and know how far to trust the numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ENGINES = ("local", "ray")

CriterionOption = Annotated[
    list[str],
    typer.Option("--criterion", "-c", help="A registered name (see `geval criteria`), a YAML file, or free text."),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A LiteLLM model or local/...; default $GEVAL_MODEL, then local/smollm2."),
]
FieldOption = Annotated[list[str], typer.Option("--field", help="FIELD=COLUMN, for files that name a field otherwise.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ResumeOption = Annotated[bool, typer.Option("--resume/--no-resume", help="Go on with an --output that is there.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Requests under way at once, at the most.")]
TimeoutOption = Annotated[float, typer.Option(min=0.1, help="Seconds that one request may take.")]
RpmOption = Annotated[float | None, typer.Option(min=0.01, help="Requests per minute.")]
TpmOption = Annotated[float | None, typer.Option(min=1, help="Tokens per minute, prompt and completion.")]
MaxRequestsOption = Annotated[int | None, typer.Option(min=1, help="Stop after so many requests.")]
MaxCostOption = Annotated[float | None, typer.Option(min=0, help="Stop before this run costs more dollars.")]
MaxFailuresOption = Annotated[
    float, typer.Option(min=0, max=1, help=f"Stop when more than this share of the last {Breaker.LAST} failed.")
]
RouterOption = Annotated[
    Path | None, typer.Option(help="A LiteLLM router file (model_list, router_settings); --model names its group.")
]


def _one_of(allowed: Iterable[str]) -> Callable[[str | None], str | None]:
    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(allowed)}")
        return value

    return check


@app.command()
def score(
    input: Annotated[str, typer.Argument(help="JSON Lines, JSON list, CSV, TSV or Parquet; - for standard input.")],
    criterion: CriterionOption,
    model: ModelOption = None,
    recipe: Annotated[str | None, typer.Option(help="A published configuration (rate_explain, geval, ...).")] = None,
    form: Annotated[str | None, typer.Option(help=f"How the judge answers: {', '.join(FORMS)}.")] = None,
    steps: Annotated[str | None, typer.Option(help="Evaluation steps.", callback=_one_of(STEPS))] = None,
    n: Annotated[int | None, typer.Option(min=1, help="Replies per sample.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    readout: Annotated[str | None, typer.Option(help="How a score is read.", callback=_one_of(READOUTS))] = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Stop sampling an item that is clear.")] = False,
    target_error: Annotated[float, typer.Option(help="Clear for --adaptive, as a share of the scale's range.")] = 0.1,
    off_grid: Annotated[str, typer.Option(help="A value between two steps.", callback=_one_of(OFF_GRID))] = "keep",
    scale: Annotated[str | None, typer.Option(help="Another scale than the criterion's, as in 1-10.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Let the judge give its reasons.")] = False,
    prompt_file: Annotated[Path | None, typer.Option(help="A published prompt file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Ratings as JSON lines; with Ray, a folder of Parquet files.")
    ] = None,
    resume: ResumeOption = True,
    engine: Annotated[str, typer.Option(help="What rates: local, or ray.", callback=_one_of(ENGINES))] = "local",
    address: Annotated[str | None, typer.Option(help="A Ray cluster; the default is one on this machine.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rate only the first samples.")] = None,
    concurrency: ConcurrencyOption = 16,
    timeout: TimeoutOption = 120.0,
    rpm: RpmOption = None,
    tpm: TpmOption = None,
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    max_failures: MaxFailuresOption = 0.5,
    router: RouterOption = None,
    direct: Annotated[bool, typer.Option("--direct/--no-direct", help="Reach OpenAI endpoints past LiteLLM.")] = True,
    field: FieldOption = [],  # noqa: B006
    skip_bad_lines: Annotated[bool, typer.Option("--skip-bad-lines", help="Pass over what cannot be used.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the run would ask for and cost; ask nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rate the outputs in INPUT.

    Exit code: 0 all were rated, 1 some were not, 2 bad usage or input, 130 interrupted. What was done is kept: the
    same command with the same --output goes on from there.
    """
    judge = LiteLLMJudge(
        model, concurrency=concurrency, timeout=timeout, rpm=rpm, tpm=tpm, max_requests=max_requests,
        max_cost=max_cost, router=router, direct=direct,
    )  # fmt: skip
    gevals = [
        GEval(
            name, judge, recipe=recipe, scale=scale, form=form, steps=steps, n=n, temperature=temperature,
            readout=readout, adaptive=target_error if adaptive else None, off_grid=off_grid, explain=explain,
            prompt_file=prompt_file,
        )
        for name in dict.fromkeys(criterion)
    ]  # fmt: skip
    data = Input(input, field, [each.criterion for each in gevals], limit, skip_bad_lines)
    if dry_run:
        _show_estimates([estimate(each, judge, data) for each in gevals], as_json)
        return
    _warn_of_embedded(judge)
    rate, open_log = _engine(engine, address)
    with open_log(output, resume) if output else nullcontext() as log:
        run = ScoreRun(judge, gevals, data, log, max_failures, as_json, rate)
        ended = _until_the_end(run.rate(), run.show)
    raise typer.Exit(ended or any(each.failed for each in run.summaries.values()))


def _engine(name: str, address: str | None) -> tuple[Rate, Callable[[Path, bool], AbstractContextManager[Log]]]:
    """What rates, and what keeps the ratings."""
    if name == "local":
        if address:
            raise InputError("--address is that of a Ray cluster: it needs --engine ray")
        return rate_here, RunLog
    if missing := [module for module in ("ray", "pyarrow") if importlib.util.find_spec(module) is None]:
        raise InputError(f"--engine ray needs {missing[0]}: pip install 'geval-adapters[ray]'")
    from ray_geval import engine

    engine.connect(address)
    return engine.rate, engine.RatingsFolder


def _show_estimates(estimates: list[Estimate], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in estimates], indent=2))
        return
    console = output_console()
    console.print(report.estimates_table(estimates, console))


def _until_the_end(job: Coroutine[Any, Any, None], show: Callable[[], None]) -> int:
    """Run a job and show what it came to, however it ends; the exit code, 0 where it ran to its end."""
    code = 0
    try:
        asyncio.run(job)
    except KeyboardInterrupt:
        say("interrupted; what was done is kept")
        code = 130
    except StopError as error:
        say(f"stopped: {error}; what was done is kept")
        code = 1
    except GEvalError:
        show()
        raise
    show()
    return code


def _warn_of_embedded(judge: LiteLLMJudge) -> None:
    if judge.name == f"local/{local.SMOLLM2}":
        errors.print(
            "judge: local/smollm2, a tiny model to try things out with (on Topical-Chat engagingness it agrees with"
            " people at ρ ≈ .1; response length alone reaches .5). For real work: --model openai/gpt-4o-mini",
            style="yellow",
            soft_wrap=True,
        )


@app.command("criteria")
def list_criteria(as_json: JsonOption = False) -> None:
    """List what can be rated, with scale and source."""
    rows = [
        (name, str(each.scale), ", ".join(("output", *each.needs)), each.task, each.origin)
        for name, each in sorted(criteria().items(), key=lambda item: ("/" in item[0], item[0]))
    ]
    heads = ("criterion", "scale", "needs", "task", "origin")
    if as_json:
        typer.echo(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=2))
    else:
        console = output_console()
        console.print(report.table(heads, rows, console))


@app.command("prompt")
def show_prompt(
    criterion: Annotated[str, typer.Argument(help="A registered name, a YAML file, or free text.")],
    input: Annotated[str | None, typer.Argument(help="A file whose first sample is shown.")] = None,
    recipe: Annotated[str | None, typer.Option()] = None,
    form: Annotated[str | None, typer.Option()] = None,
    steps: Annotated[str | None, typer.Option(callback=_one_of(STEPS))] = None,
    prompt_file: Annotated[Path | None, typer.Option()] = None,
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Print the exact messages that would be sent."""
    chosen = find_criterion(criterion)
    placeholder = Sample("{output}", source="{source}", context="{context}", reference="{reference}")
    sample = next(iter(Input(input, field, [chosen], 1, False))) if input else placeholder
    # Nothing is asked of this judge: the messages are the same for any.
    geval = GEval(chosen, "openai/none", recipe=recipe, form=form, steps=steps, prompt_file=prompt_file)
    for prompt in geval.prompts:
        messages = prompt.messages(sample)
        if as_json:
            typer.echo(json.dumps(messages, indent=2))
        else:
            for message in messages:
                typer.echo(f"[{message['role']}]\n{message['content']}")
            if prompt.start:
                typer.echo(f"\n[assistant, where the model can continue it]\n{prompt.start}")


@app.command("meta-eval")
def meta_eval(
    files: Annotated[list[str], typer.Argument(help="Ratings of `geval score`, or raw replies in the G-Eval format.")],
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="Which criterion the files are about.")],
    baseline: Annotated[str | None, typer.Option(help="A file that each judge is tested against.")] = None,
    form: Annotated[list[str], typer.Option(help="Form of the raw replies: one, or one per file.")] = ["rate_explain"],  # noqa: B006
    off_grid: Annotated[str, typer.Option(help="A value between two steps.", callback=_one_of(OFF_GRID))] = "keep",
    average: Annotated[bool, typer.Option("--average", help="Add the files' mean score as a judge.")] = False,
    level: Annotated[list[str], typer.Option(help="dataset, document, system; default all.")] = list(report.LEVELS),  # noqa: B006
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples of the documents.")] = 1000,
    seed: Annotated[int, typer.Option()] = 0,
    html: Annotated[Path | None, typer.Option(help="Also write one self-contained page with plots.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well judges agree with people.

    Several files are several judges of the same items, matched by id.
    """
    from . import metaeval

    if wrong := [each for each in level if each not in report.LEVELS]:
        raise InputError(f"unknown level {wrong[0]!r}; known: {', '.join(report.LEVELS)}")
    if wrong := [each for each in form if each not in FORMS]:
        raise InputError(f"unknown form {wrong[0]!r}; known: {', '.join(FORMS)}")
    paths = [*files, *([baseline] if baseline else [])]
    if len(form) not in (1, len(paths)):
        raise InputError(f"{len(form)} forms for {len(paths)} files: give one, or one per file, the baseline's last")
    chosen = find_criterion(criterion)
    forms = form * len(paths) if len(form) == 1 else form
    judged = [metaeval.read_judged(path, chosen, own, off_grid) for path, own in zip(paths, forms, strict=True)]
    against = judged.pop() if baseline else None
    if average:
        judged.append(metaeval.average(judged))
    result = metaeval.evaluate(chosen, judged, against, resamples=resamples, seed=seed)
    if html:
        title = f"Agreement with people: {chosen.name}"
        sections = [*report.agreement_plots(result), *report.agreement_sections(result, level)]
        _write(html, report.page(title, sections))
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        report.print_sections(report.agreement_sections(result, level), output_console())


@app.command()
def rank(
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="What the candidates are compared by.")],
    input: Annotated[str | None, typer.Argument(help="Candidates; those of equal doc_id are compared.")] = None,
    replies: Annotated[Path | None, typer.Option(help="Rank from stored replies instead; no model is asked.")] = None,
    model: ModelOption = None,
    select: Annotated[str, typer.Option(help="full, random, no_repeat, symmetric, chain or active.")] = "symmetric",
    budget: Annotated[int | None, typer.Option(min=1, help="Calls per document at most.")] = None,
    method: Annotated[str, typer.Option(help="How comparisons become scores.")] = "bradley-terry",
    kind: Annotated[str, typer.Option(help="The prompt: bare, or instructed.")] = "instructed",
    ties: Annotated[bool, typer.Option("--ties", help="Let the judge call a tie.")] = False,
    n: Annotated[int | None, typer.Option(min=1, help="Replies per comparison.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    readout: Annotated[str, typer.Option(callback=_one_of(READOUTS))] = "auto",
    seed: Annotated[int, typer.Option(help="Decides what is random in the selection.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Ranked rows as JSON lines; the verdicts go beside it.")
    ] = None,
    resume: ResumeOption = True,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first samples.")] = None,
    concurrency: ConcurrencyOption = 16,
    timeout: TimeoutOption = 120.0,
    rpm: RpmOption = None,
    tpm: TpmOption = None,
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    max_failures: MaxFailuresOption = 0.5,
    router: RouterOption = None,
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Rank candidates by comparing them pairwise.

    With --output each verdict is on disk as soon as it is there, in NAME.verdicts.jsonl beside it, and the same command
    goes on from there. Exit code: 0 all comparisons were read, 1 some were not, 2 bad usage or input, 130 interrupted.
    """
    from . import comparison, ranking

    if method not in ranking.METHODS:
        raise InputError(f"unknown ranking method {method!r}; known: {', '.join(ranking.METHODS)}")
    if (input is None) == (replies is None):
        raise InputError("give either INPUT or --replies FILE")
    chosen = find_criterion(criterion)

    def show(result: Ranked) -> None:
        if as_json:
            typer.echo(json.dumps(result.to_dict(), indent=2))
        else:
            report.print_sections(report.ranking_sections(result), output_console())

    if replies is not None:
        result = comparison.ranked(chosen.name, method, *comparison.read_replies(str(replies)), systems=True)
        show(result)
        raise typer.Exit(bool(result.unread))
    judge = LiteLLMJudge(
        model, concurrency=concurrency, timeout=timeout, rpm=rpm, tpm=tpm, max_requests=max_requests,
        max_cost=max_cost, router=router,
    )  # fmt: skip
    comparer = comparison.Comparer(chosen, judge, kind=kind, ties=ties, n=n, temperature=temperature, readout=readout)
    data = Input(input or "", field, [chosen], limit, False)
    _warn_of_embedded(judge)
    with RunLog(_verdicts_beside(output), resume) if output else nullcontext() as log:
        run = RankRun(comparer, data, log, max_failures)

        def show_ranked() -> None:
            if output:
                _write(output, "".join(json.dumps(row) + "\n" for row in run.rows()))
            if run.documents:
                show(run.result(method))
            say_faults(judge)

        ended = _until_the_end(run.rank(select=select, budget=budget, method=method, seed=seed), show_ranked)
    raise typer.Exit(ended or any(each.p_first is None for each in run.verdicts()))


@app.command("audit")
def audit_judge(
    criterion: CriterionOption,
    input: Annotated[
        str | None, typer.Argument(help="Samples, best with doc_id, system_id and people's scores.")
    ] = None,
    ratings: Annotated[
        str | None, typer.Option(help="Audit ratings or raw replies that are there; nobody is asked.")
    ] = None,
    model: ModelOption = None,
    checks: Annotated[str | None, typer.Option(help="Which checks, with commas between them; default all.")] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Calls at most; 400 for each criterion.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A log of answers, from which a run resumes.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write one self-contained page with plots.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first samples.")] = None,
    resume: ResumeOption = True,
    seed: Annotated[int, typer.Option(help="Decides which samples are drawn.")] = 0,
    form: Annotated[str, typer.Option(help="Form of raw replies.", callback=_one_of(FORMS))] = "rate_explain",
    concurrency: ConcurrencyOption = 16,
    timeout: TimeoutOption = 120.0,
    rpm: RpmOption = None,
    tpm: TpmOption = None,
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Measure how biased and how inconsistent a judge is, on your samples.

    Exit code: 0 all checks were made or said why not, 2 bad usage or input, 130 interrupted. What was asked is kept:
    the same command with the same --output goes on from there.
    """
    from . import audit, metaeval
    from .checks import CHECKS, STORED

    if (input is None) == (ratings is None):
        raise InputError("give either INPUT or --ratings FILE")
    chosen = {spec: find_criterion(spec) for spec in criterion}
    allowed = list(CHECKS if ratings is None else STORED)
    names = audit.known_checks([name.strip() for name in checks.split(",")] if checks else allowed, allowed)

    def show(result: Audit) -> None:
        if html:
            _write(html, report.page(f"Audit of {result.judge}", report.audit_page(result)))
        if as_json:
            typer.echo(json.dumps(result.to_dict(), indent=2))
        else:
            report.print_sections(report.audit_sections(result), output_console())

    if ratings is not None:
        if len(chosen) > 1:
            raise InputError("--ratings takes one --criterion at a time")
        only = next(iter(chosen.values()))
        show(asyncio.run(audit.audit_ratings(metaeval.read_judged(ratings, only, form), only, names)))
        return
    judge = LiteLLMJudge(model, concurrency=concurrency, timeout=timeout, rpm=rpm, tpm=tpm)
    data = Input(input or "", field, list(chosen.values()), limit, False)
    _warn_of_embedded(judge)
    calls = budget or audit.BUDGET * len(chosen)
    done: list[Audit] = []

    async def ask() -> None:
        made = await audit.audit(
            input or "", list(data), chosen, judge, checks=names, budget=calls, seed=seed, log=log,
            watch=lambda failed, usage: tick(failed, report.cost(usage)),
        )  # fmt: skip
        done.append(made)

    def show_done() -> None:
        for each in done:
            show(each)
        for note in data.notes():
            say(note)
        say_faults(judge)

    with RunLog(output, resume) if output else nullcontext() as log, progress(calls, 0) as tick:
        ended = _until_the_end(ask(), show_done)
    raise typer.Exit(ended)


def _verdicts_beside(output: Path) -> Path:
    """Where the verdicts of a ranking are kept; an output that has none beside it is somebody else's file."""
    verdicts = output.with_name(f"{output.stem}.verdicts.jsonl")
    if output.exists() and not verdicts.exists():
        raise InputError(f"{output}: exists already, and has no {verdicts.name} to go on from; name another --output")
    return verdicts


def _write(path: Path, text: str) -> None:
    """Write a file as a whole: what was there before stays until all of it is there."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


@app.command("tasks")
def list_tasks(as_json: JsonOption = False) -> None:
    """List the tasks for lm-evaluation-harness (lm_eval --tasks NAME), and where their files are."""
    from lm_eval_geval import listing

    listed = listing.tasks()
    if as_json:
        told = [{"name": each.name, "tasks": each.tasks, "about": each.about} for each in listed]
        typer.echo(json.dumps({"include_path": str(listing.INCLUDE_PATH), "tasks": told}, indent=2))
    else:
        console = output_console()
        rows = [(each.name, str(len(each.tasks) or 1), each.about) for each in listed]
        console.print(report.table(("name", "tasks", "what is measured"), rows, console))
        errors.print(f"where lm_eval does not find them: --include_path {listing.INCLUDE_PATH}", soft_wrap=True)


def main() -> None:
    """Run the command line: what users can mend is one line, never a traceback."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        app()
    except GEvalError as error:
        errors.print(f"error: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
