r"""A reply as a line of symbols: one character for each word, number and mark. The rules are written in these.

Each class of words in `words.yaml`, and each kind of number and mark, has a character of its own; rules name the
classes (`LABEL COLON RATING`) and are compiled to expressions over the characters. A token takes the spaces and the
emphasis behind it along, so that neither stands in a rule's way, and the tokens add up to the reply, so that each has
its place.

>>> line = Lexer.of().line("**Coherence:** 4 out of 5")
>>> line.tokens, line.symbols == "".join(symbols()[name] for name in ("CAPITAL", "COLON", "NUM", "OUT", "OF", "NUM"))
(['Coherence', ':** ', '4 ', 'out ', 'of ', '5'], True)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

MARKS = {
    "COLON": ":", "COMMA": ",", "DOT": ".", "BANG": "!?", "SEMI": ";", "OPEN": "(", "CLOSE": ")", "LEFT": "[{",
    "RIGHT": "]}", "LT": "<", "GT": ">", "SLASH": "/", "EQ": "=→", "TIMES": "×", "PERCENT": "%", "PIPE": "|",
    "HASH": "#", "QUOTE": "\"'“”«»「」『』‘", "BULLET": "•·▪●", "CURRENCY": "$€£¥", "BACKSLASH": "\\", "ADD": "+",
    "ABOUT": "~≈", "LIMIT": "≥≤", "BLANK": "\0",
}  # fmt: skip
SHAPES = ("NUM", "BOLD", "WORDNUM", "OWN", "STARS", "ODD", "CRITERION", "FIRST", "SECOND", "THIRD", "OTHER", "CAPITAL",
          "HYPHEN", "DASH", "NL", "BARRED", "DENOM")  # fmt: skip
UNSAID = ("no idea", "no clue", "no opinion", "no comment", "no information", "no info", "no way to tell", "no answer",
          "no clear answer")  # fmt: skip
"""What begins like the answer "no", and is none."""
VERDICTS_ONLY = ("PREFER", "BETTER", "WORSE", "MORE", "LESS", "BAD", "TIE", "BOTH", "NEITHER", "WINS", "LOSES", "SAME")
"""Classes of words that mean something only where two candidates are compared."""

_SPARE = r"[ \t\r\f\v\u00a0\u2009\u202f\u3000\u200b*_`]*"
_HAN = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_LETTERS = r"[A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff]+(?:'[A-Za-z]+)*"
_NUMBER = r"(?:(?<![^\s(\[{\"'*:=/,`])[-+])?(?:\d+(?:[.,:]\d+)*|(?<![\w.])\.\d+)[½¼¾⅓⅔]?(?:[A-Za-z]\w*)?"
_PLAIN_NUMBER = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+(?:,\d{1,2})?|\d*\.\d+)[½¼¾⅓⅔]?(?=stars?\b|pts?\b|points?\b|\Z)"
)
_FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xC66, 0xE50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6)
PLAIN: dict[int, int | str] = (
    {0xFF01 + place: 0x21 + place for place in range(94)}
    | {zero + digit: 0x30 + digit for zero in _ZEROS for digit in range(10)}
    | {ord(odd): plain for odd, plain in zip("−﹣‑،؛؟।॥。｡’ʼ、【】〈〉《》⭐", "---,;?....'',[]<>«»★", strict=True)}
)
"""Characters that other scripts and faces write otherwise, each with the one character that stands for it here."""


class Line(NamedTuple):
    """A text's tokens, the symbol of each, and where in the text the first begins."""

    tokens: Sequence[str]
    symbols: str
    start: int

    def place(self, index: int) -> int:
        """Where in the text a token begins."""
        return self.start + sum(map(len, self.tokens[:index]))

    def word(self, index: int) -> str:
        """A token without what it took along."""
        return self.tokens[index].rstrip(" \t\r\f\v\u00a0\u2009\u202f\u3000\u200b*_`")


