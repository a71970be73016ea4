"""`geval audit`: how biased and how inconsistent a judge is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..criteria import FORMS, Form, find_criterion
from ..errors import InputError
from ..judge.base import Usage
from ..runs.log import RunLog
from ..runs.progress import output_console, progress_bar, say, say_faults
from .app import choice, verb
from .ending import until_the_end, warn_of_embedded, write
from .options import CriterionOption, HtmlOption, InputOptions, JsonOption, JudgesOptions, ResumeOption, words_of

if TYPE_CHECKING:
    from ..audit.results import SideBySide


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
    budget: Annotated[
        int | None, typer.Option(min=1, help="Calls at most for each judge; 1,000 for each criterion.")
    ] = None,
    reliability: Annotated[
        str | None,
        typer.Option(
            metavar="R|LOW-HIGH", help="How reliable people's scores are (0 to 1), where single ones are not given."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A log of answers, from which a run resumes.")
    ] = None,
    html: HtmlOption = None,
    resume: ResumeOption = True,
    seed: Annotated[int, typer.Option(help="Decides which samples are drawn.")] = 0,
    form: Annotated[Form, choice(of=FORMS, help="Form of raw replies.")] = "rate_explain",
    *,
    asking: JudgesOptions,
    reading: InputOptions,
    as_json: JsonOption = False,
) -> None:
    """Measure how biased and how inconsistent a judge is, on your samples.

    Exit code: 0 all checks were made or said why not, 1 stopped by a limit, 2 bad usage or input, 130 interrupted. What
    was asked is kept: the same command with the same --output goes on from there.
    """
    from ..agreement.judged import read_judged
    from ..audit import CHECKS, STORED, AuditRun, Request, SideBySide, audit_ratings, known_checks, shared_errors

    if (input is None) == (ratings is None):
        raise InputError("give either INPUT or --ratings FILE")
    chosen = {spec: find_criterion(spec) for spec in criterion}
    allowed = list(CHECKS if ratings is None else STORED)
    names = known_checks([name.strip() for name in checks.split(",")] if checks else allowed, allowed)
    limits = _limits(reliability)
    if input is None:
        if len(chosen) > 1:
            raise InputError("--ratings takes one --criterion at a time")
        only = next(iter(chosen.values()))
        stored = audit_ratings(read_judged(str(ratings), only, form), only, names, limits)
        _show(SideBySide((stored,), ()), html, as_json)
        return
    if asking.cache:
        raise InputError("--cache: an audit asks the same twice on purpose, and must be answered anew each time")
    judges = asking.judges(output)
    # A judge behind a router has a digest for a name.
    models: list[str | None] = [*dict.fromkeys(asking.model)] or ["" if asking.router else None]
    data = reading.read(input, list(chosen.values()))
    samples = list(data)
    command = words_of(reading, asking, leaving_out=("model", "batch", "wait"))  # batches need an --output
    with RunLog(output, resume) if output else nullcontext() as log:
        requests = [
            Request(input, samples, chosen, judge, names, budget, seed, limits, model, command)
            for judge, model in zip(judges, models, strict=True)
        ]
        runs = [AuditRun(request, log) for request in requests]
        with progress_bar(sum(request.calls for request in requests), 0) as tick:

            def watch(failed: int, usage: Usage) -> None:
                tick(failed, report.cost(usage))

            async def ask() -> None:
                for judge, run in zip(judges, runs, strict=True):
                    warn_of_embedded(judge)
                    run.watch(watch)
                    await run.ask()

            def show() -> None:
                shared = [shared_errors(runs, each) for each in chosen.values()] if len(runs) > 1 else []
                _show(SideBySide(tuple(run.result() for run in runs), tuple(shared)), html, as_json)
                for note in data.notes():
                    say(note)
                for judge in judges:
                    say_faults(judge)

            ended = until_the_end(ask(), show)
    raise typer.Exit(ended)


def _show(result: SideBySide, html: Path | None, as_json: bool) -> None:
    if html:
        write(html, report.audit_page(result))
    if as_json:
        only = result.audits[0] if len(result.audits) == 1 else result
        typer.echo(json.dumps(only.to_dict(), indent=2))
    else:
        report.print_sections(report.audit_sections(result), output_console())


def _limits(text: str | None) -> tuple[float, float] | None:
    """The limits of people's reliability.

    >>> _limits("0.5-0.8"), _limits(".7")
    ((0.5, 0.8), (0.7, 0.7))
    """
    if text is None:
        return None
    match = re.fullmatch(r"([01]?\.?\d*)(?:\s*[-–]\s*([01]?\.?\d*))?", text.strip())
    try:
        least, most = (float(part) for part in (match[1], match[2] or match[1])) if match else (0.0, 0.0)
    except ValueError:
        least = most = 0.0
    if not 0 < least <= most <= 1:
        raise InputError(f"--reliability {text}: give a number above 0 and up to 1, or two with a - between")
    return least, most
