"""The harness around the tasks: which releases do, what `--metadata` may hold, and how errors reach the user."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import version
from types import TracebackType
from typing import Any, TypeVar

from geval_adapters import GEvalError, InputError, MissingPackageError, require

OLDEST = "0.4.12"
"""The first release with the task manager, `custom_dataset` and filters as the tasks use them."""

HARNESS_KEYS = {"version", "config_source"}
"""What the harness and the task files put beside the user's metadata."""

Loader = TypeVar("Loader", bound=Callable[..., Any])


def check() -> None:
    """Go on only with a harness that the tasks work with.

    Raises:
        MissingPackageError: there is none, or an older one.
    """
    require("lm-eval", "lm_eval", "datasets")
    installed = version("lm_eval")
    if _numbers(installed) < _numbers(OLDEST):
        raise MissingPackageError(
            f"lm-eval {installed} is installed, and the G-Eval tasks need {OLDEST} or newer:"
            " pip install --upgrade 'geval-adapters[lm-eval]'"
        )


def _numbers(release: str) -> tuple[int, ...]:
    """The first three numbers of a release.

    >>> _numbers("0.4.9.2") < _numbers("0.4.12.dev0")
    True
    """
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


def takes_metadata(load: Loader) -> Loader:
    """Make a function a `custom_dataset` that refuses the keys of `--metadata` which it does not take.

    The harness hands over as one what stands in `--metadata`, in the task's `metadata` and `dataset_kwargs`, and in the
    model's arguments; the last are none of ours, and are left out.
    """
    taken = set(inspect.signature(load).parameters)

    @wraps(load)
    def loaded(**given: Any) -> Any:
        with brief_errors():
            options = {name: value for name, value in given.items() if name in taken}
            if unknown := sorted(_from_the_user(given) - taken):
                rated = f"; this task rates {given['rated']}, others are in geval tasks" if "rated" in taken else ""
                known = ", ".join(sorted(taken - {"rated"}))
                raise InputError(f"unknown key {', '.join(unknown)} in --metadata; known here: {known}{rated}")
            return load(**options)

    return loaded  # type: ignore[return-value]


def _from_the_user(given: dict[str, Any]) -> set[str]:
    """Which of the keys stand in `--metadata`: in the evaluation that is under way, those that are no model's."""
    frame = inspect.currentframe()
    while frame:
        if frame.f_globals.get("__name__") == "lm_eval.evaluator" and "model_args" in frame.f_locals:
            model_args = frame.f_locals["model_args"] or {}
            pairs = model_args.split(",") if isinstance(model_args, str) else model_args
            told = set(frame.f_locals.get("metadata") or given) & set(given)
            return told - HARNESS_KEYS - {str(each).partition("=")[0] for each in pairs}
        frame = frame.f_back
    return set(given) - HARNESS_KEYS


@contextmanager
def brief_errors() -> Iterator[None]:
    """What users can mend ends the program with its one line, and not with the harness's eighty.

    Who catches the exception sees no difference.
    """
    try:
        yield
    except GEvalError:
        otherwise = sys.excepthook

        def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            if isinstance(error, GEvalError):
                print(f"error: {error}", file=sys.stderr)
            else:
                otherwise(kind, error, trace)

        sys.excepthook = say
        raise
