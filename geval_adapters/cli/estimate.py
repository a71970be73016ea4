"""`geval estimate`: what people would say of all items, from a judge's ratings and some labels."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .. import report
from ..runs.progress import output_console
from .app import choice, verb
from .ending import write
from .options import FieldOption, HtmlOption, JsonOption

METHODS = ("auto", "ppi", "calibrated", "labels")


@verb("estimate")
def estimate(
    ratings: Annotated[str, typer.Argument(help="Ratings of `geval score`.")],
    labels: Annotated[
        str | None, typer.Option(help="Labels of `geval label`, or others; default: scores that came with the samples.")
    ] = None,
    criterion: Annotated[str | None, typer.Option("--criterion", "-c", help="Only this one; default all.")] = None,
    by: Annotated[str | None, choice(of=("system",), help="Estimate each system.")] = None,
    against: Annotated[str | None, typer.Option(help="Compare each system with this one.")] = None,
    share_at_least: Annotated[
        float | None, typer.Option(help="Also the share of items at or above this score.")
    ] = None,
    intervals: Annotated[bool, typer.Option("--intervals", help="Also an interval for each single item.")] = False,
    level: Annotated[float, typer.Option(min=0.5, max=0.99, help="How often those are to hold.")] = 0.9,
    method: Annotated[str, choice(of=METHODS, help="How the judge is corrected.")] = "auto",
    field: FieldOption = [],  # noqa: B006
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate what people would say of all items: the judge's mean, put right by people's labels of some.

    Means and differences come with 95 % intervals that hold whatever the judge gets wrong, or without and with the
    reason. --html also shows the items on which judge and people differ most.
    """
    from ..labels.estimate import estimate as made
    from ..labels.joined import join, read_ratings
    from .labels import columns_of, ratings_of, scale_of

    wanted = read_ratings(ratings) if criterion is None else [ratings_of(ratings, criterion)]
    found = [
        made(
            data,
            by=by is not None,
            against=against,
            threshold=share_at_least,
            scale=scale_of(data) if intervals else None,
            level=level if intervals else None,
            method=method,
        )
        for data in join(wanted, labels, columns_of(field))
    ]
    if html:
        write(html, report.estimate_page(found))
    if as_json:
        typer.echo(json.dumps({"criteria": [each.to_dict() for each in found]}, indent=2))
        return
    for each in found:
        report.print_sections(report.estimate_sections(each), output_console())
