"""`geval audit`: how biased and how inconsistent a judge is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..criteria import FORMS, Form, find_criterion
from ..errors import InputError
from ..runs.log import RunLog
from ..runs.progress import output_console, progress, say, say_faults
from .app import choice, verb
from .ending import until_the_end, warn_of_embedded, write
from .options import CriterionOption, HtmlOption, InputOptions, JsonOption, JudgeOptions, ResumeOption

if TYPE_CHECKING:
    from ..audit.results import Audit


def names_of_checks() -> Iterable[str]:
    """All checks."""
    from ..audit import CHECKS

    return CHECKS


@verb("audit")
def audit_judge(
    criterion: CriterionOption,
    input: Annotated[
        str | None, typer.Argument(help="Samples, best with doc_id, system_id and people's scores.")
    ] = None,
    ratings: Annotated[
        str | None, typer.Option(help="Audit ratings or raw replies that are there; nobody is asked.")
    ] = None,
    checks: Annotated[
        str | None, choice(of=names_of_checks, commas=True, help="Which checks, with commas between; default all.")
    ] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Calls at most; 400 for each criterion.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A log of answers, from which a run resumes.")
    ] = None,
    html: HtmlOption = None,
    resume: ResumeOption = True,
    seed: Annotated[int, typer.Option(help="Decides which samples are drawn.")] = 0,
    form: Annotated[Form, choice(of=FORMS, help="Form of raw replies.")] = "rate_explain",
    *,
    asking: JudgeOptions,
    reading: InputOptions,
    as_json: JsonOption = False,
) -> None:
    """Measure how biased and how inconsistent a judge is, on your samples.

    Exit code: 0 all checks were made or said why not, 2 bad usage or input, 130 interrupted. What was asked is kept:
    the same command with the same --output goes on from there.
    """
    from ..agreement.meta_eval import read_judged
    from ..audit.checks import CHECKS, STORED
    from ..audit.run import BUDGET, audit, audit_ratings, known_checks

    if (input is None) == (ratings is None):
        raise InputError("give either INPUT or --ratings FILE")
    chosen = {spec: find_criterion(spec) for spec in criterion}
    allowed = list(CHECKS if ratings is None else STORED)
    names = known_checks([name.strip() for name in checks.split(",")] if checks else allowed, allowed)

    def show(result: Audit) -> None:
        if html:
            write(html, report.audit_page(result))
        if as_json:
            typer.echo(json.dumps(result.to_dict(), indent=2))
        else:
            report.print_sections(report.audit_sections(result), output_console())

    if ratings is not None:
        if len(chosen) > 1:
            raise InputError("--ratings takes one --criterion at a time")
        only = next(iter(chosen.values()))
        show(asyncio.run(audit_ratings(read_judged(ratings, only, form), only, names)))
        return
    if asking.cache:
        raise InputError("--cache: an audit asks the same twice on purpose, and must be answered anew each time")
    judge = asking.judge()
    data = reading.read(input or "", list(chosen.values()))
    warn_of_embedded(judge)
    calls = budget or BUDGET * len(chosen)
    done: list[Audit] = []

    async def ask() -> None:
        made = await audit(
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
        ended = until_the_end(ask(), show_done)
    raise typer.Exit(ended)
