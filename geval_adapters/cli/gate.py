"""`geval gate`: pass, fail or undecided, for continuous integration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .. import report
from ..errors import InputError
from ..runs.progress import output_console
from .app import verb
from .ending import Exit, write
from .options import FieldOption, JsonOption


@verb("gate")
def gate(
    ratings: Annotated[str, typer.Argument(help="Ratings of `geval score`.")],
    criterion: Annotated[str, typer.Option("--criterion", "-c", help="By which criterion.")],
    labels: Annotated[
        str | None, typer.Option(help="Labels of `geval label`, or others; default: scores that came with the samples.")
    ] = None,
    at_least: Annotated[float | None, typer.Option(help="People's mean must be at least this.")] = None,
    share_at_least: Annotated[
        str | None, typer.Option(metavar="SCORE:SHARE", help="At least this share of items at or above a score.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Ratings of the same items before the change.")] = None,
    margin: Annotated[float, typer.Option(min=0, help="How much lower than the baseline the mean may be.")] = 0.0,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Take the judge's word.")] = False,
    max_unrated: Annotated[float, typer.Option(min=0, max=1, help="Share of items that may lack a rating.")] = 0.05,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write a summary for a pull request.")] = None,
    field: FieldOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Hold what people would say against a bar: the whole 95 % interval must reach it.

    Exit code: 0 passed, 1 failed, 2 bad usage or input, 3 undecided (the interval holds the bar: more labels or more
    items would tell).
    """
    from ..labels.gate import gate as made
    from ..labels.joined import join
    from .labels import columns_of, ratings_of

    columns = columns_of(field)
    own = ratings_of(ratings, criterion)
    (data,) = join([own], labels, columns)
    before = None
    if baseline is not None:
        (before,) = join([ratings_of(baseline, criterion)], labels, columns, newer=data)
    found = made(
        data,
        at_least=at_least,
        share=_share(share_at_least),
        baseline=before,
        margin=margin,
        unlabelled=unlabelled,
        max_unrated=max_unrated,
    )
    if junit:
        write(junit, report.gate_junit(found))
    if markdown:
        write(markdown, report.gate_markdown(found))
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        report.print_sections(report.gate_sections(found), output_console())
        typer.echo(report.gate_line(found))
    codes = {"pass": Exit.DONE, "fail": Exit.UNRATED, "undecided": Exit.UNDECIDED}
    raise typer.Exit(codes[found.verdict])


def _share(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    score, _, share = text.partition(":")
    try:
        parsed = float(score), float(share)
    except ValueError:
        raise InputError(f"--share-at-least {text}: expected SCORE:SHARE, such as 4:0.9") from None
    if not 0 <= parsed[1] <= 1:
        raise InputError(f"--share-at-least {text}: a share lies between 0 and 1")
    return parsed
