"""The distribution over the scale at the tokens where the rating stands.

The rating is found in the text, and its place mapped to its token: there is no fixed index, and no search for an equal
digit. From there on the reply's own tokens are followed for as long as they spell one value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ..criteria import Criterion, Form, OffGrid, Scale, ScaleLike
from .candidates import Found
from .distribution import ROUNDING, Reading, distribution_of, unread
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
    text: str | None = None,
) -> Reading:
    """The distribution over the scale at the position of the rating.

    With `mass(s) = Σ exp(logprob)` over all spellings of s among the alternatives at that position,
    `coverage = Σ_s mass(s)`, `p(s) = mass(s) / coverage` and `score = Σ s·p(s)` (Liu et al. 2023, eq. 1);
    `bounds` puts the missing mass at the bottom and at the top of the scale. A score that spans tokens is followed
    along the reply's own tokens: `p(10) = p("1")·p("0"|"1")`. What may go on to a longer score of the scale, and is not
    listed, is mass whose score is unknown: it widens the bounds and is not covered.

    Args:
        content: the list under `logprobs.content` of an OpenAI chat completion: one mapping a token with `token`,
            `logprob` and `top_logprobs`, a list of the same.
        scale, form, criterion, off_grid, shown: as in `read_text`.
        text: the reply's text, where it is known: tokens that do not spell it are not read.

    >>> alternatives = [{"token": "4", "logprob": math.log(0.6)}, {"token": " 5", "logprob": math.log(0.3)}]
    >>> reading = read_logprobs([{**alternatives[0], "top_logprobs": alternatives}], "1-5", "score_only")
    >>> round(reading.score, 3), round(reading.coverage, 3), [round(bound, 2) for bound in reading.bounds]
    (4.333, 0.9, [4.0, 4.4])
    """
    scale = Scale.of(scale)
    given = Content.of(content, text)
    if isinstance(given, str):
        return unread(scale, given)
    found = find(given.text, scale, form, criterion, shown)
    if isinstance(found, str):
        return unread(scale, found)
    return distribution_at(given, found, scale, off_grid).reading


class Spread(NamedTuple):
    """What stands at a rating's place: the reading, mass by score, all mass listed, and the least of an alternative."""

    reading: Reading
    masses: Mapping[float, float]
    listed: float
    least: float


def distribution_at(
    given: Content, found: Found, scale: Scale, off_grid: OffGrid, *, upside_down: bool = False
) -> Spread:
    """The alternatives at a value's place as a reading; `upside_down` where naming a score speaks for its opposite."""
    nothing: tuple[Mapping[float, float], float, float] = ({}, 0.0, 0.0)
    if found.value is None:
        return Spread(unread(scale, f"the rating {found.text} is not on the scale {scale}"), *nothing)
    masses: dict[float, float] = {}
    unknown: list[tuple[float, float, float]] = []
    listed, least = 0.0, 1.0
    try:
        for spelling, mass in _branches(*given.at(found.start), _Spellings.of(scale, off_grid)):
            listed += mass
            least = mass if mass < least else least
            placed = spelling.score
            if placed is not None and upside_down:
                placed = scale.high + scale.low - placed
            if spelling.longer:
                possible = [*spelling.longer.values(), *([] if placed is None else [placed])]
                unknown.append((mass, min(possible), max(possible)))
            elif placed is not None:
                masses[placed] = masses.get(placed, 0.0) + mass
    except _NoProbabilityError as error:
        return Spread(unread(scale, f"its log-probabilities are none: {error}"), *nothing)
    between = any(score not in scale.values for score in masses)
    return Spread(distribution_of(masses, unknown, scale, between), masses, listed, least)


# --- tokens ----------------------------------------------------------------------------------------------------------


class _NoProbabilityError(ValueError):
    """A log-probability that is missing, NaN, positive or infinite, or several that exceed 1 in all."""


_MOST = math.log1p(ROUNDING)

Entry = Mapping[str, Any]
"""One token as the provider tells of it: `token`, `logprob`, and perhaps `bytes` and `top_logprobs`."""


def _text(entry: Entry) -> str:
    """A token's text, with the space marks of raw vocabularies as spaces."""
    text = str(entry.get("token") or "")
    return text if text.isascii() else text.replace("Ġ", " ").replace("▁", " ").replace("Ċ", "\n")


