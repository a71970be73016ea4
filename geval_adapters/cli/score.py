"""`geval score`: rate the outputs of a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import report
from ..criteria import OFF_GRID, Criterion, OffGrid
from ..errors import InputError
from ..examples import Shots
from ..judge.client import LiteLLMJudge
from ..judge.sampling import READOUTS, Readout
from ..rating import GEval
from ..runs.board import Asked, Board
from ..runs.cascade import CascadeBoard
from ..runs.dry_run import Estimate, estimate, estimates_table
from ..runs.jury import JuryBoard
from ..runs.progress import output_console, say
from ..runs.score import ScoreRun
from .app import choice, verb
from .ending import Exit, until_the_end, warn_of_embedded, write
from .options import (
    ControlTokensOption,
    CriterionOption,
    FormOption,
    HtmlOption,
    InputOptions,
    JsonOption,
    JudgesOptions,
    PromptFileOption,
    RecipeOption,
    RunOptions,
    StepsOption,
)

WHEN = "spread>0.2 or unrated"
PROBE = 0.1


@dataclass(frozen=True)
class Bars:
    """What the scores must reach; where they do not, the exit code is 1."""

    at_least: Annotated[float | None, typer.Option(help="A bar for the mean of each criterion.")] = None
    each_at_least: Annotated[float | None, typer.Option(help="A bar for each single score.")] = None

    def missed(self, summaries: Mapping[str, report.Summary], under: Mapping[str, int]) -> Iterator[str]:
        """What keeps a run from being good, in words; `under` counts the scores below the bar for single ones.

        Both are by the criterion's key.
        """
        for key, each in summaries.items():
            if self.at_least is not None and each.mean is not None and each.mean < self.at_least:
                yield f"{each.criterion}: the mean of {each.n}, {each.mean:.3f}, is under --at-least {self.at_least:g}"
            if self.each_at_least is not None and under[key]:
                below = f"{under[key]} of {each.n} scores are under"
                yield f"{each.criterion}: {below} --each-at-least {self.each_at_least:g}"


@verb("score")
def score(
    input: Annotated[
        str, typer.Argument(help="JSON Lines, JSON list, CSV, TSV, Parquet; hf:OWNER/NAME:SPLIT; - for standard input.")
    ],
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
    per_request: Annotated[
        int | None, typer.Option(min=1, help="Samples that share a request, each rated on a line of its own.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each is rated then, in other company every time.")
    ] = None,
    cut_at: Annotated[int | None, typer.Option(min=1, help="Characters of a conversation that are shown.")] = None,
    together: Annotated[
        bool, typer.Option("--together", help="By a rubric: ask about all items in one request.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Let the judge give its reasons.")] = False,
    prompt_file: PromptFileOption = None,
    control_tokens: ControlTokensOption = "inert",
    examples: Annotated[
        Path | None,
        typer.Option(help="People's labels, some of which the judge is shown as examples."),
    ] = None,
    shots: Annotated[int, typer.Option(min=1, help="How many examples are shown.")] = 4,
    escalate: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A dearer judge, asked where --model is unsure.")
    ] = None,
    when: Annotated[
        str, typer.Option(help="Unsure: spread>X, std_error>X, coverage<X (shares of 1), unrated; joined by or.")
    ] = WHEN,
    probe: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the others that both judges rate, to know what that costs.")
    ] = PROBE,
    labels: Annotated[Path | None, typer.Option(help="People's labels, by which several judges are weighted.")] = None,
    *,
    asking: JudgesOptions,
    running: RunOptions,
    reading: InputOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the run would ask for and cost; ask nothing.")
    ] = False,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    bars: Bars,
) -> None:
    """Rate the outputs in INPUT; with several --model, by a jury; with --escalate, by a cheap judge and a dear one.

    Exit code: 0 all were rated, 1 some were not, or missed a bar, and the last line says which, 2 bad usage or input,
    130 interrupted. What was done is kept: the same command with the same --output goes on from there.
    """
    others = [escalate] if escalate else []
    judges = (replace(asking, batch=False) if dry_run else asking).jury(others, running.output)  # shows both prices

    def rated_by(name: str | Criterion, judge: LiteLLMJudge, shown: Shots | None = None) -> GEval:
        return GEval(
            name, judge, recipe=recipe, scale=scale, form=form, steps=steps, n=n, temperature=temperature,
            readout=readout, cut_at=cut_at, adaptive=target_error if adaptive else None, off_grid=off_grid,
            explain=explain, prompt_file=prompt_file, examples=shown, control_tokens=control_tokens, together=together,
            per_request=per_request, rounds=rounds,
        )  # fmt: skip

    gevals = [rated_by(name, judge) for judge in judges for name in dict.fromkeys(criterion)]
    wanted = list({each.criterion.key: each.criterion for each in gevals}.values())
    data = reading.read(input, wanted)
    if examples:
        from ..labels.examples import read_shots

        shown = [(each, read_shots(examples, each, data.judged(each), shots)) for each in wanted]
        gevals = [rated_by(each, judge, drawn) for judge in judges for each, drawn in shown]
    if dry_run:
        named = {judge.name: judge for judge in judges}
        _show_estimates(
            [estimate(each, named[each.judge.name], data.judged(each.criterion)) for each in gevals], as_json
        )
        return
    if data.images:
        for geval in gevals:
            geval.way.check_sight(data.judged(geval.criterion))
    for judge in judges:
        warn_of_embedded(judge)
    if labels and (escalate or len(judges) == 1):
        raise InputError("--labels weights the judges of a jury; name several with --model")
    if not escalate and (when, probe) != (WHEN, PROBE):
        raise InputError("--when and --probe are of a cascade; name its dearer judge with --escalate")
    board: Board | None = JuryBoard(gevals, data, labels) if len(judges) > 1 else None
    if escalate:
        if len(judges) != 2:
            raise InputError("--escalate takes one --model, another one than itself")
        from ..jury import When

        board = CascadeBoard(gevals, data, When.parse(when), probe)
    engine = running.open()
    with engine.log(running.output, running.resume) if running.output else nullcontext() as log:
        under = Counter[str]()
        kept: list[tuple[Asked, Mapping[str, Any]]] = []

        def watch(who: Asked, row: Mapping[str, Any]) -> None:
            judge, key = who
            if board and judge:  # what counts is what the judges come to
                return
            if bars.each_at_least is not None and row["score"] is not None and row["score"] < bars.each_at_least:
                under[key] += 1
            if html:
                kept.append((who, row))

        run = ScoreRun(gevals, data, log, running.max_failures, as_json, engine.rate, watch, board)

        def show() -> None:
            run.show()
            if html and kept:
                criteria = [replace(each, name=run.results[each.key].criterion) for each in wanted]
                summaries = {each.criterion: each for each in run.results.values()}
                texts = {
                    (run.results[each.key].criterion, part.id): part.source
                    for each in wanted
                    for part in data.judged(each)
                    if part.source is not None
                }
                title = f"{Path(input).name}, rated by {', '.join(judge.name for judge in judges)}"
                more = board.sections() if board else []
                write(html, report.score_page(title, criteria, summaries, run.in_order(kept), texts, more))

        ended = until_the_end(run.rate(), show)
    missed = [*run.missed(), *bars.missed(run.results, under)] if ended == Exit.DONE else []
    for each in missed:
        say(each, "red")
    raise typer.Exit(Exit.UNRATED if missed else ended)


def _show_estimates(estimates: list[Estimate], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in estimates], indent=2))
        return
    console = output_console()
    console.print(estimates_table(estimates, console))
