"""An audit as sections: how biased a judge is, check by check, and how to run it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .page import html_page
from .sections import Card, Section
from .summary import cost
from .terminal import plain

if TYPE_CHECKING:
    from ..agreement.intervals import Figure
    from ..audit.results import Audit, Check, SideBySide, Statistic

_TONES = {"ok": "good", "unclear": "open", "measured": "plain", "not measurable": "plain"}
_ORDER = ("bad", "open", "good", "plain")
_LEGEND = (
    "A fault is one where the whole 95 % interval (documents resampled) lies beyond what is tolerated; ok, where all of"
    " it is tolerated; unclear, where some of it is. Sizes are shares of the scale; what asking twice gives is the"
    " reference."
)


def audit_sections(result: SideBySide) -> Iterator[Section]:
    """What an audit came to, as tables: each check, then all in short, how to run these judges, and these by checks."""
    for audit in result.audits:
        yield from _checks(audit, draws=False, several=len(result.audits) > 1)
    yield from _shared(result)
    for audit in result.audits:
        rows = [
            [check.name, check.criterion, check.verdict, _telling(check), _needed(check), str(check.usage.requests)]
            for check in sorted(audit.checks, key=_severity)
        ]
        heads = ("check", "criterion", "verdict", "most telling, or why there is nothing", "items to be clear", "calls")
        yield Section(f"how biased is {audit.judge}?", heads, rows, [*headline(audit), *_about(audit)])
        yield from _recipes(audit)
    if len(result.audits) > 1:
        yield _table_of_verdicts(result)


def audit_page(result: SideBySide) -> str:
    """The same to look at: the answer, a card for each check, the recipe, and each check with its pictures."""
    several = len(result.audits) > 1
    sections = [_table_of_verdicts(result)] if several else []
    sections += _shared(result)
    for audit in result.audits:
        cards = [
            Card(
                _name(audit, check),
                check.verdict,
                _tone(check),
                " ".join(part for part in (_telling(check, with_paper=False), _wanted(check)) if part),
                _gauge(check),
                _anchor(audit, check),
            )
            for check in sorted(audit.checks, key=_severity)
        ]
        badge = f"{len(audit.faults)} against it" if audit.faults else "nothing against it"
        tone = "bad" if audit.faults else "good"
        title = f"the checks of {audit.judge}"
        sections.append(Section(title, notes=_about(audit), cards=cards, badge=badge, tone=tone))
        sections += _recipes(audit)
    for audit in result.audits:
        sections += _checks(audit, draws=True, several=several)
    if several:
        answer = [f"{audit.judge}: {headline(audit)[0]}" for audit in result.audits]
    else:
        answer = [sentence for audit in result.audits for sentence in headline(audit)]
    return html_page(f"Audit of {', '.join(audit.judge for audit in result.audits)}", sections, answer=answer)


def headline(audit: Audit) -> list[str]:
    """The answer in two sentences: what counts against the judge, and how the rest came out."""
    counts = Counter(check.verdict for check in audit.checks)
    rest = ", ".join(f"{counts[word]} {word}" for word in ("ok", "unclear", "not measurable") if counts[word])
    if not audit.faults:
        clear = counts["ok"]
        first = "Nothing counts against this judge" if clear else "Nothing is known against this judge yet"
        return [f"{first}: {rest}." if rest else f"{first}."]
    by_fault: dict[str, list[str]] = {}
    for check in audit.faults:
        where = f" of {check.criterion}" if len({each.criterion for each in audit.checks}) > 1 else ""
        by_fault.setdefault(check.verdict, []).append(check.name + where)
    faults = "; ".join(f"{fault} ({', '.join(names)})" for fault, names in by_fault.items())
    made = sum(counts.values()) - counts["not measurable"]
    first = f"{len(audit.faults)} of {made} checks count against this judge: {faults}."
    return [first, f"The rest: {rest}."] if rest else [first]


def _table_of_verdicts(result: SideBySide) -> Section:
    """Checks by judges."""
    names = list(dict.fromkeys((check.name, check.criterion) for audit in result.audits for check in audit.checks))
    several = len({criterion for _, criterion in names}) > 1
    own = [{(check.name, check.criterion): check for check in audit.checks} for audit in result.audits]
    rows = [
        [f"{name}, {criterion}" if several else name, *(_short(each.get((name, criterion))) for each in own)]
        for name, criterion in names
    ]
    return Section("judges side by side", ("", *(audit.judge for audit in result.audits)), rows)


def _short(check: Check | None) -> str:
    if check is None:
        return ""
    told = check.telling
    value = "" if check.reason or told is None or told.figure.value is None else f" {told.figure.value:.2f}"
    return f"{check.verdict}{value}"


def _shared(result: SideBySide) -> Iterator[Section]:
    for each in result.shared:
        rows = [
            [plain(name, 40), *("-" if r is None else f"{r:.2f}" for r in row)]
            for name, row in zip(each.judges, each.errors, strict=False)
        ]
        lead = ""
        if each.mean.value is not None and each.effective is not None:
            lead = f"Mean r {_number(each.mean)}: {len(each.judges)} judges are worth {each.effective:.1f}."
        yield Section(
            f"do they err together? r between errors (judge − people), {each.criterion}",
            ("", *(plain(name, 40) for name in each.judges)) if rows else (),
            rows,
            [each.note] if each.note else [],
            lead=lead,
        )


def _name(audit: Audit, check: Check) -> str:
    """The check, and its criterion where there are several."""
    return f"{check.name}, {check.criterion}" if len({each.criterion for each in audit.checks}) > 1 else check.name


def _severity(check: Check) -> int:
    return _ORDER.index(_tone(check))


def _tone(check: Check) -> str:
    return _TONES.get(check.verdict, "bad")


def _about(audit: Audit) -> list[str]:
    budget = f", budget {audit.budget}" if audit.budget is not None else ""
    spent = f"{audit.usage.requests} calls{budget}, cost {cost(audit.usage)}"
    return [*audit.notes, f"{audit.samples} samples of {audit.documents} documents, {spent}", _LEGEND]


def _recipes(audit: Audit) -> Iterator[Section]:
    for recipe in audit.recipes:
        rows = [[each.option, each.value, each.reason, "yes" if each.measured else "no"] for each in recipe.choices]
        title = f"recommended for {recipe.criterion} with {audit.judge}"
        yield Section(title, ("option", "value", "why", "measured here"), rows, code=recipe.command)


def _checks(audit: Audit, draws: bool, several: bool) -> Iterator[Section]:
    for check in audit.checks:
        names = list(dict.fromkeys(statistic.name for statistic in check.statistics))
        subjects = list(dict.fromkeys(statistic.subject for statistic in check.statistics))
        cells = {(each.subject, each.name): _cell(each) for each in check.statistics}
        failed = f", {check.failed} of {check.asked} answers without a score" if check.failed else ""
        judge = f", {audit.judge}" if several else ""
        wanted = _wanted(check)
        yield Section(
            f"{_name(audit, check)}{judge}",
            ("", *names) if names else (),
            [[plain(subject), *(cells.get((subject, name), "") for name in names)] for subject in subjects],
            [*([wanted] if wanted else []), *check.notes, f"{check.usage.requests} calls{failed}"],
            [*_pictures(check)] if draws else (),
            check.verdict,
            _tone(check),
            " ".join(part for part in (check.reason, check.did, "" if check.verdict == "ok" else check.advice) if part),
            anchor=_anchor(audit, check),
        )


def _needed(check: Check) -> str:
    return f"about {check.needed:,}" if check.needed else ""


def _wanted(check: Check) -> str:
    """How many items would make an unclear verdict clear."""
    if check.verdict != "unclear":
        return ""
    if check.needed:
        calls = f", {check.needed * check.calls:,} calls" if check.calls else ""
        return f"About {check.needed:,} items{calls} would make it clear."
    if check.telling is not None and check.telling.figure.why_not:
        return f"{check.telling.figure.why_not[:1].upper()}{check.telling.figure.why_not[1:]}."
    return "It lies at the edge of what is tolerated: more items would hardly make it clear."


def _telling(check: Check, with_paper: bool = True) -> str:
    statistic = check.telling
    if check.reason or statistic is None:
        return check.reason
    return f"{statistic.name}, {plain(statistic.subject, 40)}: {_cell(statistic, with_paper)}"


def _cell(statistic: Statistic, with_paper: bool = True) -> str:
    found = statistic.figure
    if found.value is None:
        return "-"
    mark = {"beyond": " ▲", "unclear": " ?"}.get(statistic.verdict, "")
    return f"{_number(found)}{mark}" + (f" (paper: {statistic.paper})" if statistic.paper and with_paper else "")


def _number(found: Figure) -> str:
    if found.value is None:
        return "-"
    value = f"{found.value:.0f}" if found.value.is_integer() and found.value > 1 else f"{found.value:.2f}"
    return value + (f" [{found.low:.2f}, {found.high:.2f}]" if found.low is not None and found.high is not None else "")


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


def _anchor(audit: Audit, check: Check) -> str:
    return re.sub(r"\W+", "-", f"{check.name}-{check.criterion}-{audit.judge}")
