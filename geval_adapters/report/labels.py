"""Estimates from people's labels, and gates, as sections of a report; a gate also for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .page import html_page
from .sections import Section, shown
from .terminal import plain

if TYPE_CHECKING:
    from ..agreement.intervals import Figure
    from ..labels.estimation import Estimation
    from ..labels.gate import Check, Gate

MOST = 30
TONES = {"pass": "good", "fail": "bad", "undecided": "open"}


def estimate_page(estimations: Sequence[Estimation]) -> str:
    """The same to look at, with the items on which judge and people differ most."""
    from . import plots

    answer, drawn = [], []
    for found in estimations:
        for each in found.systems:
            name = f"{each.system}, {found.criterion}" if each.system else found.criterion
            if each.corrected.value is None:
                answer.append(f"{name}: no estimate, for {each.corrected.why_not}.")
                continue
            figure, judge = shown(each.corrected), _number(each.judge_mean)
            made = f"from {each.labels:,} labels of {each.n:,} items; the judge alone says {judge}"
            answer.append(f"People would give {name} {figure} on average, {made}.")
            drawn.append((f"{name}: people", each.corrected.value, each.corrected.low, each.corrected.high))
            if each.judge_mean is not None:
                drawn.append((f"{name}: judge alone", each.judge_mean, None, None))
    ends = [end for _, *values in drawn for end in values if end is not None]
    picture = plots.intervals(drawn, "people's mean, with 95 % intervals", span=plots.padded(ends)) if drawn else ""
    sections = [each for one in estimations for each in (*estimate_sections(one), apart_section(one))]
    return html_page("What people would say", sections, answer=answer[:8], picture=picture)


def estimate_sections(found: Estimation, most: int = MOST) -> Iterator[Section]:
    """The tables of an estimation: means, differences, what the judge gets wrong, and how good it is among people."""
    if found.systems:
        yield _means(found)
    if found.differences:
        yield _differences(found, most)
    if found.wins:
        heads = ("", "pairs", "labels", "judge", "corrected")
        rows = [
            [f"{each.a} over {each.b}", str(each.n), str(each.labels), _number(each.judge), shown(each.corrected)]
            for each in found.wins
        ]
        why = [f"{each.a} over {each.b}: {each.corrected.why_not}" for each in found.wins if each.corrected.why_not]
        yield Section(f"win rates: {found.criterion}", heads, rows, why)
    if found.scale:
        rows = [
            [f"{step.score:.3g}", str(step.n), f"{step.judge:.2f}", f"{step.people:.2f}", f"{step.bias:+.2f}"]
            for step in found.scale
        ]
        notes = [str(found.transport)] if found.transport else []
        columns = ("judge says about", "labels", "judge's mean", "people's mean", "judge is higher by")
        yield Section("where on the scale the judge is off", columns, rows, notes)
    yield from _judge(found)
    if found.intervals is not None:
        made = found.intervals
        rows = [[f"{made.level:.0%}", _number(made.coverage), _number(made.width), str(made.n)]]
        told = made.why_not or "each item's interval stands in --json"
        yield Section(
            "intervals for single items", ("level", "coverage on labels", "mean width", "labels"), rows, [told]
        )


def _means(found: Estimation) -> Section:
    heads = ["system", "items", "labels", "judge", "labels alone", "corrected", "worth", "judge off by", "method"]
    share = found.threshold is not None
    if share:
        heads.insert(6, f"share ≥ {found.threshold:g}")
    rows, notes = [], list(found.notes)
    for each in found.systems:
        worth = "" if each.effective_n is None else f"{each.effective_n:.0f} labels"
        row = [
            each.system or "all", str(each.n), str(each.labels), _number(each.judge_mean), _brief(each.labels_mean),
            _brief(each.corrected), worth, _signed(each.bias), each.corrected.method,
        ]  # fmt: skip
        if share:
            row.insert(6, _brief(each.share) if each.share else "")
        rows.append(row)
        name = f"{each.system}: " if each.system else ""
        if each.share is not None and each.share.why_not:
            notes.append(f"{name}share: {each.share.why_not}")
        if each.corrected.why_not:
            notes.append(name + each.corrected.why_not)
        elif each.labels_for_half is not None:
            more = each.labels_for_half - each.labels
            notes.append(f"{name}{more} more labels would halve the interval")
        elif each.corrected.low is not None:
            notes.append(f"{name}no number of labels would halve the interval: it takes more items")
        if each.unrated:
            notes.append(f"{name}{each.unrated} of {each.n} items have no judge's score; they count as like the others")
    return Section(f"what people would say: {found.criterion}", heads, rows, _shortened(notes))


def _brief(figure: Figure) -> str:
    """A figure with its interval; why there is none stands below the table."""
    if figure.value is None:
        return "-"
    interval = "" if figure.low is None or figure.high is None else f" [{figure.low:.2f}, {figure.high:.2f}]"
    return f"{figure.value:.2f}{interval}"


def _shortened(notes: Sequence[str], most: int = 12) -> list[str]:
    return [*notes[:most], f"… and {len(notes) - most} more remarks in --json"] if len(notes) > most else list(notes)


def _differences(found: Estimation, most: int) -> Section:
    rows = [
        [f"{each.a} − {each.b}", _brief(each.figure), _p(each.p), _p(each.p_holm)]
        for each in sorted(found.differences, key=lambda each: 2.0 if each.p is None else each.p)
    ]
    notes = ["paired by document; p corrected for all of these comparisons (Holm)"]
    if len(rows) > most:
        notes.append(f"{len(rows) - most} more in --json; --against SYSTEM compares with one only")
    return Section("differences between systems", ("", "difference", "p", "p (Holm)"), rows[:most], notes)


def _judge(found: Estimation) -> Iterator[Section]:
    ceiling, test, constant = found.judge.ceiling, found.judge.alternative, found.judge.constant
    rows, notes = [], []
    if ceiling.r is not None:
        rows.append(["r with people's mean", _number(ceiling.r), f"{ceiling.annotators} annotators"])
    if ceiling.r_corrected is not None:
        reliability = f"raw r / √{ceiling.reliability:.2f}, the reliability of people's mean"
        rows.append(["r, corrected for people's unreliability", _number(ceiling.r_corrected), reliability])
    if ceiling.people is not None:
        rows.append(["one person with the mean of the others", _number(ceiling.people), "the ceiling"])
        rows.append(["the judge with the same means", _number(ceiling.judge), ""])
    if ceiling.alpha is not None:
        rows.append(["Krippendorff's α between people", _number(ceiling.alpha), f"{ceiling.items} items"])
    if test.winning_rate is not None:
        told = "may stand in for an annotator" if test.passed else "may not stand in for an annotator"
        rows.append(["alternative annotator test, ω", _number(test.winning_rate), told])
        alone = "passes by ties alone" if constant.passed else "does not pass"
        rows.append(["the same, a judge that says one thing", _number(constant.winning_rate), alone])
        if constant.passed:
            notes.append("a constant judge passes the alternative annotator test: here it shows nothing")
    elif ceiling.annotators > 1:
        notes.append(f"no alternative annotator test: {test.why_not}")
    if found.judge.systems.value is not None:
        pairs = f"{found.judge.systems.n} pairs of systems"
        rows.append(["soft pairwise accuracy of systems", _number(found.judge.systems.value), pairs])
    if rows:
        yield Section("how good the judge is among people", ("", "", ""), rows, notes)


def apart_section(found: Estimation) -> Section:
    """The items on which judge and people differ most, to read: there a criterion's wording is mended."""
    heads = ("item", "system", "judge", "people", "output", "judge's reason", "people's notes")
    rows = [
        [
            item.id, item.system or "", f"{item.score:.2f}", f"{item.label:.2f}",
            plain(item.output, 1000), plain(item.rationale, 500), plain("; ".join(item.notes), 500),
        ]
        for item in found.apart
    ]  # fmt: skip
    lead = "Where they differ, they read the criterion differently: that is where to mend its wording."
    return Section(f"where judge and people differ most: {found.criterion}", heads, rows, lead=lead)


