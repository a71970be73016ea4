"""The errors that users can act on."""

from __future__ import annotations

import importlib.util


class GEvalError(Exception):
    """Anything this package raises on purpose. Its text says what was wrong and what to do."""


class InputError(GEvalError, ValueError):
    """A file, a sample, a criterion or an option that cannot be used."""


class BusyError(InputError):
    """Another process is at the same work, and has its files."""


class JudgeError(GEvalError):
    """The judge model cannot be asked at all: no key, no such model, no server, refused credentials."""


class StopError(JudgeError):
    """A run that must end early: its budget is spent, or hardly anything succeeds. What was rated stays rated."""


class MissingPackageError(GEvalError, ImportError):
    """A package that only some need is not installed. Its text names the extra that brings it."""


def require(extra: str, *modules: str) -> None:
    """Go on only where all modules of an extra can be imported.

    Raises:
        MissingPackageError: one cannot.

    >>> require("all", "json", "no_such_module")
    Traceback (most recent call last):
    geval_adapters.errors.MissingPackageError: no_such_module is not installed: pip install 'geval-adapters[all]'
    """
    if missing := [module for module in modules if importlib.util.find_spec(module) is None]:
        raise MissingPackageError(f"{', '.join(missing)} is not installed: pip install 'geval-adapters[{extra}]'")
