"""`geval meta-eval`: how well judges agree with people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..criteria import FORMS, OFF_GRID, Criterion, Form, OffGrid, find_criterion
from ..errors import InputError, one_of
from ..runs.progress import output_console
from .app import choice, verb
from .ending import write
from .options import HtmlOption, JsonOption

if TYPE_CHECKING:
    from ..agreement.judged import JudgedFile


@verb("meta-eval")
def meta_eval(
    files: Annotated[
        list[str],
        typer.Argument(help="Ratings of `geval score`, or raw replies in the G-Eval format; FILE:form=FORM."),
    ],
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="Which criterion the files are about.")],
    baseline: Annotated[str | None, typer.Option(help="A file that each judge is tested against.")] = None,
    form: Annotated[
        Form | None, choice(of=FORMS, help="Form of raw replies that do not say it, by FILE:form= or a column.")
    ] = None,
    off_grid: Annotated[OffGrid, choice(of=OFF_GRID, help="A value between two steps.")] = "keep",
    average: Annotated[bool, typer.Option("--average", help="Add the files' mean score as a judge.")] = False,
    level: Annotated[list[str], choice(of=report.LEVELS, help="Default: all.")] = list(report.LEVELS),  # noqa: B006
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples of the documents.")] = 1000,
    seed: Annotated[int, typer.Option()] = 0,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well judges agree with people.

    Several files are several judges of the same items, matched by id; so are the judges that stand in one file.
    """
    from ..agreement.judged import average as mean_of
    from ..agreement.meta_eval import evaluate

    chosen = find_criterion(criterion)
    judged = [one for each in dict.fromkeys(files) if each != baseline for one in _judged(each, chosen, form, off_grid)]
    against = _judged(baseline, chosen, form, off_grid) if baseline else None
    if against and len(against) > 1:
        raise InputError(f"--baseline {baseline}: holds ratings of {len(against)} judges, and a baseline is one")
    if average and judged:
        judged.append(mean_of(judged))
    result = evaluate(chosen, judged, against[0] if against else None, resamples=resamples, seed=seed)
    if html:
        write(html, report.agreement_page(result, level))
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        report.print_sections(report.agreement_sections(result, level), output_console())


def _judged(spec: str, criterion: Criterion, form: Form | None, off_grid: OffGrid) -> list[JudgedFile]:
    """What each judge said, from FILE or FILE:form=FORM."""
    from ..agreement.judged import read_judges

    path, named, own = spec.rpartition(":form=")
    if not named:
        return read_judges(spec, criterion, form, off_grid)
    return read_judges(path, criterion, one_of("form", own, FORMS, f"{spec}: "), off_grid)
