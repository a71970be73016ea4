"""`geval compare`: what changed between two runs on the same items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import report
from ..errors import InputError
from ..runs.progress import output_console, say
from ..signature import Signature
from .app import verb
from .ending import write
from .options import HtmlOption, JsonOption

if TYPE_CHECKING:
    from ..labels.joined import Joined


@verb("compare")
def compare(
    old: Annotated[str, typer.Argument(help="Ratings of `geval score`.")],
    new: Annotated[str, typer.Argument(help="Ratings of the same items.")],
    any_signature: Annotated[
        bool, typer.Option("--any-signature", help="Compare ratings that were not made alike, too.")
    ] = False,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs on the same items: the paired difference with its interval, and the items that changed most.

    Items are matched by id. Ratings with differing signatures are refused: a difference could be the judge's own.
    """
    from ..agreement.changes import changes
    from ..labels.joined import read_ratings

    before, after = ({each.criterion: each for each in read_ratings(path)} for path in (old, new))
    shared = [name for name in before if name in after]
    if not shared:
        raise InputError(f"{old} holds ratings of {', '.join(before)}, {new} of {', '.join(after)}: nothing to compare")
    notes = [note for name in shared for note in _unlike(before[name], after[name])]
    if notes and not any_signature:
        raise InputError(
            f"{old} and {new} were not made alike: {'; '.join(notes)}. --any-signature compares them nevertheless"
        )
    found = [changes(name, before[name].items, after[name].items) for name in shared]
    if not any(each.changes for each in found):
        raise InputError(f"{old} and {new}: no item has a score in both")
    texts: dict[tuple[str, str], tuple[str, str]] = {}
    for name in shared:
        now = {item.id: item.output for item in after[name].items}
        texts |= {(name, item.id): (item.output, now[item.id]) for item in before[name].items if item.id in now}
    names = (Path(old).name, Path(new).name)
    if html:
        made = dict.fromkeys(each for name in shared for run in (before, after) for each in run[name].signatures)
        write(html, report.changes_page(found, texts, names, [*notes, *made]))
    if as_json:
        typer.echo(json.dumps({"notes": notes, "criteria": [each.to_dict() for each in found]}, indent=2))
        return
    report.print_sections(report.changes_sections(found, texts, names), output_console())
    for note in notes:
        say(note)


def _unlike(old: Joined, new: Joined) -> Iterator[str]:
    """How the ratings of two runs were made differently, in words."""
    here, there = _signatures(new), _signatures(old)
    if here and there and not set(map(str, here)) & set(map(str, there)):
        yield f"{old.criterion}: {', '.join(there[0].differences(here[0]))}"


def _signatures(run: Joined) -> Sequence[Signature]:
    return [Signature.parse(each) for each in run.signatures]
