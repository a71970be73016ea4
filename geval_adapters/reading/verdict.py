"""Which of two candidates a reply prefers: the mechanism that finds ratings, with the labels as the values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ..criteria import Scale
from .candidates import Found, Support, by_strength, strongest, without_barred
from .distribution import Reading, unread
from .lexer import Lexer, symbols
from .text import nothing_in
from .tokens import Content, distribution_at
from .verdict_evidence import VERDICT_BARS, VERDICT_SUPPORTS
from .visible import visible, without_quotes

LABELS = ("A", "B", "C")
"""How the first candidate, the second and a tie are called in the prompts of this package."""

WORTH = {"FIRST": 1.0, "SECOND": 0.0, "THIRD": 0.5, "TIE": 0.5, "NEITHER": 0.5, "SAME": 0.5}
"""What naming a candidate, or none of them, says: the probability that the first is better."""


def verdicts(labels: Sequence[str] = LABELS) -> Scale:
    """The answers to "which is better?" as a scale: a score is the probability that the first is.

    Args:
        labels: those of the first and the second candidate, and, if there is one, that of a tie.

    >>> verdicts().values
    (0.0, 0.5, 1.0)
    """
    if len(labels) not in (2, 3) or len(set(labels)) < len(labels) or not all(label.strip() for label in labels):
        raise ValueError(f"two different labels, and perhaps a third for a tie, not {list(labels)}")
    return _verdicts(tuple(labels))


@cache
def _verdicts(labels: tuple[str, ...]) -> Scale:
    return Scale.of({"tie": 0.5, "equal": 0.5, "draw": 0.5} | dict(zip(labels, (1.0, 0.0, 0.5), strict=False)))


def read_verdict(reply: str, *, labels: Sequence[str] = LABELS, shown: Iterable[str] = ()) -> Reading:
    """Which of two candidates a reply prefers: 1 for the first, 0 for the second, .5 for a tie.

    Args:
        reply: the judge's reply, its explanation first or last.
        labels: as in `verdicts`.
        shown: as in `read_text`.

    >>> [read_verdict(reply).score for reply in ("Summary A", "B: Summary #2 is clearer.", "It is a tie.")]
    [1.0, 0.0, 0.5]
    >>> read_verdict("Both are clear, but (a) is less fluent than (b).", labels=("(a)", "(b)")).score
    0.0
    """
    scale = verdicts(labels)
    found = _find_verdict(reply, labels, shown)
    if isinstance(found, str):
        return unread(scale, found)
    value = found.value or 0.0
    return Reading(value, {value: 1.0}, 1.0, (value, value))


def read_verdict_logprobs(
    content: Sequence[Mapping[str, Any]],
    *,
    labels: Sequence[str] = LABELS,
    shown: Iterable[str] = (),
    text: str | None = None,
) -> Reading:
    """The probability that the first candidate is better, from the alternatives at the answer's label.

    `p = P(A) / (P(A) + P(B))` (Liusie et al. 2024, eq. 3), a tie's mass counting half for each. A label that is
    absent from the alternatives is as likely as the least of them at most, and no more than what they leave: that much
    is put in its place, so that its absence is no certain win. Coverage is that of the labels that are there. Where the
    verdict names the worse one ("B is worse"), the labels' masses change places.

    Args:
        content, text: as in `read_logprobs`.
        labels: as in `verdicts`.
        shown: as in `read_text`.
    """
    scale = verdicts(labels)
    given = Content.of(content, text)
    if isinstance(given, str):
        return unread(scale, given)
    found = _find_verdict(given.text, labels, shown)
    if isinstance(found, str):
        return unread(scale, found)
    named = scale.words.get(found.text.lower())
    at = distribution_at(given, found, scale, "keep", upside_down=named is not None and named != found.value)
    reading = at.reading
    absent = {1.0, 0.0} - set(at.masses)
    if reading.score is None or len(absent) != 1:
        return reading
    masses = dict(at.masses)
    masses[absent.pop()] = min(at.least, max(0.0, 1.0 - at.listed))
    total = sum(masses.values())
    p = {value: mass / total for value, mass in masses.items()}
    return replace(reading, score=sum(value * share for value, share in p.items()), distribution=p)


def _find_verdict(reply: str, labels: Sequence[str], shown: Iterable[str]) -> Found | str:
    """The place of the label (or word) that gives a verdict, and what it is worth; or why there is none."""
    text = visible(reply, shown)
    if reason := nothing_in(text, reply):
        return reason
    line = Lexer.of(labels=tuple(labels)).line(without_quotes(text))
    worth = {symbols()[name]: value for name, value in WORTH.items()}
    kinds = "".join(worth)

    def place_worth(index: int) -> float | None:
        return worth.get(line.symbols[index])

    left, barred = without_barred(line.symbols, kinds, sum(map(line.symbols.count, kinds)), VERDICT_BARS, place_worth)
    _, hits = strongest(left, _supports())
    said = {
        place: worth[line.symbols[place]] if hits[place] else 1 - worth[line.symbols[place]] for place in sorted(hits)
    }
    if len(set(said.values())) > 1:
        words = dict.fromkeys(line.word(place) for place in said)
        return f"the reply gives several verdicts: {', '.join(list(words)[:5])}"
    for place, value in said.items():
        return Found(line.place(place), line.word(place), value)
    why = f" ({line.word(barred[0])} is {barred[1]})" if barred else ""
    return f"no verdict in the reply{why}: {' '.join(reply.split())[:80]}"


@cache
def _supports() -> tuple[Support, ...]:
    return by_strength(VERDICT_SUPPORTS)
