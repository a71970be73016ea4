"""The errors that users can act on, and the one place that says what is wrong with what comes from outside."""

from __future__ import annotations

import importlib.util
import reprlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class GEvalError(Exception):
    r"""Anything this package raises on purpose. Its text says what was wrong and what to do.

    The text may tell what a judge or a file said, and whoever catches it prints it: it does nothing to a terminal.

    >>> str(InputError("no criterion \x1b[31mred"))
    'no criterion  [31mred'
    """

    def __str__(self) -> str:
        return "".join(each if each.isprintable() or each == "\n" else " " for each in super().__str__())


class InputError(GEvalError, ValueError):
    """A file, a sample, a criterion or an option that cannot be used."""


class BusyError(InputError):
    """Another process is at the same work, and has its files."""


class JudgeError(GEvalError):
    """The judge model cannot be asked at all: no key, no such model, no server, refused credentials."""


class StopError(JudgeError):
    """A run that must end early: its budget is spent, or hardly anything succeeds. What was rated stays rated."""


class UnderWay(StopError):  # noqa: N818
    """All is sent, and the answers come later: the same command, run again, takes them.

    Args:
        now: says what is under way, when it is told: what is asked by several criteria is not sent all at once.
    """

    def __init__(self, now: Callable[[], str]) -> None:
        super().__init__()
        self._now = now

    def __str__(self) -> str:
        return self._now()


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


def one_of(what: str, value: object, allowed: Iterable[str], where: str = "") -> Any:
    """The value, where it is one of those that are allowed: the values of a `Literal`, mostly.

    Raises:
        InputError: it is another one; the text names those that are allowed.

    >>> one_of("form", "essay", ("score_only", "free_text"))
    Traceback (most recent call last):
    geval_adapters.errors.InputError: unknown form 'essay'; known: score_only, free_text
    """
    if value not in (names := list(allowed)):
        raise InputError(f"{where}unknown {what} {brief(value)}; known: {', '.join(names)}")
    return value


def checked(kind: type[T], data: object, where: str = "") -> T:
    """Data from outside as a dataclass, checked by pydantic against the types of its fields.

    Raises:
        InputError: it does not fit; the text names the place, the field and what was wrong.
    """
    from pydantic import ValidationError

    try:
        return cast(T, _adapter(cast(Hashable, kind)).validate_python(data))
    except ValidationError as error:
        said = "; ".join(_problem(each, kind) for each in error.errors(include_url=False))
    except ValueError as error:  # an integer of thousands of digits
        said = str(error)
    raise InputError(f"{where}: {said}" if where else said)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(cast(Any, kind))


def _problem(detail: Mapping[str, Any], kind: type) -> str:
    found = f", found {brief(detail['input'])}"
    match detail["type"]:
        case "missing":
            said = "is missing"
        case "unexpected_keyword_argument":
            said = f"is unknown; known: {', '.join(each.name for each in fields(kind))}"
        case "value_error":
            said = str(detail["ctx"]["error"])
        case "string_type":
            said = f"must be text{found}"
        case "tuple_type":
            said = f"must be a list{found}"
        case "dataclass_type" | "mapping_type" | "dict_type":
            said = f"must be a mapping{found}"
        case _:
            said = detail["msg"].replace("Input should be", "must be") + found
    place = ".".join(map(str, detail["loc"]))
    return f"{place}: {said}" if place else said


def brief(value: object) -> str:
    """The value as Python writes it, cut to what fits a message, however large or deep it is.

    >>> brief(["a" * 1000, [[[1]]]])
    "['aaaaaaaaaaaa...aaaaaaaaaaaaa', [[...]]]"
    """
    short = reprlib.Repr()
    short.maxlevel = 2
    try:
        return short.repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"a value of type {type(value).__name__}"
