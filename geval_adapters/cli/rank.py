"""The command line: one verb per job."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..criteria import find_criterion
from ..errors import InputError
from ..judge.client import LiteLLMJudge
from ..judge.sampling import READOUTS
from ..runs.input import Input
from ..runs.log import RunLog
from ..runs.progress import output_console, say_faults
from ..runs.rank import RankRun
from .app import app
from .ending import until_the_end, warn_of_embedded, write
from .options import (
    AddressOption,
    ConcurrencyOption,
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

if TYPE_CHECKING:
    from ..ranking.documents import Ranked


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
    readout: Annotated[str, typer.Option(callback=one_of(READOUTS))] = "auto",
    seed: Annotated[int, typer.Option(help="Decides what is random in the selection.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Ranked rows as JSON lines; the verdicts go beside it.")
    ] = None,
    resume: ResumeOption = True,
    engine: EngineOption = "local",
    address: AddressOption = None,
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

    With --output each verdict is on disk as soon as it is there (with Ray: as its document is ranked), in
    NAME.verdicts.jsonl beside it, and the same command goes on from there. Exit code: 0 all comparisons were read, 1
    some were not, 2 bad usage or input, 130 interrupted.
    """
    from .. import ranking
    from ..comparison import Comparer
    from ..ranking.documents import ranked, read_replies

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
        result = ranked(chosen.name, method, *read_replies(str(replies)), systems=True)
        show(result)
        raise typer.Exit(bool(result.unread))
    judge = LiteLLMJudge(
        model, concurrency=concurrency, timeout=timeout, rpm=rpm, tpm=tpm, max_requests=max_requests,
        max_cost=max_cost, router=router,
    )  # fmt: skip
    comparer = Comparer(chosen, judge, kind=kind, ties=ties, n=n, temperature=temperature, readout=readout)
    data = Input(input or "", field, [chosen], limit, False)
    warn_of_embedded(judge)
    _, rank_with, _ = engine_of(engine, address)
    with RunLog(_verdicts_beside(output), resume) if output else nullcontext() as log:
        run = RankRun(comparer, data, log, max_failures, rank_with)

        def show_ranked() -> None:
            if output:
                write(output, "".join(json.dumps(row) + "\n" for row in run.rows()))
            if run.documents:
                show(run.result(method))
            say_faults(judge)

        ended = until_the_end(run.rank(select=select, budget=budget, method=method, seed=seed), show_ranked)
    raise typer.Exit(ended or any(each.p_first is None for each in run.verdicts()))


def _verdicts_beside(output: Path) -> Path:
    """Where the verdicts of a ranking are kept; an output that has none beside it is somebody else's file."""
    verdicts = output.with_name(f"{output.stem}.verdicts.jsonl")
    if output.exists() and not verdicts.exists():
        raise InputError(f"{output}: exists already, and has no {verdicts.name} to go on from; name another --output")
    return verdicts