class Lexer(dict[str, str]):
    """Token to symbol, filled as tokens are met; for one scale's own words, one criterion, one pair of labels."""

    LIMIT = 50_000
    """Different tokens that are remembered."""

    def __init__(self, own: Sequence[str], criterion: str, labels: Sequence[str]) -> None:
        super().__init__()
        self._classes = _vocabulary(bool(labels))
        self._own = {" ".join(word.split()) for word in own}
        self._criterion = " ".join(re.split(r"[\s_-]+", criterion.lower()))
        self._labels = dict(zip(labels, ("FIRST", "SECOND", "THIRD"), strict=False))
        unsaid = UNSAID if "no" in self._own else ()
        phrases = [word for word in (*self._own, *unsaid, self._criterion) if not re.fullmatch(r"[a-z]*", word)]
        phrase = [r"[\s_-]+".join(map(re.escape, words.split())) for words in sorted(phrases, key=len, reverse=True)]
        label = [_whole(label) for label in sorted(labels, key=len, reverse=True)]
        label += [rf"{_WHICH.replace('([12])', '[12]').replace('(first', '(?:first')}(?!\w)" for _ in labels[:1]]
        inner = sorted((word for word in self._classes if re.match(f"[{_HAN}]", word)), key=len, reverse=True)
        parts = (
            *label,
            *(rf"(?i:{'|'.join(phrase)})(?!\w)" for _ in phrase[:1]),
            _LETTERS,
            _NUMBER,
            r"\n[\s*_`]*",
            "|".join(inner),
            r"[★☆✩✰][★☆✩✰\ufe0f ]*",
            r"[-–—=]{2,}",
            "\0+",
            r".",
        )
        self._pattern = re.compile(f"(?:{'|'.join(parts)}){_SPARE}", re.DOTALL)

    @classmethod
    @lru_cache(256)
    def of(cls, own: tuple[str, ...] = (), criterion: str = "", labels: tuple[str, ...] = ()) -> Lexer:
        """The lexer for these words; made once."""
        return cls(own, criterion, labels)

    def line(self, text: str) -> Line:
        """A text's tokens and symbols."""
        start = len(text) - len(text.lstrip(" \t\r\f\v\u00a0\u2009\u202f\u3000\u200b*_`\n\ufeff"))
        tokens = self._pattern.findall(text, start) if start else self._pattern.findall(text)
        line = "".join([self[token] for token in tokens])
        if "**" in text:
            line = _with_bold(tokens, line, text[:start])
        return Line(tokens, line, start)

    def __missing__(self, token: str) -> str:
        if len(self) >= self.LIMIT:
            self.clear()
        symbol = self[token] = symbols()[self._class(token)]
        return symbol

    def _class(self, token: str) -> str:
        if token[0] == "\n":
            return "NL"
        bare = token.rstrip(" \t\r\f\v\u00a0\u2009\u202f\u3000\u200b*_`")
        word = " ".join(re.split(r"[\s_-]+", bare.lower()))
        if bare in self._labels:
            return self._labels[bare]
        if self._labels and (which := _WHICH_ONE.fullmatch(bare)):
            return "FIRST" if (which[1] or which[2]).lower() in ("1", "first", "former") else "SECOND"
        if word in self._own:
            return "NUM" if any(map(str.isdigit, word)) else "OWN"
        if word == self._criterion:
            return "CRITERION"
        if bare[:1] in "-–—=" and bare:
            if len(bare) > 1 and not any(map(str.isdigit, bare)):
                return "DASH"
            if len(bare) == 1 and bare != "=":
                return "DASH" if token != bare or bare == "—" else "HYPHEN"
        if any(map(str.isdigit, bare)) or bare[:1] in "½¼¾⅓⅔":
            return "NUM" if _PLAIN_NUMBER.match(bare) else "ODD"
        if bare[:1] in "★☆✩✰" and bare:
            return "STARS"
        for name, marks in MARKS.items():
            if bare in marks and bare:
                return name
        if word in NUMBERS:
            return "WORDNUM"
        if (found := self._classes.get(word)) and not (found == "ARTICLE" and bare[0].isupper()):
            return found
        if word.endswith("n't"):
            return "NOT"
        return "CAPITAL" if bare[:1].isupper() else "OTHER"


