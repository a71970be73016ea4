r"""The ratings of several samples in one reply, each on a line with its label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..criteria import Criterion, OffGrid, Scale, ScaleLike
from .distribution import Reading, unread
from .text import LONGEST, read_text
from .visible import visible


def read_many(
    reply: str,
    labels: Sequence[str],
    scale: ScaleLike,
    criterion: Criterion | str | None = None,
    *,
    off_grid: OffGrid = "keep",
    shown: Iterable[str] = (),
) -> dict[str, Reading]:
    r"""The rating behind each label, as judges give them that rate several samples at once (BatchEval, ACL 2024).

    The analysis may stand before the ratings or behind them, and a label several times: the last of its passages that
    holds a rating counts. A label without one has a reading with the reason, and no score.

    Args:
        reply: the judge's reply.
        labels: how the samples are called ("Sample1"), in any case.
        scale, criterion, off_grid, shown: as in `read_text`; decimal scores are kept unless `off_grid` says otherwise.

    >>> reply = "Sample1: has 3 links.\nSample2: dull.\nSample1: 2.5\nSample2: 4"
    >>> found = read_many(reply, ["Sample1", "Sample2", "x"], "1-5")
    >>> [reading.score for reading in found.values()]
    [2.5, 4.0, None]
    >>> found["x"].error
    "the reply has no 'x'"
    """
    scale = Scale.of(scale)
    text = visible(reply, shown)
    if len(text) > LONGEST:
        return {label: unread(scale, f"the reply has more than {LONGEST:,} characters") for label in labels}
    names = {" ".join(label.lower().split()): label for label in labels}
    ordered = sorted(names, key=len, reverse=True)
    either = "|".join(r"\s*".join(map(re.escape, name.split())) for name in ordered)
    marks = list(re.finditer(rf"(?im)(?<!\w)({either})(?!\w)[*_`\"\]) ]*[:=|\-–—]", text)) if ordered else []
    found = {label: unread(scale, f"the reply has no {label!r}") for label in labels}
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    spelled = {re.sub(r"\s", "", name): label for name, label in names.items()}
    for mark, end in zip(marks, ends, strict=True):
        label = spelled[re.sub(r"\s", "", mark[1].lower())]
        reading = read_text(text[mark.end() : end], scale, "analyze_rate", criterion, off_grid=off_grid)
        if reading.score is not None or found[label].score is None:
            found[label] = reading
    return found
