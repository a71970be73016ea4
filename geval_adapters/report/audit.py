"""An audit as sections: how biased a judge is, check by check, and how to run it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .page import page
from .sections import Card, Section
from .summary import cost
from .terminal import plain

if TYPE_CHECKING:
    from ..audit.results import Audit, Check, Statistic

# --- how biased ------------------------------------------------------------------------------------------------------

_TONES = {"ok": "good", "unclear": "open", "measured": "plain", "not measurable": "plain"}
_LEGEND = (
    "A verdict counts against the judge only where the whole 95 % interval (documents resampled) lies beyond what is"
    " tolerated. unclear: the estimate lies beyond, its interval does not. ok: the estimate is tolerated."
)


def audit_sections(audit: Audit) -> Iterator[Section]:
    """What an audit found, as tables: each check, then all in short, and how to run this judge."""
    yield from _checks(audit, draws=False)
    rows = [
        [check.name, check.criterion, check.verdict, _telling(check), str(check.usage.requests), str(check.failed)]
        for check in audit.checks
    ]
    heads = ("check", "criterion", "verdict", "most telling, or why there is nothing", "calls", "no score")
    yield Section(f"how biased is {audit.judge}?", heads, rows, _about(audit))
    yield from _recipes(audit)


def audit_page(audit: Audit) -> str:
    """The same to look at: a card for each check, the recipe, and each check with its pictures."""
    cards = [
        Card(
            f"{check.name}, {check.criterion}",
            check.verdict,
            _TONES.get(check.verdict, "bad"),
            _telling(check, with_paper=False),
            _gauge(check),
            _anchor(check),
        )
        for check in audit.checks
    ]
    sections = [Section("the checks", notes=_about(audit), cards=cards), *_recipes(audit), *_checks(audit, draws=True)]
    return page(f"Audit of {audit.judge}", sections, answer=_answer(audit))


def _answer(audit: Audit) -> list[str]:
    against = [check for check in audit.checks if check.verdict not in _TONES]
    unclear = [check.name for check in audit.checks if check.verdict == "unclear"]
    made = len([check for check in audit.checks if check.verdict != "not measurable"])
    first = f"{len(against)} of {made} checks count against {audit.judge}"
    told = [f"{check.name} ({_telling(check, with_paper=False)})" for check in against]
    return [
        f"{first}: {'; '.join(told)}." if told else f"{first}.",
        *([f"Not clear from so few answers: {', '.join(dict.fromkeys(unclear))}."] if unclear else []),
    ]


def _about(audit: Audit) -> list[str]:
    budget = f", budget {audit.budget}" if audit.budget is not None else ""
    spent = f"{audit.usage.requests} calls{budget}, cost {cost(audit.usage)}"
    return [*audit.notes, f"{audit.samples} samples of {audit.documents} documents, {spent}", _LEGEND]


def _recipes(audit: Audit) -> Iterator[Section]:
    for recipe in audit.recipes:
        rows = [[each.option, each.value, each.reason, "yes" if each.measured else "no"] for each in recipe.choices]
        title = f"recommended for {recipe.criterion} with {audit.judge}"
        yield Section(title, ("option", "value", "why", "measured here"), rows, code=recipe.command)


def _checks(audit: Audit, draws: bool) -> Iterator[Section]:
    for check in audit.checks:
        names = list(dict.fromkeys(statistic.name for statistic in check.statistics))
        subjects = list(dict.fromkeys(statistic.subject for statistic in check.statistics))
        cells = {(each.subject, each.name): _cell(each) for each in check.statistics}
        failed = f", {check.failed} of {check.asked} answers without a score" if check.failed else ""
        yield Section(
            f"{check.name}, {check.criterion}",
            ("", *names) if names else (),
            [[plain(subject), *(cells.get((subject, name), "") for name in names)] for subject in subjects],
            [*check.notes, f"{check.usage.requests} calls{failed}"],
            [*_pictures(check)] if draws else (),
            check.verdict,
            _TONES.get(check.verdict, "bad"),
            " ".join(part for part in (check.reason, check.did, "" if check.verdict == "ok" else check.advice) if part),
            anchor=_anchor(check),
        )


def _telling(check: Check, with_paper: bool = True) -> str:
    statistic = check.telling
    if check.reason or statistic is None:
        return check.reason
    return f"{statistic.name}, {plain(statistic.subject, 40)}: {_cell(statistic, with_paper)}"


def _cell(statistic: Statistic, with_paper: bool = True) -> str:
    found = statistic.figure
    if found.value is None:
        return "-"
    value = f"{found.value:.0f}" if found.value.is_integer() and found.value > 1 else f"{found.value:.2f}"
    interval = f" [{found.low:.2f}, {found.high:.2f}]" if found.low is not None and found.high is not None else ""
    mark = {"beyond": " ▲", "unclear": " ?"}.get(statistic.verdict, "")
    return f"{value}{interval}{mark}" + (f" (paper: {statistic.paper})" if statistic.paper and with_paper else "")


def _gauge(check: Check) -> str:
    from . import plots

    statistic = check.telling
    if check.reason or statistic is None or statistic.tolerated is None or statistic.figure.value is None:
        return ""
    found = statistic.figure
    return plots.gauge((statistic.figure.value, found.low, found.high), statistic.tolerated, statistic.verdict)


def _pictures(check: Check) -> Iterator[str]:
    from . import plots

    counted = {each.name: each.tolerated for each in check.statistics if each.tolerated}
    for name, band in counted.items():
        own = [(each.subject, each.figure) for each in check.statistics if each.name == name]
        rows = [
            (plain(subject, 40), each.value, each.low, each.high) for subject, each in own if each.value is not None
        ]
        if len(rows) > 1:  # a single one is on the card
            yield plots.intervals(rows, f"{name}; shaded: tolerated", band)
    for picture in check.pictures:
        series = {plain(name, 40): values for name, values in picture.series.items()}
        if not series:
            continue
        if picture.kind == "matrix":
            yield plots.matrix(series, picture.title)
        else:
            draw = getattr(plots, picture.kind)
            yield draw(series, picture.title, picture.x, picture.y)


def _anchor(check: Check) -> str:
    return re.sub(r"\W+", "-", f"{check.name}-{check.criterion}")
