"""The command line: one verb per job."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from . import local, report
from .criteria import OFF_GRID, Criterion, criteria, find_criterion
from .elicitation import READOUTS
from .errors import GEvalError, InputError
from .judge import LiteLLMJudge
from .prompts import sendable
from .rating import STEPS, GEval, Rating
from .readout import FORMS
from .runlog import RunLog
from .samples import Sample, read_samples

if TYPE_CHECKING:
    from .comparison import Comparer, RankedDocument

app = typer.Typer(
    help="Rate text with an LLM as the judge, and know how far to trust the numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
errors = Console(stderr=True)

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
    off_grid: Annotated[str, typer.Option(help="A value between two steps.", callback=_one_of(OFF_GRID))] = "keep",
    scale: Annotated[str | None, typer.Option(help="Another scale than the criterion's, as in 1-10.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Let the judge give its reasons.")] = False,
    prompt_file: Annotated[Path | None, typer.Option(help="A published prompt file.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Ratings, one JSON object per line.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rate only the first samples.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 16,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one request may take.")] = 120.0,
    direct: Annotated[bool, typer.Option("--direct/--no-direct", help="Reach OpenAI endpoints past LiteLLM.")] = True,
    field: FieldOption = [],  # noqa: B006
    skip_bad_lines: Annotated[bool, typer.Option("--skip-bad-lines", help="Pass over what cannot be used.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Rate the outputs in INPUT.

    Exit code: 0 all were rated, 1 some were not, 2 bad usage or input, 130 interrupted (what was done is kept).
    """
    judge = LiteLLMJudge(model, concurrency=concurrency, timeout=timeout, direct=direct)
    gevals = [
        GEval(
            name, judge, recipe=recipe, scale=scale, form=form, steps=steps, n=n, temperature=temperature,
            readout=readout, off_grid=off_grid, explain=explain, prompt_file=prompt_file,
        )
        for name in criterion
    ]  # fmt: skip
    data = Input(input, field, [each.criterion for each in gevals], limit, skip_bad_lines)
    _warn_of_embedded(judge)
    run = Run(gevals, data, output, as_json)
    try:
        asyncio.run(run.rate())
    except KeyboardInterrupt:
        errors.print("interrupted; what was done is kept", style="yellow")
        run.close()
        raise typer.Exit(130) from None
    except GEvalError:
        run.close()
        raise
    run.close()
    if any(each.failed for each in run.summaries.values()):
        raise typer.Exit(1)


def _warn_of_embedded(judge: LiteLLMJudge) -> None:
    if judge.name == f"local/{local.SMOLLM2}":
        errors.print(
            "judge: local/smollm2, a tiny model to try things out with (on Topical-Chat engagingness it agrees with"
            " people at ρ ≈ .1; response length alone reaches .5). For real work: --model openai/gpt-4o-mini",
            style="yellow",
            soft_wrap=True,
        )


class Input:
    """A file of samples, checked whole before the first request so that a bad line costs nothing."""

    def __init__(
        self, path: str, fields: Iterable[str], wanted: list[Criterion], limit: int | None, skip_bad: bool
    ) -> None:
        self.path = path
        columns = dict(field.split("=", 1) for field in fields if "=" in field)
        if wrong := [field for field in fields if "=" not in field]:
            raise InputError(f"--field {wrong[0]}: write FIELD=COLUMN")
        self._options: dict[str, Any] = {
            "columns": columns,
            "needs": list(dict.fromkeys(need for each in wanted for need in each.needs)),
        }
        self._skip_bad = skip_bad
        self.limit = limit
        self._kept = list(self._read([])) if path == "-" else None
        self.bad: list[str] = []
        self.total = self.unsendable = 0
        for sample in self._kept if self._kept is not None else self._read(self.bad):
            self.total += 1
            texts = (sample.output, sample.source, sample.reference, sample.context)
            self.unsendable += any(text is not None and sendable(text) != text for text in texts)
        if not self.total:
            raise InputError(f"{path}: nothing to rate" + (f"; {self.bad[0]}" if self.bad else ""))

    def _read(self, bad: list[str]) -> Iterator[Sample]:
        rows = read_samples(self.path, **self._options, bad_rows=bad if self._skip_bad else None)
        for number, sample in enumerate(rows):
            if self.limit is not None and number >= self.limit:
                return
            yield sample

    def __iter__(self) -> Iterator[Sample]:
        """The samples, read anew each time."""
        return iter(self._kept) if self._kept is not None else self._read([])

    def notes(self) -> Iterator[str]:
        """What people must know about the file."""
        if self.bad:
            yield f"{len(self.bad)} bad lines were passed over, the first: {self.bad[0]}"
        if self.unsendable:
            yield f"{self.unsendable} samples hold NUL or lone surrogates, which the judge was shown as U+FFFD"


