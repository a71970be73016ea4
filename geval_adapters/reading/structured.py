"""The rating in a reply that is JSON, or nearly: by the name of its key, never by its place.

What is read is what judges write: code fences and prose around it, trailing commas, single quotes, numbers as strings,
an end that is missing. Strings are stepped over whole, so nothing inside one is taken for a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..criteria import Scale
from .candidates import Found, find_in_prose
from .lexer import word_class

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)("?)|([{}\[\]:,])|[^\s,:{}\[\]"]+', re.DOTALL)
_SINGLE = re.compile(r"'((?:[^'\\]|\\.|'(?![\s]*[,:}\]]))*)('?)|([{}\[\]:,])|[^\s,:{}\[\]']+", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)\Z")
_BEGINS = re.compile(r"\{\s*(?:[\"'}]|\{)")


@dataclass(frozen=True)
class Entry:
    """A value in an object: the keys that lead to it, its text and place, and whether it is a string."""

    path: tuple[str, ...]
    text: str
    start: int
    quoted: bool


@dataclass
class Object:
    """One outermost object of a reply: its values, whether its end is there, and where it stands."""

    start: int
    end: int = 0
    entries: list[Entry] = field(default_factory=list)
    whole: bool = False


def find_in_json(text: str, scale: Scale, form: str, name: str) -> Found | str | None:
    """The rating in a reply's JSON, or why there is none; None where the reply holds no JSON."""
    objects = list(objects_in(text))
    if not objects:
        return None
    rated = [(each, best) for each in objects if (best := _best(each, name))]
    if not rated:
        rest = text
        for each in objects:
            rest = rest[: each.start] + "\0" * (each.end - each.start) + rest[each.end :]
        beside = find_in_prose(rest, scale, form, name)
        return "the JSON reply has no score in it" if isinstance(beside, str) else beside
    whole = [best for each, best in rated if each.whole]
    best = whole[-1] if whole else rated[-1][1]
    values = [_value(entry, scale, form, name) for entry in best]
    found = [value for value in values if not isinstance(value, str)]
    if len(found) < len(values):
        return next(value for value in values if isinstance(value, str))
    if len({each.value for each in found}) > 1:
        return f"the reply names several ratings: {', '.join(each.text for each in found)}"
    return found[0]


def _value(entry: Entry, scale: Scale, form: str, name: str) -> Found | str:
    if not entry.quoted:
        if _NUMBER.match(entry.text):
            return Found(entry.start, entry.text, float(entry.text))
        return f"the JSON reply's {entry.path[-1]!r} is {entry.text[:40]}, which is no number"
    found = find_in_prose(entry.text, scale, form, name) if entry.text.strip() else "empty"
    if isinstance(found, str):
        several = found if "several" in found else ""
        return several or f"the JSON reply's {entry.path[-1]!r} is {entry.text[:40]!r}, which is no number"
    return found._replace(start=entry.start + found.start)


def _best(each: Object, name: str) -> list[Entry]:
    """The entries whose key says most surely that they are the rating."""
    ranked = [(rank, -len(entry.path), entry) for entry in each.entries if (rank := _rank(entry, each, name))]
    if not ranked:
        return []
    best = max((rank, depth) for rank, depth, _ in ranked)
    return [entry for rank, depth, entry in ranked if (rank, depth) == best]


def _rank(entry: Entry, each: Object, name: str) -> int:
    """How surely a key is the rating's: the criterion's name, an overall one, `rating`, one that ends so; or 0."""
    words = _words(entry.path[-1])
    kinds = [word_class(word) for word in words]
    if not kinds or any(kind in ("BOUND", "SCALE", "BETWEEN", "REASON") for kind in kinds):
        return 0
    labelled = kinds[-1] == "LABEL" or words[-1] in ("value", "points", "stars")
    wanted = _words(name)
    if wanted:
        if words in (wanted, [*wanted, "score"], [*wanted, "rating"]):
            return 5
        named = (other.text for other in each.entries if other.quoted and other.path[:-1] == entry.path[:-1])
        if labelled and (
            any(_words(key) == wanted for key in entry.path[:-1]) or any(_words(n) == wanted for n in named)
        ):
            return 5
    if "OVERALL" in kinds and (labelled or len(kinds) == 1):
        return 4
    if labelled:
        return 3 if len(words) == 1 else 2
    return 1 if kinds[-1] in ("ANSWER", "OVERALL") and _NUMBER.match(entry.text) else 0


def _words(key: str) -> list[str]:
    """The words of a key: `overallScore`, `overall_score`.

    >>> _words("overallScore")
    ['overall', 'score']
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|[^\W\d_]+", key)]


def objects_in(text: str) -> Iterator[Object]:
    """The outermost JSON objects of a text, in turn; the last may be cut off.

    >>> [[(entry.path, entry.text) for entry in each.entries] for each in objects_in('So: {"a": {"b": "4",}} {"c": 1')]
    [[(('a', 'b'), '4')], [(('c',), '1')]]
    """
    at = 0
    while begin := _BEGINS.search(text, at):
        each = _object(text, begin.start(), _SINGLE if begin[0][-1] == "'" else _TOKEN)
        at = max(each.end, begin.end())
        yield each


def _object(text: str, start: int, pattern: re.Pattern[str]) -> Object:
    found = Object(start, len(text))
    keys: list[str | None] = []  # the key under way in each object or list that is open
    for token in pattern.finditer(text, start):
        mark, string = token[3], token[1]
        if mark and mark in "{[":
            keys.append(None if mark == "{" else "")
        elif mark and mark in "}]":
            keys.pop()
            if not keys:
                found.end, found.whole = token.end(), True
                return found
            if keys[-1]:
                keys[-1] = None
        elif mark == ",":
            if keys[-1]:
                keys[-1] = None
        elif mark == ":":
            continue
        elif keys and keys[-1] is None:
            keys[-1] = string if string is not None else token[0]
        elif keys and keys[-1]:
            path = tuple(key for key in keys if key)
            place = token.start(1) if string is not None else token.start()
            found.entries.append(Entry(path, string if string is not None else token[0], place, string is not None))
    return found