def _spelled(entry: Entry) -> bytes:
    """The bytes of the reply that a token stands for, which may be a part of a character's."""
    raw = entry.get("bytes")
    whole = isinstance(raw, list) and raw and all(isinstance(byte, int) and 0 <= byte < 256 for byte in raw)
    return bytes(raw) if whole else _text(entry).encode("utf-8", "replace")  # type: ignore[arg-type]


def _probability(entry: Entry) -> float:
    logprob = entry.get("logprob")
    if type(logprob) is float and logprob <= 0.0:  # nearly all
        return math.exp(logprob)
    if not isinstance(logprob, (int, float)) or math.isnan(logprob) or logprob > _MOST:
        raise _NoProbabilityError(f"{_text(entry)!r} has {logprob!r}")
    return math.exp(min(float(logprob), 0.0))


def _alternatives(entry: Entry) -> dict[str, float]:
    """What could have stood at a token's place, with its probability, those of one text added up; the sampled token
    need not be among the top ones.
    """
    top = entry.get("top_logprobs")
    found: dict[str, float] = {}
    for other in top if isinstance(top, list) else []:
        if isinstance(other, (dict, Mapping)):
            text = _text(other)
            found[text] = found.get(text, 0.0) + _probability(other)
    own = _text(entry)
    if own not in found:
        found[own] = _probability(entry)
    total = sum(found.values())
    if total > 1 + ROUNDING:
        raise _NoProbabilityError(f"the alternatives to {own!r} have the probability {total:.4g} in all")
    return {text: p / total for text, p in found.items()} if total > 1 else found


@dataclass(frozen=True)
class Content:
    """A reply's text and its tokens as they came, what each spells, and at which of these bytes the text begins."""

    text: str
    tokens: Sequence[Entry]
    spelled: Sequence[bytes]
    begins: int

    @classmethod
    def of(cls, content: Sequence[Entry], text: str | None = None) -> Content | str:
        """The tokens of a text, or, if it is not known, the text of the tokens; why not, where they do not spell it.

        Tokens before it (thinking that the provider keeps apart) and behind it (what ends a reply) are no matter.
        """
        pieces = [_spelled(entry) for entry in content]
        spelled = b"".join(pieces)
        if text is None:
            return cls(spelled.decode("utf-8", "replace"), content, pieces, 0)
        begins = spelled.rfind(text.strip().encode("utf-8", "replace"))
        if begins < 0 and spelled.strip() and text.strip().encode("utf-8", "replace").endswith(spelled.strip()):
            return cls(spelled.decode("utf-8", "replace"), content, pieces, 0)  # the reply was begun for the model
        if begins < 0:
            return "its log-probabilities belong to another text"
        return cls(text, content, pieces, begins - len(text[: len(text) - len(text.lstrip())].encode()))

    def at(self, place: int) -> tuple[Sequence[Entry], str]:
        """The tokens from that of a place in the text on, and what stands before the place in the first of them."""
        byte = self.begins + len(self.text[:place].encode("utf-8", "replace"))
        end = 0
        for index, spelled in enumerate(self.spelled):
            start, end = end, end + len(spelled)
            if byte < end:
                return self.tokens[index:], spelled[: max(0, byte - start)].decode("utf-8", "replace")
        return (), ""


# --- what the tokens at that place denote ----------------------------------------------------------------------------


def _branches(tokens: Sequence[Entry], before: str, spellings: _Spellings) -> Iterator[tuple[_Spelling, float]]:
    """Every way in which the value may be spelled that begins behind `before` in the first token, with its probability.

    The reply's own tokens are followed for as long as they spell one value; each alternative on the way is a spelling
    of its own, whose further tokens are not known. What is not listed on the way may be any longer score to which no
    listed token leads, or the end of the value.
    """
    inside = any(map(str.isalnum, before))
    spelled, mass = "", 1.0
    for position, token in enumerate(tokens):
        alternatives, own = _alternatives(token), _text(token)
        for text, probability in alternatives.items():
            if text == own:
                continue
            if before and not spelled:
                if text.startswith(before):
                    text = text.removeprefix(before)
                elif inside:
                    continue
            spelling = spellings[spelled + text]
            if spelling.longer and not spelled and _in_one_token(spelling, alternatives):
                spelling = spelling.ended()
            yield spelling, mass * probability
        if spelled and (rest := 1.0 - sum(alternatives.values())) > 1e-12:
            yield spellings[spelled].without(_bare(spelled + text) for text in alternatives), mass * rest
        mass *= alternatives[own]
        own = spelled + own if spelled else own.removeprefix(before)
        spelling = spellings[own]
        follow = _text(tokens[position + 1]) if position + 1 < len(tokens) else ""
        whole = bool(spelling.longer) and not spelled and _in_one_token(spelling, alternatives)
        ends = not follow or (spellings[own + follow].closed and not spelling.longer)
        if whole or spelling.closed or ends:
            yield spelling.ended() if whole or follow else spelling.at_end(), mass
            return
        spelled = own