class Run:
    """One `geval score`: ratings to the output as they come, a progress bar, and what is printed at the end."""

    SHOWN = 20

    def __init__(self, gevals: list[GEval], data: Input, output: Path | None, as_json: bool) -> None:
        self.gevals = gevals
        self.data = data
        self.as_json = as_json
        self.summaries = {each.criterion.name: report.Summary(each.criterion.name) for each in gevals}
        self.first: list[Rating] = []
        self.log = RunLog(output) if output else None
        self._opened = False

    async def rate(self) -> None:
        """Rate every sample by every criterion."""
        with progress(self.data.total * len(self.gevals)) as tick:
            for geval in self.gevals:
                summary = self.summaries[geval.criterion.name]
                async for rating in geval.arate_many(self.data):
                    self._keep(rating)
                    summary.add(rating)
                    spent = [each.usage for each in self.summaries.values()]
                    failed = sum(each.failed for each in self.summaries.values())
                    tick(failed, report.cost(sum(spent[1:], spent[0])))

    def _keep(self, rating: Rating) -> None:
        if self.log:
            self.log.write(rating.to_dict())
        elif self.as_json:  # as they come, so that nothing piles up
            sys.stdout.write(("," if self._opened else '{"ratings": [') + "\n" + json.dumps(rating.to_dict()))
            self._opened = True
        if len(self.first) <= self.SHOWN:
            self.first.append(rating)

    def close(self) -> None:
        """Print what came out, also of a run that ended early."""
        if self.log:
            self.log.close()
        summaries = list(self.summaries.values())
        if self.as_json:
            opening = "\n], " if self._opened else "{"
            sys.stdout.write(f'{opening}"criteria": {json.dumps([each.to_dict() for each in summaries])}}}\n')
            sys.stdout.flush()
        else:
            console = output_console()
            if 0 < len(self.first) <= self.SHOWN:
                console.print(report.ratings_table(self.first, console))
            console.print(report.summary_table(summaries, console))
            for each in summaries:
                for signature in each.signatures:
                    console.print(signature, style="dim", markup=False, highlight=False, soft_wrap=True)
        for each in summaries:
            for reason, count in each.reasons.most_common():
                errors.print(
                    f"{each.criterion}: {count} not rated: {reason}", style="red", markup=False, soft_wrap=True
                )
        for note in self.data.notes():
            errors.print(report.plain(note), style="yellow", markup=False, soft_wrap=True)


