"""The values of a text with what speaks for and against each, and the one rule that chooses among them or declines."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def _reason(text: str, barred: str) -> str:
    said = " ".join(text.replace("\0", " ").split())
    reason = "the judge refused" if _REFUSAL.search(text) else "no rating in the reply"
    return f"{reason}{f' ({barred})' if barred else ''}: {said[:80]}{'…' if len(said) > 80 else ''}"


class Candidates:
    """The values of a text, with what was found out about each.

    Attributes:
        line: the text's tokens.
        symbols: their symbols, in which values that are barred no longer are values.
        barred: what barred the first of them, in words.
    """

    def __init__(self, line: Line, scale: Scale, named: bool) -> None:
        self.line = line
        self.symbols = line.symbols
        self.scale = scale
        self.named = named
        self.barred = ""
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
            found._bar(values)
        return found

    def _find_scales(self) -> None:
        """Whether the reply says that it rates on another scale."""
        if self.scale.worded:
            return
        for rule in OTHER_SCALES:
            for match in rule.regex.finditer(self.symbols):
                top = self._number(match.start("top"))
                self._foreign |= top is not None and top != self.scale.high

    def _find_denominators(self) -> None:
        """`out of 5`, `/5`, `%`: the top of the scale that the value before it is on."""
        for rule in DENOMINATORS:
            for match in rule.regex.finditer(self.symbols):
                index = match.start("rating")
                percent = match["percent"] is not None if "percent" in match.re.groupindex else False
                top = 100.0 if percent else self._number(match.start("top"))
                if top is None or (rule.several and top != self.scale.high):
                    continue
                start, end = match.span("rest")
                self.symbols = self.symbols[:start] + symbols()["DENOM"] * (end - start) + self.symbols[end:]
                self._tops[index] = (top, end)

    def _bar(self, values: int) -> None:
        """Take the values away that are something else, and remember what was first."""
        barred = symbols()["BARRED"]
        table = {ord(value): barred for value in _values()}
        for rule in BARS:
            if values < rule.values:
                continue
            matches = list(rule.regex.finditer(self.symbols))
            if rule.several and len({self._number(match.start("barred")) for match in matches}) < 2:
                continue
            for match in matches:
                groups = match.groupdict()
                if groups.get("spared") is not None:
                    continue
                start, end = match.span("barred") if "barred" in groups else match.span()
                piece = self.symbols[start:end]
                changed = piece.translate(table)
                self.symbols = self.symbols[:start] + changed + self.symbols[end:]
                if not self.barred and changed != piece:
                    first = next(at for at in range(len(piece)) if piece[at] != changed[at])
                    self.barred = f"{self.line.word(start + first)} is {rule.name}"

    def chosen(self, last: bool) -> Found | str | None:
        """The value with the strongest support; why there is none where two share it; None where none has any."""
        surest = 0
        hits: dict[int, None] = {}
        for strength, regex in _supports(self.named):
            if strength < surest:
                break
            for match in regex.finditer(self.symbols):
                surest = strength
                hits[match.start("rating")] = None
        if not hits:
            return None
        places = sorted(hits)
        found = [self.found(place) for place in places]
        if len({each.value for each in found}) > 1:
            if surest < LABELLED or self._side_by_side(places):
                return f"the reply names several ratings: {', '.join(dict.fromkeys(each.text for each in found))}"
            return found[-1] if last else found[0]
        return found[0]

    def _side_by_side(self, places: Sequence[int]) -> bool:
        """Whether nothing but labels stands between two of the values: one list of ratings, not several answers."""
        for one, other in pairwise(places):
            end = self._tops.get(one, (0.0, one + 1))[1]
            if _ADJACENT.regex.fullmatch(self.symbols[end:other]) and self.found(one).value != self.found(other).value:
                return True
        return False

    def found(self, index: int) -> Found:
        """The value at a token."""
        top, end = self._tops.get(index, (None, index + 1))
        text = "".join(self.line.tokens[index:end]).rstrip(" \t\n*_`.,;:!")
        value = self._number(index)
        foreign = self._foreign if top is None else top != self.scale.high
        return Found(self.line.place(index), text, None if foreign else value)

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
def _supports(named: bool) -> tuple[tuple[int, re.Pattern[str]], ...]:
    """The supports' strengths and patterns, the strongest first."""
    rules = SUPPORTS if named else (*SUPPORTS, UNNAMED)
    return tuple((rule.strength, rule.regex) for rule in sorted(rules, key=lambda rule: -rule.strength))