def _in_one_token(spelling: _Spelling, listed: Iterable[str]) -> bool:
    """Whether the tokenizer has longer scores in one token: this one then does not go on."""
    return not spelling.longer.keys().isdisjoint(map(_bare, listed))


class _Spelling(NamedTuple):
    value: float | None
    score: float | None  # where on the scale the value is placed
    closed: bool  # something stands behind the value that cannot belong to it
    longer: Mapping[str, float]  # the scale's spellings that begin with this one

    def ended(self) -> _Spelling:
        return self._replace(closed=True, longer={}) if self.longer or not self.closed else self

    def at_end(self) -> _Spelling:
        """Where the reply ends: with a value, that is it; without one, a longer spelling was cut off."""
        return self.ended() if self.value is not None else self

    def without(self, listed: Iterable[str]) -> _Spelling:
        """Without the longer spellings to which listed tokens lead."""
        starts = [text for text in listed if text]
        longer = {form: v for form, v in self.longer.items() if not any(form.startswith(text) for text in starts)}
        return self._replace(closed=not longer, longer=longer)


@lru_cache(4096)
def _bare(text: str) -> str:
    return text.translate(PLAIN).lstrip(" \t\n\"'`*_:([{").lower()


class _Spellings(dict[str, _Spelling]):
    """What each text denotes that begins where a value of a scale begins, filled as texts are met."""

    LIMIT = 4096

    def __init__(self, scale: Scale, off_grid: OffGrid) -> None:
        super().__init__()
        self._scale = scale
        self._off_grid = off_grid

    @classmethod
    @lru_cache(64)
    def of(cls, scale: Scale, off_grid: OffGrid) -> _Spellings:
        """Those of a scale."""
        return cls(scale, off_grid)

    def __missing__(self, text: str) -> _Spelling:
        if len(self) >= self.LIMIT:
            self.clear()
        value, closed, longer = _denoted(text, self._scale)
        score = None if value is None else self._scale.place(value, self._off_grid)
        spelling = self[text] = _Spelling(value, score, closed, longer)
        return spelling


_NUMERAL = re.compile(r"[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)")


def _denoted(text: str, scale: Scale) -> tuple[float | None, bool, Mapping[str, float]]:
    """What a text denotes that begins where a value begins; whether it is closed, and what longer ones there are."""
    text = _bare(text)
    forms = _forms(scale)
    longer = {form: value for form, value in forms.items() if text and form.startswith(text) and form != text}
    if match := _NUMERAL.match(text):
        rest = text[match.end() :]
        foreign = rest[:1].isalnum() or (rest[:1] == "%" and scale.high != 100)
        worth = forms.get(match[0]) if scale.worded else float(match[0].replace(",", "."))
        return None if foreign else worth, bool(rest) and rest not in (".", ","), longer
    for form in sorted(forms, key=len, reverse=True):
        if text.startswith(form) and not text[len(form) : len(form) + 1].isalnum():
            return forms[form], text != form, longer
    return None, not longer, longer


@cache
def _forms(scale: Scale) -> dict[str, float]:
    """Every way to spell a score of the scale, lower case."""
    if scale.worded:
        return dict(scale.words)
    numbers = {f"{value:g}": value for value in scale.values}
    rounded = {f"{value:.2f}": value for value in scale.values if value != int(value)}
    spelled = {NUMBERS[int(v)]: v for v in scale.values if v == int(v) and 0 <= v <= 10}
    return spelled | rounded | numbers | dict(scale.words)
