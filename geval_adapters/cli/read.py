"""`geval read`: the ratings in stored replies, for people who have replies and no model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from .. import report
from ..criteria import FORMS, OFF_GRID, Criterion, Form, OffGrid, Scale, find_criterion
from ..errors import InputError
from ..reading.text import read_text
from ..rows import read_rows
from ..runs.progress import output_console, say
from .app import choice, verb
from .ending import Exit, write
from .options import JsonOption

REPLIES = ("all_responses", "reply", "response")
SHOWN = ("source", "context", "fact", "system_output", "output")


@verb("read")
def read(
    input: Annotated[str, typer.Argument(help="Rows with reply, response or all_responses; JSON Lines, CSV, Parquet.")],
    form: Annotated[Form, choice(of=FORMS, help="How the judge was asked to answer.")] = "rate_explain",
    scale: Annotated[str | None, typer.Option(help="The scale, as in 1-5, where it is not the criterion's.")] = None,
    criterion: Annotated[str | None, typer.Option("--criterion", "-c", help="Which criterion they are about.")] = None,
    off_grid: Annotated[OffGrid, choice(of=OFF_GRID, help="A value between two steps.")] = "keep",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Each reply's score as JSON lines.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Read the ratings in stored replies; say which were not read, why, and whether that is chance.

    Where rows name a document, a system or people's score (doc_id, system_id, human or scores), the unread share is
    shown by each. Exit code: 0 all were read, 1 some were not, 2 bad usage or input.
    """
    from ..agreement.unread import Unread

    if criterion is None and scale is None:
        raise InputError("which scale? give --scale 1-5, or --criterion with its own")
    chosen = find_criterion(criterion, scale) if criterion else None
    on = chosen.scale if chosen else Scale.of(scale or "")
    unread, rows = Unread(), []
    for item in read_rows(input, _item):
        scores = []
        for reply in item["replies"]:
            reading = read_text(reply, on, form, chosen, off_grid=off_grid, shown=item["shown"])
            rows.append({"id": item["id"], "score": reading.score, "reason": reading.error, "reply": reply})
            scores.append(reading.score)
        human = _human(item["row"], chosen)
        unread.add(None in scores, _text(item["row"], "doc_id"), _text(item["row"], "system_id"), human)
    if output:
        write(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    missed = [row for row in rows if row["score"] is None]
    read_as = [float(row["score"]) for row in rows if row["score"] is not None]
    gaps = unread.gaps()
    if as_json:
        said = {
            "replies": len(rows), "unread": len(missed), "mean": fmean(read_as) if read_as else None,
            "gaps": [
                {
                    "axis": gap.axis, "p": gap.p, "p_holm": gap.p_holm, "selective": gap.selective,
                    "groups": [{"group": group, "unread": bad, "items": n} for group, (bad, n) in gap.groups.items()],
                }
                for gap in gaps
            ],
            "unread_replies": missed,
        }  # fmt: skip
        typer.echo(json.dumps(said, indent=2))
    else:
        mean = f"; their mean is {fmean(read_as):.3f}" if read_as else ""
        share = f" ({100 * len(missed) / len(rows):.2f} %)" if rows else ""
        console = output_console()
        console.print(f"{len(read_as):,} of {len(rows):,} replies were read{mean}; {len(missed):,} were not{share}")
        report.print_sections(report.unread_sections(unread, gaps), console)
    for line in report.unread_lines(missed):
        say(line, "red")
    for warning in report.warnings_of(gaps):
        say(f"warning: {warning}", "bold red")
    if missed:
        say(f"{len(missed):,} of {len(rows):,} replies were not read", "red")
        raise typer.Exit(Exit.UNRATED)


def _item(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    key = next((name for name in REPLIES if row.get(name) is not None), None)
    if key is None:
        raise InputError(f"has none of {', '.join(REPLIES)}")
    replies = row[key] if isinstance(row[key], list) else [row[key]]
    if not all(isinstance(reply, str) for reply in replies):
        raise InputError(f"{key} is to be text, or a list of texts")
    place = [str(row[name]) for name in ("doc_id", "system_id") if row.get(name) is not None]
    identity = row.get("id", "/".join(place) if len(place) > 1 else f"row {number}")
    return {"id": str(identity), "replies": replies, "shown": tuple(_shown(row)), "row": row}


def _shown(row: Mapping[str, Any]) -> Iterator[str]:
    for name in SHOWN:
        if isinstance(row.get(name), str) and row[name]:
            yield row[name]


def _text(row: Mapping[str, Any], name: str) -> str | None:
    return None if row.get(name) is None else str(row[name])


def _human(row: Mapping[str, Any], criterion: Criterion | None) -> float | None:
    """People's score: `human`, or that of the criterion among `scores`."""
    given = row.get("human")
    if given is None and criterion and isinstance(row.get("scores"), Mapping):
        given = row["scores"].get(criterion.short_name)
    return float(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else None
