"""The rating in a reply's text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ..criteria import FORMS, Criterion, Form, OffGrid, Scale, ScaleLike
from ..errors import one_of
from .candidates import Found, find_in_prose
from .distribution import Reading, unread
from .structured import find_in_json
from .visible import BLANK, visible

THOUGHT = "the judge's thinking"

LONGEST = 50_000
"""Characters of an answer, thinking aside, beyond which it is not read: no form asks for as much."""


SHORT = 100
"""Characters of a reply up to which another judge's is likely to be the same."""


def read_text(
    reply: str,
    scale: ScaleLike,
    form: Form = "rate_explain",
    criterion: Criterion | str | None = None,
    *,
    off_grid: OffGrid = "keep",
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
    >>> read_text("I would not give it a 5: a solid four out of five.", "1-5", "free_text").score
    4.0
    >>> read_text("Rating: 15", "0-10").error
    'the rating 15 is not on the scale 0-10'
    """
    scale = Scale.of(scale)
    found = find(reply, scale, form, criterion, shown)
    if isinstance(found, str):
        return unread(scale, found)
    return reading_of(found, scale, off_grid)


def reading_of(found: Found, scale: Scale, off_grid: OffGrid) -> Reading:
    """A rating that was found as a reading."""
    value = scale.place(found.value, off_grid) if found.value is not None else None
    if value is None:
        return unread(scale, f"the rating {found.text} is not on the scale {scale}")
    between = scale.place(found.value or 0.0, "reject") is None
    return Reading(value, {value: 1.0}, 1.0, (value, value), off_grid=between)


def find(
    reply: str, scale: Scale, form: Form, criterion: Criterion | str | None = None, shown: Iterable[str] = ()
) -> Found | str:
    """The rating's place and value, or the reason why there is none."""
    one_of("form", form, FORMS)
    text = visible(reply, shown)
    if reason := nothing_in(text, reply):
        return reason
    name = criterion.short_name if isinstance(criterion, Criterion) else (criterion or "").rpartition("/")[2]
    return (_find_in_short if len(text) <= SHORT else _find_in)(text, scale, form, name)


def _find_in(text: str, scale: Scale, form: Form, name: str) -> Found | str:
    if "{" in text and (found := find_in_json(text, scale, form, name)) is not None:
        return found
    return find_in_prose(text, scale, form, name)


_find_in_short = lru_cache(4096)(_find_in)
"""Judges that stop after the rating write the same few words again and again."""


def nothing_in(text: str, reply: str) -> str | None:
    """Why there is nothing to read in a reply of which `text` is visible."""
    if not text.strip(" \n" + BLANK):
        if not reply.strip():
            return "the reply is empty"
        return f"the reply holds nothing but {'what the judge was shown' if BLANK in text else THOUGHT}"
    if len(text) > LONGEST and len(text.strip()) > LONGEST:
        return f"the reply has {len(text.strip()):,} characters; beyond {LONGEST:,} it is not read"
    return None
