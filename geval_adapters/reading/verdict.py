"""From a judge's reply to a distribution over the scale.

A rating is first found in the *text*: the number or word after the label, wherever the form puts it. Text that is not
the judge's verdict (its thinking, ranges such as "1-5", what it quotes) is blanked out beforehand, character for
character, so that a position in the cleaned text is one in the reply. The reading of log-probabilities then maps that
position to its token: there is no fixed index, and no search for an equal digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..criteria import Scale
from .candidates import Found
from .distribution import Reading, distribution_of, unread
from .text import nothing_in
from .tokens import _branches, _Token
from .visible import visible

VERDICTS = Scale.of({"A": 1, "tie": 0.5, "C": 0.5, "B": 0})
"""The answers to "which is better?" as a scale: a score is the probability that the first is."""


def read_verdict(reply: str, *, shown: Iterable[str] = ()) -> Reading:
    """Which of two candidates a reply prefers: 1 for the first (A), 0 for the second (B), .5 for a tie (C).

    >>> [read_verdict(reply).score for reply in ("Summary A", "B: Summary #2 is clearer.", "It is a tie.")]
    [1.0, 0.0, 0.5]
    >>> read_verdict("I will not pick A; B").score
    0.0
    """
    found = _find_verdict(reply, shown)
    if isinstance(found, str):
        return unread(VERDICTS, found)
    value = found.value or 0.0
    return Reading(value, {value: 1.0}, 1.0, (value, value))


def read_verdict_logprobs(content: Sequence[Mapping[str, Any]], *, shown: Iterable[str] = ()) -> Reading:
    """The probability that the first candidate is better, from the alternatives at the answer's label.

    `p = P(A) / (P(A) + P(B))` (Liusie et al. 2024, eq. 3), a tie's mass counting half for each. A label that is
    absent from the alternatives is as likely as the least of them at most, and no more than what they leave: that much
    is put in its place, so that its absence is no certain win. Coverage is that of the labels that are there.

    Args:
        content: as in `read_logprobs`.
        shown: as in `read_text`.
    """
    tokens = [_Token.of(entry) for entry in content]
    found = _find_verdict("".join(token.text for token in tokens), shown)
    if isinstance(found, str):
        return unread(VERDICTS, found)
    masses: dict[float, float] = {}
    least = unlisted = 1.0
    for spelling, mass in _branches(tokens, found.start, VERDICTS):
        least, unlisted = min(least, mass), unlisted - mass
        if spelling.value is not None:
            masses[spelling.value] = masses.get(spelling.value, 0.0) + mass
    reading = distribution_of(masses, [], VERDICTS, False)
    absent = {1.0, 0.0} - set(masses)
    if reading.score is None or len(absent) != 1:
        return reading
    masses[absent.pop()] = min(least, max(0.0, unlisted))
    total = sum(masses.values())
    p = {value: mass / total for value, mass in masses.items()}
    return replace(reading, score=sum(value * share for value, share in p.items()), distribution=p)


_NOUN = r"(?:(?:summary|response|output|answer|option|candidate|text|assistant|version)\s+)"
_NOT_CHOSEN = re.compile(
    rf"(?:\bnot|n't|\bnever|\bthan|\bover|\binstead of|\bbeats|\bagainst|\bunlike)\s+(?:\w+\s+){{0,2}}?{_NOUN}?[AB]\b"
)
_VERDICT_RULES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"\A\s*\W{{0,9}}(?i:{_NOUN}?)(?P<letter>[ABC])(?=\s*(?:\Z|[.:;,)\]\"\n-])"
        r"|\s+(?:is|was)\s+(?:the\s+)?(?:better|best|more|preferable|superior)\b)",
        rf"(?i:\b(?:answer|verdict|choice|winner|better|best|prefer\w*|choose|pick|select|go with)\b)[^.\n;]{{0,40}}?"
        rf"(?i:{_NOUN}?)\b(?P<letter>[ABC])\b(?!\s+[a-z])",
        rf"(?i:{_NOUN})(?P<letter>[AB])\s+(?:is|was|has|wins|reads|does|provides|gives)\b",
        rf"(?:[;,.:?!\n]\s*|\bis\s+)(?i:{_NOUN}?)(?P<letter>[ABC])\W{{0,9}}\Z",
        rf"(?i:{_NOUN})#?(?P<digit>[12])\s+(?:is|was|has|wins|reads)\b|\A\s*\W{{0,9}}(?i:{_NOUN})#?(?P<only>[12])\W{{0,9}}\Z",
        r"(?i:\A\s*\W{0,9}(?P<tie>tie|draw|equal|both|neither)\b)|(?i:\b(?:is|a|are)\s+(?P<drawn>tie|draw|equally|equal)\b)",
    )
)


def _find_verdict(reply: str, shown: Iterable[str]) -> Found | str:
    """The place of the letter (or word) that gives a verdict, and what it is worth; or why there is none."""
    text = visible(reply, shown).translate({ord("*"): " ", ord("`"): " ", ord("#"): " "})
    if reason := nothing_in(text, reply):
        return reason
    text = _NOT_CHOSEN.sub(lambda match: "~" * len(match[0]), text)
    for rule in _VERDICT_RULES:
        hits = [_worth(match) for match in rule.finditer(text)]
        if len({hit.value for hit in hits}) > 1:
            return f"the reply gives several verdicts: {', '.join(dict.fromkeys(hit.text for hit in hits))}"
        if hits:
            return hits[0]
    return f"no verdict in the reply: {' '.join(reply.split())[:80]}"


def _worth(match: re.Match[str]) -> Found:
    group = next(name for name, text in match.groupdict().items() if text is not None)
    text = match[group]
    value = {"A": 1.0, "1": 1.0, "B": 0.0, "2": 0.0}.get(text, 0.5)
    return Found(match.start(group), text, value)
