"""Which releases of the harness the tasks work with."""

from __future__ import annotations

import re
from importlib.metadata import version

from geval_adapters import MissingPackageError, require

OLDEST = "0.4.12"
"""The first release with the task manager, `custom_dataset` and filters as the tasks use them."""


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
