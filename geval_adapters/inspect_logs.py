"""Rows of Inspect AI's logs: its samples, with what judges and people made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import InputError, require

SUFFIX = ".eval"
Row = dict[str, Any]


def log_rows(path: str) -> Iterator[tuple[int, Row | ValueError]]:
    """Number and row of each sample of a log: its input as the source, its target as the reference, what the model
    wrote as the output, its turns as the messages where there are several; `context` and `doc_id` from its metadata.

    People's scores are those under `human` or `scores` in the metadata, and those that a person changed in Inspect.
    All other scores are what judges said: `ratings`, one for each scorer or criterion. A sample that failed is an
    error, which `--skip-bad-lines` passes over.

    Raises:
        InputError: it cannot be read.
        MissingPackageError: `inspect_ai` is not installed.
    """
    require("inspect", "inspect_ai")
    from inspect_ai.log import read_eval_log, read_eval_log_samples

    try:
        about = read_eval_log(path, header_only=True).eval
        found = read_eval_log_samples(path, all_samples_required=False, resolve_attachments=True)
        for number, sample in enumerate(found, start=1):
            yield number, _row(sample, about)
    except (OSError, ValueError, KeyError, IndexError, RuntimeError) as error:  # what zip files and JSON can be, too
        raise InputError(f"{path}: cannot be read as a log of Inspect's: {_line(error)}") from None


def _line(error: object) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _row(sample: Any, about: Any) -> Row | ValueError:
    if sample.error is not None:
        return ValueError(f"the sample {sample.id} failed in Inspect: {_line(sample.error.message)}")
    known = sample.metadata or {}
    several = (about.config.epochs or 1) > 1
    row = {
        "id": f"{sample.id}/{sample.epoch}" if several else str(sample.id),
        "source": sample.input if isinstance(sample.input, str) else _turns(sample.input),
        "output": sample.output.completion,
        "reference": (sample.target if isinstance(sample.target, str) else "\n".join(sample.target)) or None,
        "context": known.get("context"),
        "doc_id": known.get("doc_id", str(sample.id)),
        "system_id": about.model,
    }
    if len(sample.messages) > 2:
        row |= {"messages": _turns(sample.messages), "source": None, "output": None}
    given = known.get("human", known.get("scores"))
    people: Row = dict(given) if isinstance(given, Mapping) else {} if given is None else {"": given}
    ratings = []
    for scorer, score in (sample.scores or {}).items():
        edited = next((edit for edit in reversed(score.history) if edit.provenance is not None), None)
        values = _numbers(scorer, score, score.value if edited is None else score.history[0].value)
        ratings += [{"id": row["id"], **rating} for rating in values]
        if edited is not None:
            people |= {each["criterion"]: each["score"] for each in _numbers(scorer, score, score.value)}
    for rating in ratings:
        names = (rating["criterion"], rating["criterion"].rpartition("/")[2], "")
        rating["human"] = next((people[name] for name in names if name in people), None)
    return {name: value for name, value in row.items() if value is not None} | {"scores": people, "ratings": ratings}


def _numbers(scorer: str, score: Any, value: object) -> list[Row]:
    """What a scorer said, by criterion: a number each, None where it is unscored; words are no ratings."""
    by_name = value if isinstance(value, Mapping) else {None: value}
    found = []
    for name, each in by_name.items():
        known = (score.metadata or {}) if name is None else (score.metadata or {}).get(name, {})
        if isinstance(each, int | float):
            told = {
                key: known[key]
                for key in ("signature", "n_failed", "n_valid", "method", "distribution")
                if key in known
            }
            number = None if math.isnan(each) else float(each)
            found.append({"criterion": known.get("criterion", name or scorer), "score": number, **told})
    return found


def _turns(messages: list[Any]) -> list[Row]:
    """Inspect's messages in OpenAI's shape; of their content the text."""
    turns = []
    for each in messages:
        turn: Row = {"role": each.role, "content": each.text}
        if calls := getattr(each, "tool_calls", None):
            turn["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
                }
                for call in calls
            ]
        if call_id := getattr(each, "tool_call_id", None):
            turn["tool_call_id"] = call_id
        turns.append(turn)
    return turns
