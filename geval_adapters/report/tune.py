"""What tuning came to: a sentence, every candidate, and the command to go on with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .page import html_page
from .sections import Section, number, shown
from .summary import dollars

if TYPE_CHECKING:
    from ..tune import Candidate, Trial, Tuned


def tuned_page(found: Tuned, command: str) -> str:
    """The same to look at."""
    from . import plots

    several = len({each.candidate.model for each in found.trials}) > 1
    names = [_name(each.candidate) if several else each.candidate.name for each in found.trials]
    drawn = [(name, each.r, None, None) for name, each in zip(names, found.trials, strict=True) if each.r is not None]
    ends = [value for _, value, *_ in drawn]
    picture = plots.intervals(drawn, "r with people while choosing", span=plots.padded(ends)) if drawn else ""
    title = f"Ways of rating {found.criterion}, tried against people"
    return html_page(title, tuned_sections(found, command), answer=[tuned_line(found)], picture=picture)


def tuned_line(found: Tuned) -> str:
    """The answer in a sentence."""
    if found.winner is None:
        return f"Stopped before a way of rating was left: {found.stopped}."
    if found.winner == found.default:
        return f"Nothing was better than the default: of {len(found.trials)} ways it was the one left."
    name = _name(found.winner)
    if found.gain is None:
        return f"{name} was left, but not held against the default: {found.stopped}."
    if found.gain.value is None:
        return f"Nothing was shown to be better than the default: {found.gain.why_not}."
    told = f"{name}: r {shown(found.gain)} above the default's on {found.held_out} documents held out"
    if found.better:
        return f"Better than the default: {told} (p {found.p:.2g})."
    return f"Nothing was shown to be better than the default. The best was {told}, which may be chance."


def _name(candidate: Candidate) -> str:
    return f"{candidate.name}, {candidate.model}" if candidate.model else candidate.name


def tuned_sections(found: Tuned, command: str) -> Iterator[Section]:
    """The tables of terminal and page."""
    if found.winner_r and found.default_r:
        pair = ((found.winner or found.default, found.winner_r), (found.default, found.default_r))
        rows = [[_name(each), shown(figure)] for each, figure in pair]
        yield Section(
            "r with people on documents held out", ("way", "r"), rows, [f"{found.held_out} documents, one comparison"]
        )
    heads = ("way", "model", "rounds", "items", "failed", "r", "requests", "tokens", "cost")
    notes = [
        "requests, tokens and cost: for 1,000 items, had nobody else asked the same",
        "r: on the items of the choice, where who looks best was partly lucky",
        f"{found.requests:,} requests were sent; {found.items:,} labelled items, {found.documents} documents",
    ]
    if found.stopped:
        notes.append(f"ended early: {found.stopped}")
    notes += [f"{_name(each.candidate)} could not go on, and is out: {each.down}" for each in found.trials if each.down]
    yield Section(f"ways of rating {found.criterion}", heads, [_row(each) for each in found.trials], notes)
    yield Section("to go on with", notes=[tuned_line(found)], code=command)


def _row(trial: Trial) -> list[str]:
    taken = trial.per_1000()
    cost = taken["cost"]
    return [
        trial.candidate.name,
        "all" if trial.candidate.members else trial.candidate.model or "",
        str(trial.rounds),
        str(trial.items),
        str(trial.failed),
        number(trial.r),
        f"{taken['requests']:,.0f}" if trial.items else "-",
        f"{taken['tokens']:,.0f}" if trial.items else "-",
        dollars(cost) if trial.items else "-",
    ]
