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
    from ..labels.alike import served_note
    from ..labels.joined import counterparts, read_ratings

    runs = [read_ratings(path) for path in (old, new)]
    shared = counterparts(*runs)
    if not shared:
        held = [", ".join(each.criterion for each in run) for run in runs]
        raise InputError(f"{old} holds ratings of {held[0]}, {new} of {held[1]}: nothing to compare")
    notes = [note for pair in shared for note in _unlike(*pair)]
    if notes and not any_signature:
        raise InputError(
            f"{old} and {new} were not made alike: {'; '.join(notes)}. --any-signature compares them nevertheless"
        )
    notes += [note for before, after in shared for note in served_note({old: before, new: after})]
    compared = [changes(before.criterion, before.items, after.items) for before, after in shared]
    if not any(each.changes for each in compared):
        raise InputError(f"{old} and {new}: no item has a score in both")
    texts: dict[tuple[str, str], tuple[str, str]] = {}
    for before, after in shared:
        now = {item.id: item.output for item in after.items}
        outputs = {item.id: (item.output, now[item.id]) for item in before.items if item.id in now}
        texts |= {(before.criterion, name): both for name, both in outputs.items()}
    names = (Path(old).name, Path(new).name)
    if html:
        made = dict.fromkeys(each for run in (0, 1) for pair in shared for each in pair[run].signatures)
        write(html, report.changes_page(compared, texts, names, [*notes, *made]))
    if as_json:
        typer.echo(json.dumps({"notes": notes, "criteria": [each.to_dict() for each in compared]}, indent=2))
        return
    report.print_sections(report.changes_sections(compared, texts, names), output_console())
    for note in notes:
        say(note)


def _unlike(old: Joined, new: Joined) -> Iterator[str]:
    """How the ratings of two runs were made differently, in words."""
    here, there = _signatures(new), _signatures(old)
    if here and there and not set(map(str, here)) & set(map(str, there)):
        yield f"{old.criterion}: {', '.join(there[0].differences(here[0]))}"


def _signatures(run: Joined) -> Sequence[Signature]:
    return [Signature.parse(each) for each in run.signatures]
