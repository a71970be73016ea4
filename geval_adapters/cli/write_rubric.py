"""`geval write-rubric`: let a judge draft a rubric, for people to edit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from .. import report
from ..criteria import find_criterion
from ..errors import InputError
from ..rating.rubric_draft import as_yaml, drafted_rubric
from ..runs.progress import say
from .app import verb
from .ending import warn_of_embedded, write
from .options import InputOptions, JudgeOptions


@verb("write-rubric")
def write_rubric(
    criterion: Annotated[str, typer.Argument(help="What it is to be about: a name, a YAML file, or free text.")],
    input: Annotated[str, typer.Argument(help="Samples of what is to be checked.")],
    samples: Annotated[
        int, typer.Option(min=1, help="How many of them the judge is shown, from all over the file.")
    ] = 4,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; else it is printed.")
    ] = None,
    *,
    asking: JudgeOptions,
    reading: InputOptions,
) -> None:
    """Let the judge draft a rubric for CRITERION from a few samples of INPUT: a YAML file for people to edit.

    Nothing is written where its reply holds no rubric that can be used.
    """
    if output and output.suffix not in (".yaml", ".yml"):
        raise InputError(f"{output}: call it *.yaml, so that it can be named as a criterion")
    if output and output.exists():
        raise InputError(f"{output}: exists already; name another --output")
    chosen = find_criterion(criterion)
    judge = asking.judge(output)
    warn_of_embedded(judge)
    parts = list(reading.read(input, [chosen]).judged(chosen))
    shown = parts[:: max(1, len(parts) // samples)][:samples]
    draft = asyncio.run(drafted_rubric(judge, chosen, shown))
    told = f"A draft by {judge.name} to be edited, from {chosen.name} and {len(shown)} samples of {Path(input).name}."
    meaning = "Each item is true of an output or not, and its points count where it is: negative ones for faults."
    text = as_yaml(draft, [told, meaning])
    if output:
        write(output, text)
        say(f"{output}: {len(draft.rubric or ())} items; read and change them, then: geval score ... -c {output}")
    else:
        typer.echo(report.plain_lines(text), nl=False)
