"""`geval meta-eval`: how well judges agree with people."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .. import report
from ..criteria import OFF_GRID, find_criterion
from ..errors import InputError
from ..reading.distribution import FORMS
from ..runs.progress import output_console
from .app import choice, verb
from .ending import write
from .options import HtmlOption, JsonOption


@verb("meta-eval")
def meta_eval(
    files: Annotated[list[str], typer.Argument(help="Ratings of `geval score`, or raw replies in the G-Eval format.")],
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="Which criterion the files are about.")],
    baseline: Annotated[str | None, typer.Option(help="A file that each judge is tested against.")] = None,
    form: Annotated[list[str] | None, choice(of=FORMS, help="Form of raw replies: one, or one per file.")] = None,
    off_grid: Annotated[str, choice(of=OFF_GRID, help="A value between two steps.")] = "keep",
    average: Annotated[bool, typer.Option("--average", help="Add the files' mean score as a judge.")] = False,
    level: Annotated[list[str], choice(of=report.LEVELS, help="Default: all.")] = list(report.LEVELS),  # noqa: B006
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples of the documents.")] = 1000,
    seed: Annotated[int, typer.Option()] = 0,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well judges agree with people.

    Several files are several judges of the same items, matched by id.
    """
    from ..agreement.meta_eval import average as mean_of
    from ..agreement.meta_eval import evaluate, read_judged

    paths = [*files, *([baseline] if baseline else [])]
    form = form or ["rate_explain"]
    if len(form) not in (1, len(paths)):
        raise InputError(f"{len(form)} forms for {len(paths)} files: give one, or one per file, the baseline's last")
    chosen = find_criterion(criterion)
    forms = form * len(paths) if len(form) == 1 else form
    judged = [read_judged(path, chosen, own, off_grid) for path, own in zip(paths, forms, strict=True)]
    against = judged.pop() if baseline else None
    if average:
        judged.append(mean_of(judged))
    result = evaluate(chosen, judged, against, resamples=resamples, seed=seed)
    if html:
        title = f"Agreement with people: {chosen.name}"
        sections = [*report.agreement_plots(result), *report.agreement_sections(result, level)]
        write(html, report.page(title, sections))
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        report.print_sections(report.agreement_sections(result, level), output_console())
