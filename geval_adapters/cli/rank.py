"""`geval rank`: rank candidates by comparing them pairwise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..criteria import find_criterion
from ..errors import InputError
from ..judge.sampling import READOUTS, Readout
from ..judged import SEVERAL
from ..prompts import KINDS, Kind
from ..runs.log import RunLog
from ..runs.progress import output_console, say_faults
from ..runs.rank import RankRun
from .app import choice, verb
from .ending import Exit, until_the_end, warn_of_embedded, write
from .options import ControlTokensOption, HtmlOption, InputOptions, JsonOption, JudgeOptions, RunOptions

if TYPE_CHECKING:
    from ..ranking.documents import Ranked


def methods() -> Iterable[str]:
    """How comparisons can become scores."""
    from ..ranking import METHODS

    return METHODS


def schemes() -> Iterable[str]:
    """Which pairs can be chosen."""
    from ..ranking.selection import SCHEMES

    return (*SCHEMES, "active")


@verb("rank")
def rank(
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="What the candidates are compared by.")],
    input: Annotated[str | None, typer.Argument(help="Candidates; those of equal doc_id are compared.")] = None,
    replies: Annotated[Path | None, typer.Option(help="Rank from stored replies instead; no model is asked.")] = None,
    select: Annotated[str, choice(of=schemes, help="Which pairs are compared.")] = "symmetric",
    budget: Annotated[int | None, typer.Option(min=1, help="Calls per document at most.")] = None,
    method: Annotated[str, choice(of=methods, help="How comparisons become scores.")] = "bradley-terry",
    kind: Annotated[Kind, choice(of=KINDS, help="The prompt.")] = "instructed",
    ties: Annotated[bool, typer.Option("--ties", help="Let the judge call a tie.")] = False,
    control_tokens: ControlTokensOption = "inert",
    n: Annotated[int | None, typer.Option(min=1, help="Replies per comparison.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    readout: Annotated[Readout, choice(of=READOUTS, help="How a verdict is read.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides what is random in the selection.")] = 0,
    *,
    asking: JudgeOptions,
    running: RunOptions,
    reading: InputOptions,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank candidates by comparing them pairwise.

    With --output each verdict is on disk as soon as it is there (with Ray: as its document is ranked), in
    NAME.verdicts.jsonl beside it, and the same command goes on from there. Exit code: 0 all comparisons were read, 1
    some were not, 2 bad usage or input, 130 interrupted.
    """
    from ..comparison import Comparer
    from ..ranking.documents import ranked, read_replies

    if (input is None) == (replies is None):
        raise InputError("give either INPUT or --replies FILE")
    chosen = find_criterion(criterion)

    def show(result: Ranked, texts: Mapping[tuple[str | None, str], str]) -> None:
        if html:
            write(html, report.ranking_page(result, texts))
        if as_json:
            typer.echo(json.dumps(result.to_dict(), indent=2))
        else:
            report.print_sections(report.ranking_sections(result), output_console())

    if replies is not None:
        result = ranked(chosen.name, method, *read_replies(str(replies)), systems=True)
        show(result, {})
        raise typer.Exit(Exit.UNRATED if result.unread else Exit.DONE)
    if chosen.judges in SEVERAL:
        raise InputError(f"criterion {chosen.name!r} judges each part of a sample: whole samples are ranked")
    judge = asking.judge(running.output)
    comparer = Comparer(
        chosen, judge, kind=kind, ties=ties, control_tokens=control_tokens, n=n, temperature=temperature,
        readout=readout,
    )  # fmt: skip
    data = reading.read(input or "", [chosen])
    warn_of_embedded(judge)
    output = running.output
    engine = running.open()
    with RunLog(_verdicts_beside(output), running.resume) if output else nullcontext() as log:
        run = RankRun(comparer, data, log, running.max_failures, engine.rank)

        def show_ranked() -> None:
            if output:
                write(output, "".join(json.dumps(row) + "\n" for row in run.rows()))
            if run.documents:
                show(run.result(method), run.texts())
            say_faults(judge)

        ended = until_the_end(run.rank(select=select, budget=budget, method=method, seed=seed), show_ranked)
    unread = any(each.p_first is None for each in run.verdicts())
    raise typer.Exit(ended or (Exit.UNRATED if unread else Exit.DONE))


def _verdicts_beside(output: Path) -> Path:
    """Where the verdicts of a ranking are kept; an output that has none beside it is somebody else's file."""
    verdicts = output.with_name(f"{output.stem}.verdicts.jsonl")
    if output.exists() and not verdicts.exists():
        raise InputError(f"{output}: exists already, and has no {verdicts.name} to go on from; name another --output")
    return verdicts
