"""The command line: one verb per job."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from .. import report
from ..criteria import OFF_GRID
from ..judge.client import LiteLLMJudge
from ..judge.sampling import READOUTS
from ..rating import STEPS, GEval
from ..reading.distribution import FORMS
from ..runs.dry_run import Estimate, estimate
from ..runs.input import Input
from ..runs.progress import output_console
from ..runs.score import ScoreRun
from .app import app
from .ending import until_the_end, warn_of_embedded
from .options import (
    AddressOption,
    ConcurrencyOption,
    CriterionOption,
    EngineOption,
    FieldOption,
    JsonOption,
    MaxCostOption,
    MaxFailuresOption,
    MaxRequestsOption,
    ModelOption,
    ResumeOption,
    RouterOption,
    RpmOption,
    TimeoutOption,
    TpmOption,
    engine_of,
    one_of,
)


@app.command()
def score(
    input: Annotated[str, typer.Argument(help="JSON Lines, JSON list, CSV, TSV or Parquet; - for standard input.")],
    criterion: CriterionOption,
    model: ModelOption = None,
    recipe: Annotated[str | None, typer.Option(help="A published configuration (rate_explain, geval, ...).")] = None,
    form: Annotated[str | None, typer.Option(help=f"How the judge answers: {', '.join(FORMS)}.")] = None,
    steps: Annotated[str | None, typer.Option(help="Evaluation steps.", callback=one_of(STEPS))] = None,
    n: Annotated[int | None, typer.Option(min=1, help="Replies per sample.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    readout: Annotated[str | None, typer.Option(help="How a score is read.", callback=one_of(READOUTS))] = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Stop sampling an item that is clear.")] = False,
    target_error: Annotated[float, typer.Option(help="Clear for --adaptive, as a share of the scale's range.")] = 0.1,
    off_grid: Annotated[str, typer.Option(help="A value between two steps.", callback=one_of(OFF_GRID))] = "keep",
    scale: Annotated[str | None, typer.Option(help="Another scale than the criterion's, as in 1-10.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Let the judge give its reasons.")] = False,
    prompt_file: Annotated[Path | None, typer.Option(help="A published prompt file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Ratings as JSON lines; with Ray, a folder of Parquet files.")
    ] = None,
    resume: ResumeOption = True,
    engine: EngineOption = "local",
    address: AddressOption = None,
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
    warn_of_embedded(judge)
    rate, _, open_log = engine_of(engine, address)
    with open_log(output, resume) if output else nullcontext() as log:
        run = ScoreRun(judge, gevals, data, log, max_failures, as_json, rate)
        ended = until_the_end(run.rate(), run.show)
    raise typer.Exit(ended or any(each.failed for each in run.summaries.values()))


def _show_estimates(estimates: list[Estimate], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in estimates], indent=2))
        return
    console = output_console()
    console.print(report.estimates_table(estimates, console))
