"""The errors that users can act on."""

from __future__ import annotations


class GEvalError(Exception):
    """Anything this package raises on purpose. Its text says what was wrong and what to do."""


class InputError(GEvalError, ValueError):
    """A file, a sample, a criterion or an option that cannot be used."""


class JudgeError(GEvalError):
    """The judge model cannot be asked at all: no key, no such model, no server, refused credentials."""


class StopError(JudgeError):
    """A run that must end early: its budget is spent, or hardly anything succeeds. What was rated stays rated."""
