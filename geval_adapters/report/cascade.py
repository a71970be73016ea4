"""A cascade as sections: who decided, what was saved, and what that cost in agreement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .sections import Section, shown
from .summary import dollars

if TYPE_CHECKING:
    from ..jury import Cascade, Cost

Spent = Mapping[str, float | None]


def cascade_sections(
    criterion: str, made: Cascade, cost: Cost, saved: Mapping[str, Spent], when: str, unknown: int
) -> Iterator[Section]:
    """What is told of a cascade.

    Args:
        criterion: its name.
        made, cost: who decided, and what that cost in agreement.
        saved: what was spent, what asking the dear judge everywhere would have taken, and the difference.
        when: where the dear judge was asked.
        unknown: ratings that do not tell what `when` asks for.
    """
    cheap, dear = made.ballots.judges
    decided = ~(made.score != made.score)
    rows = [
        [cheap, f"{int((decided & ~made.unsure).sum())}", "sure"],
        [dear, f"{int((decided & made.unsure).sum())}", when],
    ]
    notes = []
    if unknown:
        notes.append(
            f"{unknown:,} ratings of {cheap} do not tell what `{when}` asks for: single replies have no spread"
        )
    if made.calibration == "mapped":
        notes.append(f"{cheap}'s scores were put on {dear}'s scale, by mean and spread over the probe")
    elif (decided & ~made.unsure).any():
        notes.append(
            f"{cheap}'s scores are on its own scale, {dear}'s on another: it takes a probe of 10 items that both rated"
            f" and {cheap} was sure of to put them on one, and there are {int(made.probe.sum())} (--probe)"
        )
    yield Section(f"who decided on {criterion}", ("judge", "items", "when"), rows, notes)
    heads = ("", "requests", "tokens", "cost")
    names = {
        "spent": "spent",
        "spent_on_dear": f"of that, on {dear}",
        "everywhere": f"{dear} everywhere, about",
        "saved": "saved, about",
    }
    rows = [[told, *_spent(saved[name])] for name, told in names.items()]
    yield Section(f"what the cascade saved on {criterion}", heads, rows)
    figures = {
        "r with people: cascade": cost.cascade,
        f"r with people: {cheap} alone": cost.cheap,
        f"r with people: {dear} everywhere": cost.dear,
        "r that the cascade lost": cost.lost,
        f"r with {dear} everywhere": cost.with_dear,
        f"mean distance from {dear} everywhere": cost.difference,
    }
    rows = [[told, shown(each), str(each.n)] for told, each in figures.items() if each.value is not None]
    probe = f"the sure items count by a probe of {int(made.probe.sum())} of them, which both judges rated"
    notes = [note for note in (cost.why_not, probe if made.probe.any() else "") if note]
    yield Section(
        f"what it cost in agreement on {criterion}",
        ("", "with its 95 % interval", "items") if rows else (),
        rows,
        notes,
    )


def _spent(spent: Spent) -> list[str]:
    counts = ["unknown" if (value := spent[name]) is None else f"{value:,.0f}" for name in ("requests", "tokens")]
    cost = spent["cost"]
    return [*counts, f"-${-cost:.4f}" if cost is not None and cost < 0 else dollars(cost)]
