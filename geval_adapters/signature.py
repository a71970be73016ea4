"""How a number is named: one line that tells everything which could change it, in the manner of sacreBLEU."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from urllib.parse import quote, unquote

from .errors import InputError


@dataclass(frozen=True)
class Signature:
    """What could change a score, part by part; equal signatures mean comparable scores.

    Written as one line, `name:value|name:value`. Only what would break that line is escaped in a value, as `%` and
    two hex digits for each byte: `|`, `%` and what cannot be printed. A `:` can stand in a value, but in no name.

    Attributes:
        parts: the value of each part by its name.

    Raises:
        InputError: a part's name is no plain word.

    >>> signature = Signature({"model": "ollama/llama3:8b", "n": "1"})
    >>> str(signature)
    'model:ollama/llama3:8b|n:1'
    >>> Signature.parse("model:a%7Cb|n:1").parts
    {'model': 'a|b', 'n': '1'}
    """

    parts: Mapping[str, str]

    def __post_init__(self) -> None:
        if wrong := [name for name in self.parts if not re.fullmatch(r"\w+", name)]:
            raise InputError(f"a part of a signature cannot be called {wrong[0]!r}: use letters, digits and _")

    @classmethod
    def of(cls, **parts: str) -> Signature:
        """The parts, and the version of this package, which could change a score as well.

        >>> Signature.of(model="openai/gpt-4o-mini").parts.keys()
        dict_keys(['model', 'version'])
        """
        return _signature(tuple(parts.items()))

    @classmethod
    def parse(cls, text: object) -> Signature:
        """The signature that `str` wrote.

        Raises:
            InputError: the text is no signature.
        """
        parts = [part.partition(":") for part in str(text).split("|")]
        names = {name for name, _, _ in parts}
        if len(names) < len(parts) or not all(colon and re.fullmatch(r"\w+", name) for name, colon, _ in parts):
            raise InputError(f"not a signature: {str(text)[:80]!r}; expected name:value|name:value, as ratings have it")
        return cls({name: unquote(value, errors="surrogatepass") for name, _, value in parts})

    def differences(self, other: Signature | Mapping[str, Collection[str]]) -> list[str]:
        """What keeps a score with this signature from being compared with others, in words; this one is `there`.

        Args:
            other: another signature, or for some parts the values that would do (as far as they are known before the
                judge is asked); parts that it does not name are then not compared.

        >>> Signature({"model": "a", "n": "1"}).differences(Signature({"model": "b", "n": "1"}))
        ['model is a there, b here']
        >>> Signature({"model": "a", "n": "1"}).differences({"n": {"2", "20"}})
        ['n is 1 there, 2 or 20 here']
        """
        if isinstance(other, Signature):
            names = dict.fromkeys([*self.parts, *other.parts])
            allowed: Mapping[str, Collection[str | None]] = {name: [other.parts.get(name)] for name in names}
        else:
            allowed = other
        return [
            f"{name} is {self.parts.get(name, 'unknown')} there,"
            f" {' or '.join(sorted(value or 'unknown' for value in values))} here"
            for name, values in allowed.items()
            if self.parts.get(name) not in values
        ]

    @cached_property
    def _line(self) -> str:
        return "|".join(f"{name}:{_escaped(value)}" for name, value in self.parts.items())

    def __str__(self) -> str:
        return self._line

    def __hash__(self) -> int:
        return hash(frozenset(self.parts.items()))


@lru_cache(1024)
def _signature(parts: tuple[tuple[str, str], ...]) -> Signature:
    """One object for all scores that are named alike."""
    return Signature({**dict(parts), "version": version()})


def criterion_of(text: object, name: str) -> str:
    """The name of the criterion by which a score was given, with its hash (`name@hash`) where its signature has that.

    >>> criterion_of("model:a|criterion:fluency@1a2b3c4d", "fluency"), criterion_of(None, "fluency")
    ('fluency@1a2b3c4d', 'fluency')
    """
    try:
        key = Signature.parse(text).parts.get("criterion", "")
    except InputError:
        return name
    return key if key.rpartition("@")[0] == name else name


def judge_of(text: object) -> str:
    """Who gave a score, from its signature; empty where that does not say.

    >>> judge_of("model:a|criterion:fluency@1a2b3c4d"), judge_of(None)
    ('a', '')
    """
    try:
        return Signature.parse(text).parts.get("model", "")
    except InputError:
        return ""


def _escaped(value: str) -> str:
    return "".join(
        each if each.isprintable() and each not in "|%" else quote(each, safe="", errors="surrogatepass")
        for each in value
    )


@cache
def version() -> str:
    """The version of this package."""
    from importlib.metadata import version

    return version("geval-adapters")
