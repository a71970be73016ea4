"""`geval score`: rate the outputs of a file."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Annotated

import typer

from .. import report
from ..criteria import OFF_GRID, OffGrid
from ..judge.sampling import READOUTS, Readout
from ..rating import GEval
from ..runs.dry_run import Estimate, estimate
from ..runs.progress import output_console
from ..runs.score import ScoreRun
from .app import choice, verb
from .ending import Exit, until_the_end, warn_of_embedded
from .options import (
    CriterionOption,
    FormOption,
    InputOptions,
    JsonOption,
    JudgeOptions,
    PromptFileOption,
    RecipeOption,
    RunOptions,
    StepsOption,
)


@verb("score")
def score(
    input: Annotated[str, typer.Argument(help="JSON Lines, JSON list, CSV, TSV or Parquet; - for standard input.")],
    criterion: CriterionOption,
    recipe: RecipeOption = None,
    form: FormOption = None,
    steps: StepsOption = None,
    n: Annotated[int | None, typer.Option(min=1, help="Replies per sample.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    readout: Annotated[Readout | None, choice(of=READOUTS, help="How a score is read.")] = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Stop sampling an item that is clear.")] = False,
    target_error: Annotated[float, typer.Option(help="Clear for --adaptive, as a share of the scale's range.")] = 0.1,
    off_grid: Annotated[OffGrid, choice(of=OFF_GRID, help="A value between two steps.")] = "keep",
    scale: Annotated[str | None, typer.Option(help="Another scale than the criterion's, as in 1-10.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Let the judge give its reasons.")] = False,
    prompt_file: PromptFileOption = None,
    *,
    asking: JudgeOptions,
    running: RunOptions,
    reading: InputOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the run would ask for and cost; ask nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rate the outputs in INPUT.

    Exit code: 0 all were rated, 1 some were not, 2 bad usage or input, 130 interrupted. What was done is kept: the
    same command with the same --output goes on from there.
    """
    judge = asking.judge()
    gevals = [
        GEval(
            name, judge, recipe=recipe, scale=scale, form=form, steps=steps, n=n, temperature=temperature,
            readout=readout, adaptive=target_error if adaptive else None, off_grid=off_grid, explain=explain,
            prompt_file=prompt_file,
        )
        for name in dict.fromkeys(criterion)
    ]  # fmt: skip
    data = reading.read(input, [each.criterion for each in gevals])
    if dry_run:
        _show_estimates([estimate(each, judge, data) for each in gevals], as_json)
        return
    warn_of_embedded(judge)
    engine = running.open()
    with engine.log(running.output, running.resume) if running.output else nullcontext() as log:
        run = ScoreRun(judge, gevals, data, log, running.max_failures, as_json, engine.rate)
        ended = until_the_end(run.rate(), run.show)
    raise typer.Exit(ended or (Exit.UNRATED if any(each.failed for each in run.summaries.values()) else Exit.DONE))


def _show_estimates(estimates: list[Estimate], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in estimates], indent=2))
        return
    console = output_console()
    console.print(report.estimates_table(estimates, console))
