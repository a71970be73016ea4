"""The fields of a sample in what MLflow hands over: inputs, outputs, expectations, and the trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlflow.entities import SpanType, Trace

from geval_adapters import Sample
from geval_adapters.samples import ALIASES, to_sample

EXPECTED = ("expected_response", "expected_facts", *ALIASES["reference"])
"""MLflow's own names of what a judge may hold an output against come first."""


def as_sample(inputs: Any, outputs: Any, expectations: Any = None, trace: Trace | None = None, id: str = "") -> Sample:
    """What is judged: the entry that goes by a known name, the only one, or the whole; retrieved documents as context.

    Raises:
        InputError: there are no outputs.

    >>> as_sample({"question": "Capital of France?"}, "Paris.", {"expected_response": "Paris."}).reference
    'Paris.'
    """
    context = _part(inputs, ALIASES["context"], whole=False) or (_retrieved(trace) if trace else None)
    given = {
        "id": id,
        "output": _part(outputs, ALIASES["output"]),
        "source": _part(inputs, ("messages", *ALIASES["source"])),
        "reference": _text(_part(expectations, EXPECTED, whole=False)),
        "context": context,
    }
    return to_sample({name: value for name, value in given.items() if value is not None})


def _part(given: Any, names: tuple[str, ...], whole: bool = True) -> Any:
    if not isinstance(given, Mapping):
        return given
    found = next((given[name] for name in names if given.get(name) is not None), None)
    if found is None and whole and given:
        found = next(iter(given.values())) if len(given) == 1 else given
    return (
        found if found is None or isinstance(found, str | list) else json.dumps(found, ensure_ascii=False, default=str)
    )


def _text(value: Any) -> str | None:
    return "\n".join(map(str, value)) if isinstance(value, list) else value


def _retrieved(trace: Trace) -> list[str] | None:
    """The texts that the trace's retrievers found."""
    found = [each for span in trace.search_spans(span_type=SpanType.RETRIEVER) for each in span.outputs or []]
    return [str(each["page_content"]) for each in found if isinstance(each, Mapping) and "page_content" in each] or None
