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
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

from .criteria import Criterion, Scale, ScaleLike

FORMS = ("score_only", "free_text", "rate_explain", "analyze_rate")
"""The output forms of Chiang & Lee (2023), §3.2."""

MIN_COVERAGE = 0.5
"""A distribution that holds less than this share of the probability mass is not trusted."""


@dataclass(frozen=True)
class Reading:
    """What one reply says about the score.

    Attributes:
        score: `Σ s·p(s)` (Liu et al. 2023, eq. 1); None where the reply could not be read or is not trusted.
        distribution: score to probability, summing to one; empty where nothing was read.
        coverage: the share of the probability mass that lies on the scale; 1 for a rating read from text.
        bounds: the lowest and the highest value of the score if the mass off the scale were known.
        error: why there is no score.
        off_grid: whether the judge answered between two steps of the scale.
    """

    score: float | None
    distribution: Mapping[float, float]
    coverage: float
    bounds: tuple[float, float]
    error: str | None = None
    off_grid: bool = False


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


def read_logprobs(
    content: Sequence[Mapping[str, Any]],
    scale: ScaleLike,
    form: str = "rate_explain",
    criterion: Criterion | str | None = None,
    *,
    off_grid: str = "keep",
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
    found = _find("".join(token.text for token in tokens), scale, form, criterion, shown)
    if isinstance(found, str):
        return _unread(scale, found)
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
    return _distribution(masses, unknown, scale, between)


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
        return _unread(VERDICTS, found)
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
        return _unread(VERDICTS, found)
    masses: dict[float, float] = {}
    least = unlisted = 1.0
    for spelling, mass in _branches(tokens, found.start, VERDICTS):
        least, unlisted = min(least, mass), unlisted - mass
        if spelling.value is not None:
            masses[spelling.value] = masses.get(spelling.value, 0.0) + mass
    reading = _distribution(masses, [], VERDICTS, False)
    absent = {1.0, 0.0} - set(masses)
    if reading.score is None or len(absent) != 1:
        return reading
    masses[absent.pop()] = min(least, max(0.0, unlisted))
    total = sum(masses.values())
    p = {value: mass / total for value, mass in masses.items()}
    return replace(reading, score=sum(value * share for value, share in p.items()), distribution=p)


def _distribution(
    masses: dict[float, float], unknown: list[tuple[float, float, float]], scale: Scale, off_grid: bool
) -> Reading:
    total = sum(masses.values())
    if total > 1:  # rounding in the provider's log-probabilities
        masses, total = {value: mass / total for value, mass in masses.items()}, 1.0
    if total <= 0:
        return _unread(scale, "no score of the scale is among the alternatives at the rating's position")
    distribution = {value: masses[value] / total for value in sorted(masses)}
    score = min(max(sum(value * p for value, p in distribution.items()), scale.low), scale.high)
    known = sum(value * mass for value, mass in masses.items())
    missing = max(0.0, 1.0 - total - sum(mass for mass, _, _ in unknown))
    low = known + missing * scale.low + sum(mass * least for mass, least, _ in unknown)
    high = known + missing * scale.high + sum(mass * most for mass, _, most in unknown)
    bounds = (max(low, scale.low), min(high, scale.high))
    if total < MIN_COVERAGE:
        error = f"not trusted: coverage {total:.3g} is below {MIN_COVERAGE:g}"
        return Reading(None, distribution, total, bounds, error, off_grid)
    return Reading(score, distribution, total, bounds, None, off_grid)


def _unread(scale: Scale, reason: str) -> Reading:
    return Reading(None, {}, 0.0, (scale.low, scale.high), reason)


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


def _find_verdict(reply: str, shown: Iterable[str]) -> _Found | str:
    """The place of the letter (or word) that gives a verdict, and what it is worth; or why there is none."""
    text = _visible(reply, shown).translate({ord("*"): " ", ord("`"): " ", ord("#"): " "})
    if not text.strip():
        return _nothing(reply)
    text = _blank(text, (match.span() for match in _NOT_CHOSEN.finditer(text)), "~")
    for rule in _VERDICT_RULES:
        hits = [_worth(match) for match in rule.finditer(text)]
        if len({hit.value for hit in hits}) > 1:
            return f"the reply gives several verdicts: {', '.join(dict.fromkeys(hit.text for hit in hits))}"
        if hits:
            return hits[0]
    return f"no verdict in the reply: {' '.join(reply.split())[:80]}"


def _worth(match: re.Match[str]) -> _Found:
    group = next(name for name, text in match.groupdict().items() if text is not None)
    text = match[group]
    value = {"A": 1.0, "1": 1.0, "B": 0.0, "2": 0.0}.get(text, 0.5)
    return _Found(match.start(group), text, value)


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
    return text.translate(_FULL_WIDTH).lstrip(" \t\n\"'`*_:([{").lower()


@lru_cache(4096)
def _spelling(text: str, scale: Scale) -> _Spelling:
    """What a text denotes that begins where a value begins."""
    text = _bare(text)
    forms = _forms(scale)
    longer = {form: value for form, value in forms.items() if text and form.startswith(text) and form != text}
    if match := re.match(_NUMERAL, text):
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
    spelled = {_NUMBER_WORDS[int(v)]: v for v in scale.values if v == int(v) and 0 <= v <= 10}
    return spelled | rounded | numbers | dict(scale.words)
