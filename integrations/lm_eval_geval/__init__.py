"""G-Eval for lm-evaluation-harness: tasks that test a judge, and a metric that is one.

>>> import lm_eval_geval
>>> lm_eval_geval.JudgeFilter(criterion="coherence").settings["criterion"]
'coherence'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .judged import dataset
    from .judging import JudgeFilter, geval

__all__ = ["JudgeFilter", "dataset", "geval"]

_WHERE = {"JudgeFilter": "judging", "dataset": "judged", "geval": "judging"}


def __getattr__(name: str) -> Any:
    """Import the harness, which takes seconds, only where it is needed."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
