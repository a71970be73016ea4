"""From a judge's reply to a distribution over the scale.

A rating is first found in the *text*: the number or word after the label, wherever the form puts it. Text that is not
the judge's verdict (its thinking, ranges such as "1-5", what it quotes) is blanked out beforehand, character for
character, so that a position in the cleaned text is one in the reply. The reading of log-probabilities then maps that
position to its token: there is no fixed index, and no search for an equal digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from ..criteria import Criterion, Scale, ScaleLike
from .distribution import FORMS, Reading, _unread


def read_text(
    reply: str,
    scale: ScaleLike,
    form: str = "rate_explain",
    criterion: Criterion | str | None = None,
    *,
    off_grid: str = "keep",
    shown: Iterable[str] = (),
) -> Reading:
    """The rating in a reply's text.

    Args:
        reply: the judge's reply.
        scale: the allowed scores, or anything that `Scale.of` takes.
        form: which form the judge was given (one of `FORMS`): where the reply has several labelled ratings, the first
            counts, but the last in the forms that put text before the rating.
        criterion: the criterion or its name, which a reply may use as label ("Coherence: 3").
        off_grid: what to do with a value between two steps: "keep", "floor" or "reject".
        shown: the texts that the judge was shown; where the reply repeats one, that is not the judge speaking.

    >>> read_text("1. Naturalness: 2", "1-3").score
    2.0
    >>> read_text("I would give it 3 out of 5, as it covers 4 points.", "1-5", "free_text").score
    3.0
    >>> read_text("Rating: 15", "0-10").error
    'the rating 15 is not on the scale 0-10'
    """
    scale = Scale.of(scale)
    found = _find(reply, scale, form, criterion, shown)
    if isinstance(found, str):
        return _unread(scale, found)
    value = scale.place(found.value, off_grid) if found.value is not None else None
    if value is None:
        return _unread(scale, f"the rating {found.text} is not on the scale {scale}")
    between = scale.place(found.value or 0.0, "reject") is None
    return Reading(value, {value: 1.0}, 1.0, (value, value), off_grid=between)


# --- where the rating stands in the text -----------------------------------------------------------------------------


class _Found(NamedTuple):
    start: int
    text: str
    value: float | None


_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_N = r"\d+(?:\.\d+)?"
_NUMERAL = rf"[-+]?(?:{_N}|\.\d+)"
_NUMBER = rf"(?<![\w.,#$€£]){_NUMERAL}(?:\s*(?:/|out of)\s*(?P<top>\d+))?(?:\s*(?P<percent>%))?(?!\w|[.,:/-]\d)"
_SCALE_MENTION = re.compile(  # says what could be answered, not what was
    rf"\(\s*{_N}\s*(?:[-–—]|to)\s*{_N}\s*\)"
    rf"|\b(?:scale|range|ranging|between|from)\b[^\d\n]{{0,14}}{_N}\s*(?:[-–—]|to|and)\s*{_N}",
    re.IGNORECASE,
)
_SEVERAL_NUMBERS = re.compile(
    rf"(?<![\w.]){_N}(?:[-–—]|\s+(?:to|through)\s+){_N}(?!\w)|(?<![\w.]){_N}(?:\s*,\s*{_N})*\s*,?\s*\b(?:or|and)\s+{_N}\b",
    re.IGNORECASE,
)
_LIST = rf"(?s:{_N}.*^\W{{0,9}}{_N}\s?[.):(])"  # a later line begins with a number too: an enumeration
_QUOTED = re.compile(r'"[^"\n]*\s[^"\n]*"|“[^”]*\s[^”]*”|«[^»]*\s[^»]*»')
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)|\A(?:(?!<think>).)*</think>", re.DOTALL)
_REFUSAL = re.compile(r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:no|')t|won't)|as an AI)\b", re.IGNORECASE)
_FULL_WIDTH = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x2212: "-", 0xFE63: "-"}


def _blank(text: str, spans: Iterable[tuple[int, int]], fill: str) -> str:
    for start, end in spans:
        text = text[:start] + fill * (end - start) + text[end:]
    return text


def _visible(reply: str, shown: Iterable[str]) -> str:
    """The reply with all that is not the judge's own verdict blanked out; as long as the reply."""
    text = reply.translate(_FULL_WIDTH)
    text = _blank(text, (match.span() for match in _THINKING.finditer(text)), " ")
    for other in shown:
        other = other.strip()
        if len(other) <= len(text) and len(other.split()) > 2:
            text = text.replace(other.translate(_FULL_WIDTH), "~" * len(other))
    return text


