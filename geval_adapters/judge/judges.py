"""Which judge is meant: one that is built already, or the one that a model string and its options name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Judge
from .client import LiteLLMJudge


def judge_of(model: str | Judge | None, options: Mapping[str, Any]) -> Judge:
    """A judge as it is, or the one that a model string names.

    Raises:
        TypeError: options for a judge that is built already, or something that is neither.
    """
    if model is None or isinstance(model, str):
        if options.get("batch"):
            from .batches import BatchJudge  # few runs are asked in batches

            return BatchJudge(model, **options)
        return LiteLLMJudge(model, **{name: value for name, value in options.items() if name not in ("batch", "wait")})
    if options:
        raise TypeError(f"{', '.join(options)}: options of a model string, but a judge was given")
    if not isinstance(model, Judge):
        raise TypeError(f"a judge is a model string or a Judge (geval_adapters.Judge), not {type(model).__name__}")
    return model