@contextmanager
def progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal's standard error; nothing where that is piped."""
    columns = (
        TextColumn("rating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}/s"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cost]}"),
        TextColumn("{task.fields[failed]} failed"),
    )
    with ExitStack() as stack:
        if not errors.is_terminal:
            yield lambda failed, cost: None
            return
        bar = stack.enter_context(Progress(*columns, console=errors, transient=True))
        task = bar.add_task("rating", total=total, rate="-", cost="", failed=0)

        def tick(failed: int, cost: str) -> None:
            bar.update(task, advance=1, failed=failed, cost=cost, rate=f"{bar.tasks[0].speed or 0:.1f}")

        yield tick


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
        _write_page(html, report.page(title, sections))
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
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Ranked rows, one JSON object each.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first samples.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 16,
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Rank candidates by comparing them pairwise.

    Exit code: 0 all comparisons were read, 1 some were not, 2 bad usage or input.
    """
    from . import comparison, ranking

    if method not in ranking.METHODS:
        raise InputError(f"unknown ranking method {method!r}; known: {', '.join(ranking.METHODS)}")
    if (input is None) == (replies is None):
        raise InputError("give either INPUT or --replies FILE")
    chosen = find_criterion(criterion)
    if replies is not None:
        judged, human = comparison.read_replies(str(replies))
        result = comparison.ranked(chosen.name, method, judged, human, systems=True)
    else:
        judge = LiteLLMJudge(model, concurrency=concurrency)
        comparer = comparison.Comparer(
            chosen, judge, kind=kind, ties=ties, n=n, temperature=temperature, readout=readout
        )
        options = {"select": select, "budget": budget, "method": method, "seed": seed}
        data = Input(input or "", field, [chosen], limit, False)
        log = RunLog(output) if output else None
        _warn_of_embedded(judge)
        try:
            documents = asyncio.run(_rank(comparer, comparison.by_document(data), options, log))
        except KeyboardInterrupt:
            errors.print("interrupted; the documents that were ranked are kept", style="yellow")
            raise typer.Exit(130) from None
        human = {
            (document, sample.id): known
            for document, each in documents.items()
            for sample in each.samples.values()
            if (known := sample.human_score(chosen)) is not None
        }
        judged = {document: each.outcomes for document, each in documents.items()}
        result = comparison.ranked(chosen.name, method, judged, human, systems=False)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        report.print_sections(report.ranking_sections(result), output_console())
    if result.unread:
        raise typer.Exit(1)


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
    budget: Annotated[int | None, typer.Option(min=1, help="Calls at most, shared out among the checks; 600.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A log of answers, from which a run resumes.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write one self-contained page with plots.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first samples.")] = None,
    seed: Annotated[int, typer.Option(help="Decides which samples are drawn.")] = 0,
    form: Annotated[str, typer.Option(help="Form of raw replies.", callback=_one_of(FORMS))] = "rate_explain",
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 16,
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Measure how biased and how inconsistent a judge is, on your samples.

    Exit code: 0 all checks were made or said why not, 2 bad usage or input, 130 interrupted (--output resumes).
    """
    from . import audit, metaeval
    from .checks import CHECKS, STORED

    if (input is None) == (ratings is None):
        raise InputError("give either INPUT or --ratings FILE")
    chosen = {spec: find_criterion(spec) for spec in criterion}
    wanted = [name.strip() for name in checks.split(",")] if checks else None
    if ratings is not None:
        if len(chosen) > 1:
            raise InputError("--ratings takes one --criterion at a time")
        only = next(iter(chosen.values()))
        judged = metaeval.read_judged(ratings, only, form)
        result = asyncio.run(audit.audit_ratings(judged, only, wanted or list(STORED)))
    else:
        judge = LiteLLMJudge(model, concurrency=concurrency)
        names = audit.known_checks(wanted or list(CHECKS), CHECKS)
        data = Input(input or "", field, list(chosen.values()), limit, False)
        _warn_of_embedded(judge)
        calls = budget or audit.BUDGET
        try:
            with RunLog(output) if output else nullcontext() as log, progress(calls) as tick:
                asked = audit.audit(
                    input or "", list(data), chosen, judge, checks=names, budget=calls, seed=seed, log=log,
                    watch=lambda row: tick(0, ""),
                )  # fmt: skip
                result = asyncio.run(asked)
        except KeyboardInterrupt:
            errors.print("interrupted; with the same --output what was asked is not asked again", style="yellow")
            raise typer.Exit(130) from None
        for note in data.notes():
            errors.print(report.plain(note), style="yellow", markup=False, soft_wrap=True)
    if html:
        _write_page(html, report.page(f"Audit of {result.judge}", report.audit_page(result)))
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        report.print_sections(report.audit_overview(result), output_console())


async def _rank(
    comparer: Comparer, groups: dict[str | None, list[Sample]], options: dict[str, Any], log: RunLog | None
) -> dict[str | None, RankedDocument]:
    """Rank each document's candidates; each document's rows are on disk before the next one is begun."""
    done = {}
    with log or nullcontext(), progress(len(groups)) as tick:
        for document, samples in groups.items():
            done[document] = await comparer.arank(samples, **options)
            for row in done[document].rows(comparer.criterion):
                if log:
                    log.write(row)
            unread = sum(verdict.p_first is None for each in done.values() for verdict in each.verdicts)
            tick(unread, "")
    return done


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
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


def output_console() -> Console:
    """Standard output; as wide as it takes where it is piped."""
    return Console(width=None if sys.stdout.isatty() else 240, highlight=False)


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