def _nothing(reply: str) -> str:
    """Why a reply has nothing visible in it."""
    return "the reply is empty" if not reply.strip() else "the reply holds nothing but the judge's thinking"


def _find(reply: str, scale: Scale, form: str, criterion: Criterion | str | None, shown: Iterable[str]) -> _Found | str:
    """The rating's place and value, or the reason why there is none."""
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}; known: {', '.join(FORMS)}")
    text = _visible(reply, shown)
    if not text.strip():
        return _nothing(reply)
    name = criterion.short_name if isinstance(criterion, Criterion) else (criterion or "").rpartition("/")[2]
    spoken = re.sub(r"[\s_-]+", r"[\\s_-]+", re.escape(name).replace(r"\ ", " ").replace(r"\-", "-"))
    if re.search(r"\{\s*\"", text):
        return _find_in_json(text, scale, spoken)
    text = text.translate({ord("*"): " ", ord("`"): " "})
    quotes = (match.span() for match in _QUOTED.finditer(text) if match[0].strip() != text.strip())
    text = _blank(text, quotes, "~")
    text = _blank(text, (match.span() for match in _SCALE_MENTION.finditer(text)), " ")
    text = _blank(text, (match.span() for match in _SEVERAL_NUMBERS.finditer(text)), "~")
    for patterns, labelled in _rules(scale, spoken, form):
        hits = [_evaluate(match, scale) for pattern in patterns for match in pattern.finditer(text)]
        if not hits:
            continue
        if labelled:
            return hits[-1] if form in ("analyze_rate", "free_text") else hits[0]
        if len({hit.value for hit in hits}) > 1:
            return f"the reply names several ratings: {', '.join(dict.fromkeys(hit.text for hit in hits))}"
        return hits[0]
    said = " ".join(reply.split())
    reason = "the judge refused" if _REFUSAL.search(text) else "no rating in the reply"
    return f"{reason}: {said[:80]}{'…' if len(said) > 80 else ''}"


def _find_in_json(text: str, scale: Scale, spoken: str) -> _Found | str:
    """The value behind the first key that is the criterion's name, or else that says score or rating.

    Strings are stepped over whole, so nothing inside one is taken for a key. The text may be cut off.
    """
    rated: list[_Found] = []
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"(\s*:\s*)?', text, re.DOTALL):
        key = match[1].strip()
        if not match[2] or not re.fullmatch(rf"(?:.*[\s_-])?(?:rating|score|{spoken or 'rating'})", key, re.IGNORECASE):
            continue
        value = re.compile(r'"([^"]*)"?|[^\s,}\]{\["]+').match(text, match.end())
        if not value:
            continue
        inner = value.span(1) if value[1] is not None else value.span()
        hit = re.compile(rf"\s*{_value(scale)}", re.IGNORECASE).match(text, inner[0])
        found = hit and _evaluate(hit, scale)
        if not found or found.start >= inner[1]:
            return f"the JSON reply's {match[1]!r} is {value[0][:40]}, which is no number"
        if spoken and re.fullmatch(spoken, key, re.IGNORECASE):
            return found
        rated.append(found)
    return rated[0] if rated else "the JSON reply has no score in it"


def _named(scale: Scale) -> str:
    """The scale's own words as a pattern; one that never matches where it has none."""
    words = sorted((word for word in scale.words if not re.fullmatch(_N, word)), key=len, reverse=True)
    return rf"\b(?P<word>{'|'.join(map(re.escape, words))})\b" if words else r"(?P<word>(?!))"


def _value(scale: Scale) -> str:
    return rf"(?:{_named(scale)}|(?P<number>{_NUMBER})|\b(?P<spelled>{'|'.join(_NUMBER_WORDS)})\b)"


