"""From a judge's reply to a distribution over the scale.

A rating is first found in the *text*: the number or word after the label, wherever the form puts it. Text that is not
the judge's verdict (its thinking, ranges such as "1-5", what it quotes) is blanked out beforehand, character for
character, so that a position in the cleaned text is one in the reply. The reading of log-probabilities then maps that
position to its token: there is no fixed index, and no search for an equal digit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ..criteria import Criterion, Form, OffGrid, Scale, ScaleLike
from .distribution import Reading, distribution_of, unread
from .lexer import NUMBERS, PLAIN
from .text import find


def read_logprobs(
    content: Sequence[Mapping[str, Any]],
    scale: ScaleLike,
    form: Form = "rate_explain",
    criterion: Criterion | str | None = None,
    *,
    off_grid: OffGrid = "keep",
    shown: Iterable[str] = (),
) -> Reading:
    """The distribution over the scale at the position of the rating.

    With `mass(s) = Σ exp(logprob)` over all spellings of s among the alternatives at that position,
    `coverage = Σ_s mass(s)`, `p(s) = mass(s) / coverage` and `score = Σ s·p(s)` (Liu et al. 2023, eq. 1);
    `bounds` puts the missing mass at the bottom and at the top of the scale. A score that spans tokens is followed
    along the reply's own tokens: `p(10) = p("1")·p("0"|"1")`. An alternative that may or may not go on to a longer
    score of the scale is mass whose score is unknown: it widens the bounds and is not covered.

    Args:
        content: the list under `logprobs.content` of an OpenAI chat completion: one mapping a token with `token`,
            `logprob` and `top_logprobs`, a list of the same.
        scale, form, criterion, off_grid, shown: as in `read_text`.

    >>> alternatives = [{"token": "4", "logprob": math.log(0.6)}, {"token": " 5", "logprob": math.log(0.3)}]
    >>> reading = read_logprobs([{**alternatives[0], "top_logprobs": alternatives}], "1-5", "score_only")
    >>> round(reading.score, 3), round(reading.coverage, 3), [round(bound, 2) for bound in reading.bounds]
    (4.333, 0.9, [4.0, 4.4])
    """
    scale = Scale.of(scale)
    tokens = [_Token.of(entry) for entry in content]
    found = find("".join(token.text for token in tokens), scale, form, criterion, shown)
    if isinstance(found, str):
        return unread(scale, found)
    masses: dict[float, float] = {}
    unknown: list[tuple[float, float, float]] = []
    between = False
    for spelling, mass in _branches(tokens, found.start, scale):
        placed = None if spelling.value is None else scale.place(spelling.value, off_grid)
        if spelling.longer:
            possible = [*spelling.longer.values(), *([] if placed is None else [placed])]
            unknown.append((mass, min(possible), max(possible)))
        elif placed is not None:
            masses[placed] = masses.get(placed, 0.0) + mass
            between = between or placed not in scale.values
    return distribution_of(masses, unknown, scale, between)


NUMERAL = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)"


# --- what the tokens at that place denote ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Token:
    text: str
    probability: float
    top: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> _Token:
        top = entry.get("top_logprobs")
        return cls(*_piece(entry), top if isinstance(top, list) else [])

    @property
    def alternatives(self) -> list[tuple[str, float]]:
        """What could have stood here; a sampled token need not be among the top ones."""
        others = [_piece(other) for other in self.top if type(other) is dict or isinstance(other, Mapping)]
        if all(text != self.text for text, _ in others):
            others.append((self.text, self.probability))
        return others


def _piece(entry: Mapping[str, Any]) -> tuple[str, float]:
    """A token's text, with the space marks of raw vocabularies as spaces, and its probability."""
    logprob = entry.get("logprob")
    usable = isinstance(logprob, (int, float)) and not math.isnan(logprob)
    text = str(entry.get("token") or "")
    if not text.isascii():
        text = text.replace("Ġ", " ").replace("▁", " ")
    return text, math.exp(min(float(logprob), 0.0)) if usable else 0.0  # type: ignore[arg-type]


def _branches(tokens: Sequence[_Token], start: int, scale: Scale) -> Iterator[tuple[_Spelling, float]]:
    """Every way in which the value at `start` may be spelled, with its probability.

    The reply's own tokens are followed for as long as they spell one value; each alternative on the way is a spelling
    of its own, whose further tokens are not known.
    """
    offset = index = 0
    while offset + len(tokens[index].text) <= start:
        offset += len(tokens[index].text)
        index += 1
    before = tokens[index].text[: start - offset]
    spelled, mass = "", 1.0
    for position in range(index, len(tokens)):
        token, listed = tokens[position], 0.0
        own = spelled + token.text.removeprefix("" if spelled else before)
        alternatives = token.alternatives
        pieces = {_bare(text) for text, _ in alternatives}
        for text, probability in alternatives:
            listed += probability
            if text == token.text:
                continue
            if not spelled and text.startswith(before):
                text = text.removeprefix(before)
            elif not spelled and any(map(str.isalnum, before)):
                continue
            spelling = _spelling(spelled + text, scale)
            one_token = not spelled and not pieces.isdisjoint(spelling.longer)
            yield (spelling.ended() if one_token else spelling), mass * probability
        if spelled:  # what is not listed ends the value: the rest of p("1") stays with 1
            yield _spelling(spelled, scale).ended(), mass * max(0.0, 1.0 - listed)
        spelled, mass = own, mass * token.probability
        spelling = _spelling(spelled, scale)
        follow = "".join(later.text for later in tokens[position + 1 : position + 2])
        if not follow or spelling.closed or (_spelling(spelled + follow, scale).closed and not spelling.longer):
            yield spelling.ended(), mass
            return


class _Spelling(NamedTuple):
    value: float | None
    closed: bool  # something stands behind the value that cannot belong to it
    longer: Mapping[str, float]  # the scale's spellings that begin with this one

    def ended(self) -> _Spelling:
        return self._replace(closed=True, longer={})


@lru_cache(4096)
def _bare(text: str) -> str:
    return text.translate(PLAIN).lstrip(" \t\n\"'`*_:([{").lower()


@lru_cache(4096)
def _spelling(text: str, scale: Scale) -> _Spelling:
    """What a text denotes that begins where a value begins."""
    text = _bare(text)
    forms = _forms(scale)
    longer = {form: value for form, value in forms.items() if text and form.startswith(text) and form != text}
    if match := re.match(NUMERAL, text):
        rest = text[match.end() :]
        foreign = rest[:1].isalnum() or (rest[:1] == "%" and scale.high != 100)
        return _Spelling(None if foreign else float(match[0]), bool(rest) and rest != ".", longer)
    for form in sorted(forms, key=len, reverse=True):
        if text.startswith(form) and not text[len(form) : len(form) + 1].isalnum():
            return _Spelling(forms[form], text != form, longer)
    return _Spelling(None, not longer, longer)


@cache
def _forms(scale: Scale) -> dict[str, float]:
    """Every way to spell a score of the scale, lower case."""
    if scale.worded:
        return dict(scale.words)
    numbers = {f"{value:g}": value for value in scale.values}
    rounded = {f"{value:.2f}": value for value in scale.values if value != int(value)}
    spelled = {NUMBERS[int(v)]: v for v in scale.values if v == int(v) and 0 <= v <= 10}
    return spelled | rounded | numbers | dict(scale.words)
