"""`geval label`: people's labels, collected on a page in the browser."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..criteria import find_criterion
from ..errors import InputError
from ..runs.progress import say
from .app import choice, verb
from .ending import Exit
from .options import CriterionOption, InputOptions

if TYPE_CHECKING:
    from ..labels.session import Session


@verb("label")
def label(
    input: Annotated[str, typer.Argument(help="JSON Lines, JSON list, CSV, TSV or Parquet.")],
    criterion: CriterionOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="Labels as JSON lines; the same command goes on.")],
    ratings: Annotated[Path | None, typer.Option(help="Ratings of `geval score`, to choose items by.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Who labels; default: the login name.")] = None,
    n: Annotated[str, typer.Option(metavar="N|auto", help="How many items; auto: as many as --width needs.")] = "100",
    width: Annotated[
        float | None,
        typer.Option(min=0.0001, help="The interval that --n auto is after; default: a tenth of the scale's range."),
    ] = None,
    design: Annotated[str, choice(of=("random", "stratified", "active"), help="How items are drawn.")] = "random",
    pairs: Annotated[bool, typer.Option("--pairs", help="Ask which of two outputs of one source is better.")] = False,
    repeats: Annotated[float, typer.Option(min=0, max=0.5, help="Share of items that come back later, blind.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Decides which items are drawn, and their order.")] = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where the page is served; 0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    options: InputOptions = InputOptions(),  # noqa: B008
) -> None:
    """Label the outputs in INPUT on a page in the browser.

    The page is served on this machine only. Every label is on disk before the page goes on; Ctrl-C stops, and the same
    command goes on.
    """
    from ..labels.enough import PILOT, enough
    from ..labels.file import LabelFile
    from ..labels.queue import Item, Pool, scores, weights
    from ..labels.queue import pairs as pairs_of
    from ..labels.session import Plan, Session
    from .labels import ratings_of

    wanted = [find_criterion(name) for name in dict.fromkeys(criterion)]
    if rubrics := [each.name for each in wanted if each.by_items]:
        raise InputError(f"criterion {rubrics[0]!r} is a rubric, whose items the page does not show: label another one")
    if n != "auto" and (not n.isdecimal() or int(n) < 1):
        raise InputError(f"--n {n}: write a number of items, or auto")
    if design != "random" and ratings is None:
        raise InputError(f"--design {design} chooses by a judge's ratings: name them with --ratings FILE")
    samples = list(options.read(input, wanted))
    if pictured := [sample.id for sample in samples if sample.images]:
        raise InputError(
            f"{input}: sample {pictured[0]} has images, which the page does not show: leave such items out"
        )
    items = pairs_of(samples) if pairs else [Item(sample) for sample in samples]
    rated = [ratings_of(str(ratings), each.name) for each in wanted] if ratings else []
    judged = [{item.id: item.distribution for item in each.items if item.score is not None} for each in rated]
    for each, found in zip(wanted, judged, strict=False):
        if not any(sample.id in found for sample in samples):
            raise InputError(f"{ratings}: rates none of the items in {input} by {each.name}; ids must be the same")
    stratified = scores(items, judged) if design == "stratified" else None
    plan = Plan(
        wanted,
        Pool(items, weights(design, items, judged), seed, stratified),
        design,
        PILOT if n == "auto" else int(n),
        repeats,
        (lambda labels: enough(items, labels, wanted, judged, width)) if n == "auto" else None,
    )
    session = Session(LabelFile(output), plan, annotator or _login())
    if session.next is None:
        say(f"nothing is left to label for {session.annotator}; --n asks for more", "")
        raise typer.Exit(_end(session, Exit.DONE))
    try:
        asyncio.run(_serve(session, port, browser))
    except KeyboardInterrupt:
        say("stopped; what was labelled is kept, and the same command goes on")
        raise typer.Exit(_end(session, Exit.INTERRUPTED)) from None
    raise typer.Exit(_end(session, Exit.DONE))


def _login() -> str:
    try:
        import getpass

        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("who labels? name them with --annotator NAME") from None


async def _serve(session: Session, port: int, browser: bool) -> None:
    from ..labels.serve import LabelServer

    server = LabelServer(session, port)
    address = await server.start()
    typer.echo(f"label as {session.annotator} at {address} (Ctrl-C stops; what was labelled is kept)")
    if browser and (sys.platform in ("win32", "darwin") or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
        import webbrowser

        webbrowser.open(address)  # elsewhere it would be one in this terminal
    try:
        await server.finished.wait()
    finally:
        await server.stop()


def _end(session: Session, code: Exit) -> Exit:
    """Say what came of it."""
    found: dict[str, Any] = session.summary()
    parts = [f"{found['labelled']} labelled"]
    if found["skipped"]:
        why = ", ".join(f"{count} {reason}" for reason, count in found["skipped"].items())
        parts.append(f"{sum(found['skipped'].values())} skipped ({why})")
    if found["repeated"]:
        parts.append(f"{found['same']} of {found['repeated']} that came back labelled the same again")
    parts.append(f"{found['left']} left")
    say(f"{session.annotator}: {', '.join(parts)}", "")
    if session.words:
        say(session.words, "")
    return code