# --- gates -----------------------------------------------------------------------------------------------------------


def gate_line(gate: Gate) -> str:
    """The gate in one line."""
    told = "; ".join(f"{check.name}: {shown(check.figure)}, {check.verdict}" for check in gate.checks)
    return f"{gate.verdict.upper()} {gate.criterion}: {told}" + (" (without labels)" if gate.unlabelled else "")


def gate_sections(gate: Gate) -> Iterator[Section]:
    """The table of a gate."""
    rows = [
        [check.name, shown(check.figure), check.verdict, _seen(check), check.figure.method] for check in gate.checks
    ]
    notes = [*_reasons(gate), *gate.notes]
    heads = ("bar", "estimate", "", "sees from", "method")
    yield Section(f"gate: {gate.criterion}", heads, rows, notes, badge=gate.verdict, tone=TONES[gate.verdict])


def _seen(check: Check) -> str:
    return "" if check.detectable is None else f"{check.bar + check.detectable:.2f}"


def _reasons(gate: Gate) -> list[str]:
    seen = "sees from: the true value at which this many items and labels let the gate pass in 80 % of cases"
    return [*[f"{check.name}: {check.figure.why_not}" for check in gate.checks if check.figure.why_not], seen]


def gate_markdown(gate: Gate) -> str:
    """A summary for a pull request."""
    marks = {"pass": "✅", "fail": "❌", "undecided": "❔"}
    lines = [f"### {marks[gate.verdict]} {_cell(gate.criterion)}: {gate.verdict}", ""]
    lines += ["| bar | estimate (95 % interval) | verdict | sees from |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {_cell(check.name)} | {shown(check.figure)} | {check.verdict} | {_seen(check)} |" for check in gate.checks
    ]
    lines += ["", f"{gate.labels} labels.", "", *[f"- {_cell(note)}" for note in [*_reasons(gate), *gate.notes]]]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return plain(text, 400).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def gate_junit(gate: Gate) -> str:
    """The checks as JUnit XML: an undecided one is an error, as it is neither passed nor failed."""
    verdicts = [check.verdict for check in gate.checks]
    from xml.etree import ElementTree

    suite = ElementTree.Element(
        "testsuite",
        name=f"geval gate {plain(gate.criterion)}",
        tests=str(len(verdicts)),
        failures=str(verdicts.count("fail")),
        errors=str(verdicts.count("undecided")),
    )
    for check in gate.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=plain(gate.criterion), name=check.name)
        said = f"{shown(check.figure)}, bar {check.bar:g}. {check.figure.why_not}".strip()
        if check.verdict != "pass":
            kind = "failure" if check.verdict == "fail" else "error"
            ElementTree.SubElement(case, kind, message=f"{check.verdict}: {said}")
        else:
            ElementTree.SubElement(case, "system-out").text = said
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _signed(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    interval = "" if figure.low is None or figure.high is None else f" [{figure.low:+.2f}, {figure.high:+.2f}]"
    return f"{figure.value:+.2f}{interval}"


def _p(p: float | None) -> str:
    return "-" if p is None else "< .001" if p < 0.001 else f"{p:.3f}"
