"""Pass, fail or undecided: is a system good enough, or no worse than before, by the interval and not by the point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy.special import stdtrit

from ..agreement.intervals import Figure
from ..errors import InputError
from .alike import differing, served_note
from .correction import Estimate, estimated, judged, within
from .estimate import refused
from .joined import Joined, Rated
from .transport import transport


@dataclass(frozen=True)
class Check:
    """One bar.

    Attributes:
        name: what is asked, in words.
        bar: what the figure must reach.
        figure: the estimate with its 95 % interval.
        verdict: `pass` where the whole interval reaches the bar, `fail` where none of it does, else `undecided`.
        detectable: how far beyond the bar the truth must lie for this check to pass in 80 % of cases.
    """

    name: str
    bar: float
    figure: Figure
    verdict: str
    detectable: float | None


@dataclass(frozen=True)
class Gate:
    """All bars of a gate.

    Attributes:
        criterion: its name.
        checks: one for each bar.
        labels: labelled items.
        unlabelled: whether nobody's labels say how good the judge is.
        notes: what people must know, in words.
    """

    criterion: str
    checks: Sequence[Check]
    labels: int
    unlabelled: bool
    notes: Sequence[str]

    @property
    def verdict(self) -> str:
        """`fail` where a check failed, else `undecided` where one is, else `pass`."""
        verdicts = {check.verdict for check in self.checks}
        return "fail" if "fail" in verdicts else "undecided" if "undecided" in verdicts else "pass"

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "criterion": self.criterion,
            "verdict": self.verdict,
            "labels": self.labels,
            "unlabelled": self.unlabelled,
            "checks": [asdict(check) for check in self.checks],
            "notes": list(self.notes),
        }


def gate(
    data: Joined,
    *,
    at_least: float | None = None,
    share: tuple[float, float] | None = None,
    baseline: Joined | None = None,
    margin: float = 0.0,
    unlabelled: bool = False,
    max_unrated: float = 0.05,
) -> Gate:
    """Hold an estimate against bars.

    A bar is passed where the 95 % interval lies at or above it: at a true value just below, that happens in at most
    about 2.5 % of cases.

    Args:
        data: ratings with labels.
        at_least: bar for the mean.
        share: a score, and a bar for the share of items at or above it.
        baseline: ratings of the same items' former outputs, with labels.
        margin: how much lower than the baseline the mean may be.
        unlabelled: whether to take the judge's word where nobody labelled.
        max_unrated: share of items that may lack a judge's score.

    Raises:
        InputError: no bar, or one that is not on the scale; ratings that cannot be compared with each other; too many
            unrated items; no labels, without
            `unlabelled`; a baseline that shares no item.
    """
    if at_least is None and share is None and baseline is None:
        raise InputError("a gate needs a bar: --at-least, --share-at-least or --baseline")
    if at_least is not None:
        data.check_on_scale("--at-least", at_least)
    if share is not None:
        data.check_on_scale("--share-at-least", share[0])
    everything = [data, *([baseline] if baseline else [])]
    _comparable(everything)
    for each in everything:
        _rated(each, max_unrated)
    labelled = data.drawn.n > 0
    if not labelled and not unlabelled:
        raise InputError(
            f"nobody has labelled these items, so that nobody knows how far off the judge is in {data.criterion};"
            " give --labels, or take its word with --unlabelled"
        )
    checks = []
    if at_least is not None:
        checks.append(_check(f"mean at least {at_least:g}", at_least, _whole(data, labelled)))
    if share is not None:
        threshold, bar = share
        own = data.above(threshold)
        found = _moved(data, estimated(own)) if labelled else judged(own)
        checks.append(_check(f"share at {threshold:g} or above at least {bar:g}", bar, found, (0.0, 1.0)))
    runs = {"the ratings": data, **({"the baseline": baseline} if baseline else {})}
    notes = [*data.notes, *served_note(runs)]
    if baseline is not None:
        found, told = _change(data, baseline, unlabelled)
        notes += told
        checks.append(_check(f"no more than {margin:g} below the baseline", -margin, found))
    if not labelled:
        notes.append("without labels: the judge's own scores, whose error nobody has measured")
    return Gate(data.criterion, checks, data.drawn.n, not labelled, notes)


def _comparable(everything: Sequence[Joined]) -> None:
    if told := differing(everything):
        raise InputError(f"{told}; such ratings cannot be held against one bar")


def _rated(data: Joined, most: float) -> None:
    unrated = sum(item.score is None for item in data.items)
    if unrated > most * len(data.items):
        raise InputError(
            f"{unrated} of {len(data.items)} items of {data.criterion} have no rating, more than --max-unrated"
            f" {most:g}: run geval score again, it tries those anew"
        )


def _whole(data: Joined, labelled: bool) -> Estimate:
    return _moved(data, estimated(data.drawn)) if labelled else judged(data.drawn)


def _moved(data: Joined, found: Estimate) -> Estimate:
    names = [item.system for item in data.items]
    several = len(data.systems) > 1
    return refused(found, transport(data.drawn, names) if several else None)


def _change(data: Joined, baseline: Joined, unlabelled: bool) -> tuple[Estimate, list[str]]:
    """How much higher the mean is than the baseline's, over the items that both have, paired by item and document."""
    pairs, key = _paired(data, baseline)
    if not pairs:
        raise InputError("the baseline shares no item with the ratings, neither by id nor by document")
    left = len(data.items) + len(baseline.items) - 2 * len(pairs)
    notes = [f"paired by {key}: {len(pairs)} pairs" + (f"; {left} items have no counterpart" if left else "")]
    sides = [_side([pair[side] for pair in pairs], [pair[0] for pair in pairs]) for side in (0, 1)]
    if all(side.drawn.n for side in sides):
        return estimated(sides[0].drawn).minus(estimated(sides[1].drawn)), notes
    if not unlabelled:
        raise InputError(
            "without labels of both, nobody knows whether the judge errs alike on the ratings and on the baseline;"
            " label both, or take its word with --unlabelled"
        )
    notes.append("the change is the judge's: whether it errs alike on both nobody has measured")
    return judged(sides[0].drawn).minus(judged(sides[1].drawn)), notes


def _side(items: Sequence[Rated], places: Sequence[Rated]) -> Joined:
    """Items under the documents of their counterparts."""
    moved = [replace(item, document=place.document) for item, place in zip(items, places, strict=True)]
    return Joined("", moved)


def _paired(data: Joined, baseline: Joined) -> tuple[list[tuple[Rated, Rated]], str]:
    by_id = {item.id: item for item in baseline.items}
    if pairs := [(item, by_id[item.id]) for item in data.items if item.id in by_id]:
        return pairs, "id"
    ours, theirs = ({item.document: item for item in each.items} for each in (data, baseline))
    if len(ours) < len(data.items) or len(theirs) < len(baseline.items):
        return [], "document"
    return [(ours[document], theirs[document]) for document in ours if document in theirs], "document"


def _check(name: str, bar: float, found: Estimate, limits: tuple[float, float] = (-math.inf, math.inf)) -> Check:
    figure = within(found.figure(), *limits)
    if figure.value is None or figure.low is None or figure.high is None:
        return Check(name, bar, figure, "undecided", None)
    verdict = "pass" if figure.low >= bar else "fail" if figure.high < bar else "undecided"
    error = found.std_error
    reach = float(-stdtrit(found.df, 0.025) + stdtrit(found.df, 0.8))
    return Check(name, bar, figure, verdict, None if error is None else reach * error)