@cache
def _rules(scale: Scale, spoken: str, form: str) -> tuple[tuple[tuple[re.Pattern[str], ...], bool], ...]:
    """Where a rating can stand in a reply, the surest place first.

    Each rule is a tuple of patterns, and whether they look for a label. Several labelled ratings are several answers,
    of which the form tells the right one; all that another rule finds must agree.
    """
    value, number, word = _value(scale), rf"(?P<number>{_NUMBER})", _named(scale)
    names = f"|{spoken}" if spoken else ""
    label = (
        rf"(?:(?:my|the|final|overall|evaluation{names})\s+)*(?:rating|score{names})\"?"
        rf"(?:\s*\([^)\n]{{0,30}}\))?\s*(?:[:=]|\s[-–]\s|[-–](?=\s))\s*[\"'\[(<]*"
    )
    bullet = r"^[^\S\n]*(?:[-•>#]\s*|\d+[.)]\s*)*"
    unnamed = r"" if spoken else r"|[A-Z][a-z]{2,}"
    known = r"response|answer|result|grade|verdict|evaluation|rationale(?=:\s*\d)"
    other_label = rf"(?:[a-z]+\s)?(?:{known}{unnamed})\s*:\s*"
    verdict = (
        r"\b(?:rat(?:e|ed|ing|es)|scor(?:e|ed|es|ing)|giv(?:e|en|ing)|gave|assign(?:ed)?|award(?:ed)?"
        rf"|receives?|deserves?|earns?|merits?{names})\b[^.\d\n!?;]{{0,40}}?"
    )
    done = r"(?=\s*(?:\Z|\n|[.;(\"]))"
    stop = r"(?=\s*(?:\Z|[.,;:!?)\]\"'(\n]|[-–—]|(?:because|for|since|as|on|in|due|given|overall|stars?|out|here)\b))"
    opening = rf"\A\s*\W{{0,20}}?(?!{_LIST}){number}(?=\s*(?:\Z|[.,:;!()\n]|[-–—])|\s+(?-i:[A-Z]))"
    closing = rf"(?:\n|[.?!:]\s|\A\W{{0,9}}[a-z]+[\s,.:]{{1,9}})\W{{0,9}}?{number}\W{{0,9}}\Z"
    rules: list[tuple[tuple[str, ...], bool]] = [
        ((bullet + label + value,), True),
        ((r"(?<!\w)" + label + value,), True),
        ((bullet + other_label + value + done,), False),
        ((rf"\A\s*\d+[.)]\s+(?:[^\n]*\?[^\n]*\n\s*)?{value}\W{{0,9}}\Z",), False),
        ((closing,) if form == "analyze_rate" else (opening, closing), False),
        ((verdict + number + stop,), False),
        ((rf"\(\s*{number}\s*\)(?=\s*(?:[.,;\n]|\Z))",), False),
        ((rf"\A\s*\W{{0,20}}?{word}(?=\s*(?:\Z|[.,:;!()\n]|[-–—]))", rf"\A[^.,\n]*\bis\s+{word}\W{{0,9}}\Z"), False),
    ]
    flags = re.IGNORECASE | re.MULTILINE
    return tuple((tuple(re.compile(pattern, flags) for pattern in patterns), labelled) for patterns, labelled in rules)


def _evaluate(match: re.Match[str], scale: Scale) -> _Found:
    """What the value in a match denotes; None in its place where it is none that the scale could hold."""
    groups = match.groupdict()
    if word := groups.get("word"):
        return _Found(match.start("word"), word, scale.words[word.lower()])
    if word := groups.get("spelled"):
        return _Found(match.start("spelled"), word, float(_NUMBER_WORDS.index(word.lower())))
    text = groups["number"]
    value: float | None = float(re.match(_NUMERAL, text)[0])  # type: ignore[index]
    if (groups["percent"] and scale.high != 100) or (groups["top"] and float(groups["top"]) != scale.high):
        value = None  # rated on another scale: 8/10 is no 8 on 1-5, nor is it clear what else it is
    return _Found(match.start("number"), text, value)
