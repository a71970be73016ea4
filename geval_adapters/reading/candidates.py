"""The values of a text with what speaks for and against each, and the one rule that chooses among them or declines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ..criteria import Scale
from .evidence import BARS, DENOMINATORS, LABELLED, OTHER_SCALES, SUPPORTS, UNNAMED, Rule
from .lexer import Lexer, Line, number, symbols
from .visible import without_quotes


class Found(NamedTuple):
    """A value in a reply: where it begins, how it is written, and its worth, None where it is on another scale."""

    start: int
    text: str
    value: float | None


def find_in_prose(text: str, scale: Scale, form: str, name: str) -> Found | str:
    """The rating in text that is the judge's own."""
    candidates = Candidates.of(without_quotes(text), scale, name)
    last = form in ("analyze_rate", "free_text")
    return candidates.chosen(last) or _reason(text, candidates.barred)


_REFUSAL = re.compile(r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:no|')t|won't)|as an AI)\b", re.IGNORECASE)


def _reason(text: str, barred: str | None) -> str:
    said = " ".join(text.replace("\0", " ").split())
    reason = "the judge refused" if _REFUSAL.search(text) else "no rating in the reply"
    return f"{reason}{f' ({barred})' if barred else ''}: {said[:80]}{'…' if len(said) > 80 else ''}"


def without_barred(
    line: str, kinds: str, values: int, bars: Sequence[Rule], worth: Callable[[int], float | None]
) -> tuple[str, tuple[int, str] | None]:
    """The line with the values that are something else marked as such; which was the first of them, and what it is.

    Args:
        line: symbols of a text.
        kinds: which symbols are values.
        values: how many of them there are.
        bars: the rules.
        worth: what the value at a place is worth.
    """
    table = {ord(kind): symbols()["BARRED"] for kind in kinds}
    first: tuple[int, str] | None = None
    for rule in bars:
        if values < rule.values:
            continue
        groups = rule.regex.groupindex
        matches = [each for each in rule.regex.finditer(line) if "spared" not in groups or each["spared"] is None]
        if not matches or (rule.several and len({worth(match.start("barred")) for match in matches}) < 2):
            continue
        parts, done = [], 0
        for match in matches:
            start, end = match.span("barred" if "barred" in groups else 0)
            piece = line[start:end]
            changed = piece.translate(table)
            parts += [line[done:start], changed]
            done = end
            if first is None and changed != piece:
                first = start + next(at for at in range(len(piece)) if piece[at] != changed[at]), rule.name
        line = "".join([*parts, line[done:]])
    return line, first


def strongest(line: str, supports: Sequence[Support]) -> tuple[int, dict[int, bool]]:
    """The highest strength of a support, and where the values that have it stand, each with whether it is for them."""
    surest = 0
    hits: dict[int, bool] = {}
    for strength, regex in supports:
        if strength < surest:
            break
        for match in regex.finditer(line):
            surest = strength
            against = "against" in regex.groupindex and match.start("against") >= 0
            hits[match.start("against" if against else "rating")] = not against
    return surest, hits


Support = tuple[int, re.Pattern[str]]
"""A rule's strength and its pattern."""


def by_strength(rules: Sequence[Rule]) -> tuple[Support, ...]:
    """The rules' strengths and patterns, the strongest first."""
    return tuple((rule.strength, rule.regex) for rule in sorted(rules, key=lambda rule: -rule.strength))


