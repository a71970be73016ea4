"""The command line: one verb per job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..runs.breaker import Breaker
from ..runs.log import Log, RunLog
from ..runs.rank import Rank, rank_here
from ..runs.score import Rate, rate_here

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


def one_of(allowed: Iterable[str]) -> Callable[[str | None], str | None]:
    """A check that an option's value is one of those allowed."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(allowed)}")
        return value

    return check


EngineOption = Annotated[str, typer.Option(help="What asks the judge: local, or ray.", callback=one_of(ENGINES))]
AddressOption = Annotated[str | None, typer.Option(help="A Ray cluster; the default is one on this machine.")]


def engine_of(name: str, address: str | None) -> tuple[Rate, Rank, Callable[[Path, bool], AbstractContextManager[Log]]]:
    """What rates, what ranks, and what keeps the ratings."""
    if name == "local":
        if address:
            raise InputError("--address is that of a Ray cluster: it needs --engine ray")
        return rate_here, rank_here, RunLog
    from ray_geval import engine

    engine.connect(address)
    return engine.rate, engine.rank, engine.RatingsFolder
