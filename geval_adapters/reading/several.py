r"""The ratings of several samples in one reply, each on a line with its label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..criteria import Criterion, OffGrid, Scale, ScaleLike
from .candidates import Found
from .distribution import Reading, unread
from .text import LONGEST, find, reading_of
from .tokens import Content, distribution_at
from .visible import visible


def read_many(
    reply: str,
    labels: Sequence[str],
    scale: ScaleLike,
    criterion: Criterion | str | None = None,
    *,
    off_grid: OffGrid = "keep",
    shown: Iterable[str] = (),
    logprobs: Sequence[Mapping[str, Any]] | None = None,
    begun: bool = False,
    once: bool = False,
) -> dict[str, Reading]:
    r"""The rating behind each label, as judges give them that rate several samples at once (BatchEval, ACL 2024).

    The analysis may stand before the ratings or behind them, and a label several times: the last of its passages that
    holds a rating counts. A label without one has a reading with the reason, and no score.

    Args:
        reply: the judge's reply.
        labels: how the samples are called ("Sample1"), in any case.
        scale, criterion, off_grid, shown: as in `read_text`; decimal scores are kept unless `off_grid` says otherwise.
        logprobs: the list under `logprobs.content`, as in `read_logprobs`: each rating is then the distribution at its
            own tokens.
        begun: whether the first label may have been written for the judge, so that the reply goes on behind it: with
            its rating, and then with other labels, or else it does not.
        once: whether each label is to have one rating, in the labels' order. Two lines with different ratings for a
            label, and lines that are out of order, are then no rating of those labels; all others are read. A reply
            that rates a number 0 which nobody asked about numbers otherwise than was asked, and none is read.

    >>> reply = "Sample1: has 3 links.\nSample2: dull.\nSample1: 2.5\nSample2: 4"
    >>> found = read_many(reply, ["Sample1", "Sample2", "x"], "1-5")
    >>> [reading.score for reading in found.values()]
    [2.5, 4.0, None]
    >>> found["x"].error
    "the reply has no 'x'"
    >>> twice = read_many("Sample1: 2\nSample2: 4\nSample1: 5", ["Sample1", "Sample2"], "1-5", once=True)
    >>> twice["Sample1"].error, twice["Sample2"].score
    ("the reply rates 'Sample1' several times, as 2 and 5", 4.0)
    """
    scale = Scale.of(scale)
    given = None if logprobs is None else Content.of(logprobs, reply)
    if isinstance(given, str):
        return dict.fromkeys(labels, unread(scale, given))
    text = visible(given.text if given else reply, shown)
    if len(text) > LONGEST:
        return dict.fromkeys(labels, unread(scale, f"the reply has more than {LONGEST:,} characters"))
    ratings: dict[str, list[_Rating]] = {label: [] for label in labels}
    found = {label: unread(scale, f"the reply has no {label!r}") for label in labels}
    for passage in passages(text, labels, begun, others=once):
        label, start, end, labelled = passage
        rating = _rating(text, start, end, scale, criterion)
        if label not in ratings:
            if not isinstance(rating, str) and re.search(r"(?<!\d)0+$", label):
                return dict.fromkeys(labels, unread(scale, f"the reply rates {label!r}, so that others may be meant"))
        elif isinstance(rating, str):
            found[label] = unread(scale, rating)
        elif rating.bare or labelled:  # else it may be of any that has no label which can be read
            ratings[label].append(rating)
    chosen: dict[str, int] = {}
    for label, several in ratings.items():
        lines = [each for each in several if each.bare] if once else []
        if len({each.found.value for each in lines}) > 1:
            said = " and ".join(dict.fromkeys(each.found.text for each in lines))
            found[label] = unread(scale, f"the reply rates {label!r} several times, as {said}")
            continue
        for each in lines[:1] or several:
            reading = reading_of(each.found, scale, off_grid)
            if given and reading.score is not None:
                reading = distribution_at(given, each.found, scale, off_grid).reading
            if reading.score is not None or found[label].score is None:
                found[label], chosen[label] = reading, each.found.start
    for label in _out_of_order(chosen) if once else ():
        found[label] = unread(scale, f"the reply rates {label!r} out of order, so that it may mean another")
    return found


class Passage(NamedTuple):
    """What is said of a label: where it begins and ends, and whether the label stands there."""

    label: str
    start: int
    end: int
    labelled: bool = True


def passages(text: str, labels: Sequence[str], begun: bool = False, others: bool = False) -> Iterator[Passage]:
    r"""Where what is said of each label begins and ends, in the order of the text.

    A label is followed by a colon or the like, or stands alone on its line as a heading does. One that ends in a number
    is also ended by others of its kind that are none of these; which `others` adds, as they are spelled.

    >>> [passage[:3] for passage in passages("A1: 4\nA2: 3\nA3: 1", ["A1", "A2"])]
    [('A1', 3, 6), ('A2', 9, 12)]
    """
    names = {re.sub(r"[\s_]+", "", label.lower()): label for label in labels}
    words = {re.sub(r"\d+$", r"\\d+", r"[\s_]*".join(map(re.escape, label.lower().split()))) for label in labels}
    either = "|".join(sorted(words, key=len, reverse=True))
    ended = r"[*_`\"\]>) ]*[:=|\-–—]"
    alone = rf"^[^\w\n]*(?:\d+[.)] *)?({either})(?!\w)[^\w\n]*$"
    marks = list(re.finditer(rf"(?im){alone}|(?<![^\W_])({either})(?!\w){ended}", text)) if words else []
    spelled = [mark[mark.lastindex or 0] for mark in marks]
    called = [names.get(re.sub(r"[\s_]+", "", each.lower())) for each in spelled]
    goes_on = len(labels) == 1 or any(called)  # else it is about none of several, or about all
    if begun and labels and goes_on and called[:1] != [labels[0]]:
        yield Passage(labels[0], 0, marks[0].start() if marks else len(text), labelled=False)
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    for label, other, mark, end in zip(called, spelled, marks, ends, strict=True):
        if label is not None or others:
            yield Passage(label or other, mark.end(), end)


class _Rating(NamedTuple):
    """A rating, and whether it is what its line begins with, so that the line is there for it."""

    found: Found
    bare: bool


_LED = re.compile(r"[\W_]*(?:(?:rating|score)[\W_]*)?", re.IGNORECASE)


def _rating(text: str, start: int, end: int, scale: Scale, criterion: Criterion | str | None) -> _Rating | str:
    """The rating in a passage: that which its first line begins with, else the last of all."""
    passage = text[start:end]
    line = passage[: len(passage) - len(passage.lstrip())] + passage.lstrip().partition("\n")[0]
    first = find(line, scale, "analyze_rate", criterion)
    led = _LED.match(line)
    if not isinstance(first, str) and led and first.start <= led.end():
        return _Rating(first._replace(start=start + first.start), bare=True)
    found = find(passage, scale, "analyze_rate", criterion)
    return found if isinstance(found, str) else _Rating(found._replace(start=start + found.start), bare=False)


def _out_of_order(places: Mapping[str, int]) -> list[str]:
    """The labels that keep the places from rising: those that are not in every longest series which does rise."""
    rising = list(places.items())
    before = [0] * len(rising)
    behind = [0] * len(rising)
    for at, (_, place) in enumerate(rising):
        before[at] = 1 + max((before[i] for i in range(at) if rising[i][1] < place), default=0)
    for at in reversed(range(len(rising))):
        behind[at] = 1 + max((behind[i] for i in range(at + 1, len(rising)) if rising[i][1] > rising[at][1]), default=0)
    longest = max(before, default=0)
    ranks = [before[at] for at in range(len(rising)) if before[at] + behind[at] - 1 == longest]
    return [
        label
        for at, (label, _) in enumerate(rising)
        if before[at] + behind[at] - 1 < longest or ranks.count(before[at]) > 1
    ]
