"""Evaluation steps that a judge writes for a criterion, once: auto chain of thought (Liu et al. 2023, §2)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ..criteria import Criterion, digest
from ..errors import InputError, JudgeError
from ..prompts import steps_messages
from .base import Judge, Usage, cache_folder, log


async def written_steps(judge: Judge, criterion: Criterion, max_tokens: int | None) -> tuple[list[str], Usage]:
    """The steps and what they cost: nothing where this judge wrote them before.

    They are kept in the user's cache folder (`$GEVAL_CACHE` moves it). Of several processes that write them at once,
    the first decides, so that all rate by the same steps.

    Raises:
        JudgeError: the judge cannot be asked, or its reply is no numbered list.
        InputError: the cache folder cannot be written.
    """
    store = cache_folder() / f"steps-{digest(json.dumps([judge.name, criterion.hash]))}.json"
    if steps := _read(store):
        return steps, Usage()
    answer = await judge.ask(steps_messages(criterion), temperature=0.0, max_tokens=max_tokens)
    reply = answer.replies[0]
    steps = numbered_list(reply.text)
    if not steps:
        reason = reply.error or f"{reply.text[:80]!r} is no numbered list"
        raise JudgeError(f"{judge.name} wrote no evaluation steps for {criterion.name!r}: {reason}")
    try:
        _write(store, json.dumps({"model": judge.name, "criterion": criterion.name, "steps": steps}, indent=2))
    except OSError as error:
        raise InputError(f"{store}: cannot be written: {error.strerror or error}; set $GEVAL_CACHE") from None
    return _read(store) or steps, answer.usage


def numbered_list(text: str) -> list[str]:
    r"""The items of a numbered list.

    >>> numbered_list("Steps:\n1. Read.\n2) Choose a score.")
    ['Read.', 'Choose a score.']
    """
    return [match[1].strip() for match in re.finditer(r"^\s*\d+[.)]\s+(.+)$", text, re.MULTILINE)]


def _read(store: Path) -> list[str]:
    """The steps that are there; none where the file is not, or is not what was written."""
    try:
        steps = json.loads(store.read_text(encoding="utf-8"))["steps"]
        if steps and all(isinstance(step, str) for step in steps):
            return list(steps)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    log.warning("%s holds no evaluation steps: they are written again", store)
    return []


def _write(store: Path, text: str) -> None:
    """Put the file there whole or not at all; one that holds steps is left as it is."""
    store.parent.mkdir(parents=True, exist_ok=True)
    import tempfile

    handle, name = tempfile.mkstemp(dir=store.parent, prefix=store.stem, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            os.link(name, store)
        except OSError:  # it is there, or the file system knows no links
            if not _read(store):
                os.replace(name, store)
    finally:
        Path(name).unlink(missing_ok=True)