_NOUNS = "summary|response|answer|option|candidate|text|output|assistant|version|story|dialogue|translation|one"
_WHICH = rf"(?i:(?:{_NOUNS})\s*#?([12])|the\s+(first|second|former|latter)(?:\s+(?:{_NOUNS}))?)"
_WHICH_ONE = re.compile(_WHICH)
"""Candidates by their number, whatever their labels are."""


def _whole(label: str) -> str:
    """A label that does not stand inside of a word."""
    before = r"(?<!\w)" if re.match(r"\w", label) else ""
    after = r"(?!\w|'\w)" if re.search(r"\w\Z", label) else ""
    return f"{before}{re.escape(label)}{after}"


def _with_bold(tokens: Sequence[str], line: str, before: str) -> str:
    """The line with the numbers that are emphasised on their own marked as such."""
    number, bold = symbols()["NUM"], symbols()["BOLD"]
    ends = [before, *tokens]
    return "".join(
        bold if symbol == number and "**" in token and "**" in ends[place] else symbol
        for place, (symbol, token) in enumerate(zip(line, tokens, strict=True))
    )


@cache
def _words() -> Mapping[str, Mapping[str, Sequence[str]]]:
    import yaml

    return dict(yaml.safe_load((Path(__file__).parent / "words.yaml").read_text(encoding="utf-8")))


@cache
def _vocabulary(verdicts: bool) -> dict[str, str]:
    """The class of each word; one that stands in several belongs to the earliest."""
    found: dict[str, str] = {}
    names = (*VERDICTS_ONLY, *_words()) if verdicts else [name for name in _words() if name not in VERDICTS_ONLY]
    for name in names:
        for words in _words()[name].values():
            for word in words:
                found.setdefault(word, name)
    return found


NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@cache
def symbols() -> dict[str, str]:
    """A character for each class of tokens, by the name that rules call it."""
    return {name: chr(0x80 + place) for place, name in enumerate((*MARKS, *SHAPES, *_words()))}


def number(word: str) -> float:
    """What a number token is worth.

    >>> number("4"), number("3½"), number("2,5"), number("four"), number("-3")
    (4.0, 3.5, 2.5, 4.0, -3.0)
    """
    if word.lower() in NUMBERS:
        return float(NUMBERS.index(word.lower()))
    digits = re.match(r"[-+]?[\d.,]+", word)
    text = digits[0] if digits else "0"
    thousands = re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+", text)
    value = float(text.replace(",", "" if thousands else "."))
    return value + _FRACTIONS.get(word[len(text) : len(text) + 1], 0.0)


def compiled(pattern: str, unions: Mapping[str, str]) -> re.Pattern[str]:
    """A rule's pattern over symbols: names of classes and unions become sets of them, and spaces go.

    [ONE OTHER] is any of these, NOT_IN(ONE OTHER) anything else; RATING is the value that the rule is about (group
    `rating`), START and END the reply's. A union whose text is a pattern of its own stands for that.
    """

    def members(names: str) -> str:
        return "".join(members(unions[name]) if name in unions else symbols()[name] for name in names.split())

    def named(match: re.Match[str]) -> str:
        name = match[0]
        if name in ("START", "END"):
            return r"\A" if name == "START" else r"\Z"
        if name == "RATING":
            return f"(?P<rating>[{members('VALUE')}])"
        if name.startswith("NOT_IN"):
            return f"[^{members(name[7:-1])}]"
        if not re.fullmatch("[A-Z ]*", unions.get(name, "")):
            return _NAMES.sub(named, unions[name])
        return f"[{members(name.strip('[]'))}]"

    return re.compile(_NAMES.sub(named, pattern).replace(" ", ""))


_NAMES = re.compile(r"NOT_IN\([^)]*\)|\[[A-Z ]+\]|(?<!\?)\b[A-Z]+\b")


def word_class(word: str) -> str:
    """The class of a word where a rating is looked for; OTHER if it is in none.

    >>> word_class("score"), word_class("maximum")
    ('LABEL', 'BOUND')
    """
    return _vocabulary(False).get(word, "OTHER")
