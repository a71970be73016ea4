"""A jury as sections: the judges side by side, what they are worth together, who dissents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from .sections import Section, shown
from .terminal import plain, table

if TYPE_CHECKING:
    from ..agreement.intervals import Figure
    from ..jury import Bench, Juror, Panel


def jury_table(ratings: Sequence[Mapping[str, Any]], console: Console) -> RenderableType:
    """One row per item: the panel's score, and each judge's beside it."""
    judges = list(dict.fromkeys(name for row in ratings for name in row["judges"]))
    rows = [
        [
            row["id"],
            row["criterion"],
            "-" if row["score"] is None else f"{row['score']:.2f}",
            "-" if row["std_error"] is None else f"{row['std_error']:.2f}",
            *(_score(row["judges"].get(name)) for name in judges),
            row["error"] or row["output"],
        ]
        for row in ratings
    ]
    names = [name.rpartition("/")[2] for name in judges]
    heads = names if len(set(names)) == len(names) else judges
    return table(("id", "criterion", "score", "± error", *heads, "output, or why there is no score"), rows, console)


def jury_sections(
    criterion: str,
    made: Panel,
    found: Bench,
    numbers: Mapping[int, int],
    down: Mapping[str, str],
    ids: Sequence[str],
) -> Iterator[Section]:
    """What is told of a panel.

    Args:
        criterion: its name.
        made, found: the panel, and what is known of its judges.
        numbers: how many items have how many judges.
        down: the judges that could not go on, and why.
        ids: the items', by place.
    """
    weighted = made.how == "weighted"
    rows = [
        [
            juror.name,
            str(juror.n),
            _score(juror.mean),
            _score(juror.spread),
            _weight(juror, weighted),
            _r(juror.with_others),
            _r(juror.with_people),
        ]
        for juror in found.jurors
    ]
    heads = ("judge", "items", "mean", "spread", "weight", "r with the others", "r with people")
    people = any(juror.with_people.value is not None for juror in found.jurors)
    shown_to = len(heads) - (not people)
    yield Section(
        f"the jury of {criterion}",
        heads[:shown_to],
        [row[:shown_to] for row in rows],
        [*_remarks(found, down), *_notes(made, found, numbers)],
    )
    if found.dissents:
        farthest = [
            [ids[each.place], each.judge, f"{each.rating:.2f}", f"{each.others:.2f}", f"{each.residual:+.1f}"]
            for each in found.dissents
        ]
        columns = ("item", "judge", "on the common scale", "the others there", "residual (sd)")
        yield Section(f"who dissents on {criterion}", columns, farthest)


def _notes(made: Panel, found: Bench, numbers: Mapping[int, int]) -> Iterator[str]:
    k = len(found.jurors)
    number = ", ".join(f"{count:,} of {number}" for number, count in sorted(numbers.items(), reverse=True))
    yield f"panels by how many of the {k} judges they are of: {number}"
    if made.how == "weighted":
        yield "weights go by agreement with people, r / (1 - r²), for each item from labels of other documents"
    elif made.why_not:
        yield made.why_not
    if made.beyond:
        yield f"{made.beyond:,} panel ratings lay beyond an end of the scale, and were put there"
    if found.errors.value is not None:
        worth = "" if found.effective.value is None else f": {k} judges are worth {shown(found.effective)}"
        yield f"mean correlation of their errors {shown(found.errors)}{worth}; {'; '.join(found.notes)}"
        if found.understated and found.understated > 1.05:
            yield f"as they err together, the errors between judges (±) are {found.understated:.2f} times too small"
    else:
        between = f"their ratings correlate by {shown(found.between)}" if found.between.value is not None else ""
        yield "; ".join(part for part in (between, f"effective number of judges: {found.errors.why_not}") if part)
    if found.alike:
        one, other, r = found.alike
        yield (
            f"their residuals (rating - panel) go together most in {plain(one, 40)} and {plain(other, 40)}: r = {r:.2f}"
            f" where {-1 / (k - 1):.2f} is to be expected. That is no correlation of errors: what all get wrong alike"
            " is not in it"
        )


def _remarks(found: Bench, down: Mapping[str, str]) -> Iterator[str]:
    for juror in found.jurors:
        said = [juror.why_not and f"carries nothing: {juror.why_not}"]
        if juror.name in down:
            said.append(f"could not go on: {down[juror.name]}")
        if juror.disagrees:
            said.append(
                f"goes against the others: its r with them is lower by {-(juror.apart.value or 0):.2f} than theirs"
            )
        if any(said):
            yield f"{plain(juror.name, 60)} {'; '.join(filter(None, said))}"


def _weight(juror: Juror, weighted: bool) -> str:
    if not weighted or not juror.weight:
        return f"{juror.weight:.2f}"
    return f"{juror.weight:.2f} [{juror.weight_low:.2f}, {juror.weight_high:.2f}]"


def _r(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    ends = "" if figure.low is None or figure.high is None else f" [{figure.low:.2f}, {figure.high:.2f}]"
    return f"{figure.value:.2f}{ends}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