class Candidates:
    """The values of a text, with what was found out about each.

    Attributes:
        line: the text's tokens.
        symbols: their symbols, in which values that are barred no longer are values.
        barred: what the first of them is instead of a rating, in words.
    """

    def __init__(self, line: Line, scale: Scale, named: bool) -> None:
        self.line = line
        self.symbols = line.symbols
        self.scale = scale
        self.named = named
        self.barred: str | None = None
        self._tops: dict[int, tuple[float, int]] = {}
        self._foreign = False

    @classmethod
    def of(cls, text: str, scale: Scale, name: str) -> Candidates:
        """The candidates of a text for a rating on a scale, of a criterion if it is named."""
        found = cls(Lexer.of(_own(scale), name).line(text), scale, bool(name))
        values = sum(map(found.symbols.count, _values()))
        if values > 1:
            found._find_scales()
            found._find_denominators()
        elif "%" in text:
            found._find_denominators()
        if values and found.symbols not in _values():
            found.symbols, why = without_barred(found.symbols, _values(), values, BARS, found._number)
            found.barred = why and f"{found.line.word(why[0])} is {why[1]}"
        return found

    def _find_scales(self) -> None:
        """Whether the reply says that it rates on another scale."""
        if self.scale.worded:
            return
        for rule in OTHER_SCALES:
            for match in rule.regex.finditer(self.symbols):
                top = self._number(match.start("top"))
                self._foreign |= top is not None and not self._is_top(top)

    def _find_denominators(self) -> None:
        """`out of 5`, `/5`, `%`: the top of the scale that the value before it is on."""
        for rule in DENOMINATORS:
            parts, done = [], 0
            for match in rule.regex.finditer(self.symbols):
                index = match.start("rating")
                percent = match["percent"] is not None if "percent" in match.re.groupindex else False
                top = 100.0 if percent else self._number(match.start("top"))
                if top is None or (rule.several and not self._is_top(top)):
                    continue
                start, end = match.span("rest")
                parts += [self.symbols[done:start], symbols()["DENOM"] * (end - start)]
                done = end
                self._tops[index] = (top, end)
            self.symbols = "".join([*parts, self.symbols[done:]])

    def chosen(self, last: bool) -> Found | str | None:
        """The value with the strongest support; why there is none where two share it; None where none has any."""
        surest, hits = strongest(self.symbols, _supports(self.named))
        if not hits:
            return None
        places = sorted(hits)
        worth = [self._worth(place) for place in places]
        if len(set(worth)) == 1:
            return self.found(places[0])
        if surest < LABELLED or self._side_by_side(places):
            texts = dict(zip(worth, map(self._text, places), strict=True)).values()
            return f"the reply names several ratings: {', '.join(list(texts)[:5])}"
        return self.found(places[-1 if last else 0])

    def _side_by_side(self, places: Sequence[int]) -> bool:
        """Whether nothing but labels stands between two of the values: one list of ratings, not several answers."""
        for one, other in pairwise(places):
            end = self._tops.get(one, (0.0, one + 1))[1]
            if _ADJACENT.regex.fullmatch(self.symbols, end, other) and self._worth(one) != self._worth(other):
                return True
        return False

    def found(self, index: int) -> Found:
        """The value at a token."""
        return Found(self.line.place(index), self._text(index), self._worth(index))

    def _text(self, index: int) -> str:
        """How the value at a token is written, its denominator with it."""
        end = self._tops.get(index, (0.0, index + 1))[1]
        return "".join(self.line.tokens[index:end]).rstrip(" \t\n*_`.,;:!")

    def _worth(self, index: int) -> float | None:
        """What the value at a token is worth, None where it is on another scale."""
        foreign = not self._is_top(self._tops[index][0]) if index in self._tops else self._foreign
        return None if foreign else self._number(index)

    def _is_top(self, top: float) -> bool:
        """Whether a denominator is this scale's; "weak 3/5" is on one that goes to a strong 5."""
        return top == self.scale.high or (self.scale.worded and top == int(self.scale.high))

    def _number(self, index: int) -> float | None:
        symbol, word = self.symbols[index], self.line.word(index)
        spoken = " ".join(re.split(r"[\s_-]+", word.lower()))
        if spoken in self.scale.words:
            return self.scale.words[spoken]
        if symbol == symbols()["STARS"]:
            full, empty = sum(map(word.count, "★")), sum(map(word.count, "☆✩✰"))
            return float(full) if not empty or full + empty == self.scale.high else None
        return number(word)


_ADJACENT = Rule(
    "side by side", "Rating: 3\nRating: ‹4›", "[DOT COMMA SEMI NL DASH HYPHEN BULLET LABEL COLON I OVERALL EQ]{1,8}"
)


@cache
def _own(scale: Scale) -> tuple[str, ...]:
    """The scale's own words, numbers aside."""
    return tuple(word for word in scale.words if not re.fullmatch(r"[-+]?[\d.]+", word))


@cache
def _values() -> str:
    return "".join(symbols()[name] for name in ("NUM", "BOLD", "WORDNUM", "OWN", "STARS"))


@cache
def _supports(named: bool) -> tuple[Support, ...]:
    return by_strength(SUPPORTS if named else (*SUPPORTS, UNNAMED))
