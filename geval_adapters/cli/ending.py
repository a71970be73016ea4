"""How a command ends: its exit code, what is shown of a run that was cut short, files written whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from enum import IntEnum
from pathlib import Path
from typing import Any

from ..errors import GEvalError, InputError, StopError, UnderWay
from ..judge import local
from ..judge.client import LiteLLMJudge
from ..runs.progress import say


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    UNRATED = 1
    """Some items were not rated, or a bar was missed; the last line says which."""
    USAGE = 2
    """Bad usage or input."""
    UNDECIDED = 3
    """What was asked cannot be told from what there is."""
    BUSY = 4
    """It is under way elsewhere: in another process, or at a provider."""
    INTERRUPTED = 130


def until_the_end(job: Coroutine[Any, Any, None], show: Callable[[], None]) -> Exit:
    """Run a job and show what it came to, however it ends; `Exit.DONE` where it ran to its end."""
    code = Exit.DONE
    try:
        asyncio.run(job)
    except KeyboardInterrupt:
        say("interrupted; what was done is kept")
        code = Exit.INTERRUPTED
    except UnderWay as error:
        say(str(error))
        code = Exit.BUSY
    except StopError as error:
        say(f"stopped: {error}; what was done is kept")
        code = Exit.UNRATED
    except GEvalError:
        show()
        raise
    show()
    return code


def warn_of_embedded(judge: LiteLLMJudge) -> None:
    """Say so where the judge is the embedded one, which is there to try things out with."""
    if judge.name == f"local/{local.SMOLLM2}":
        say(
            "judge: local/smollm2, a tiny model to try things out with (on Topical-Chat engagingness it agrees with"
            " people at ρ ≈ .1; response length alone reaches .5). For real work: --model openai/gpt-4o-mini"
        )


def write(path: Path, text: str) -> None:
    """Write a file as a whole: what was there before stays until all of it is there.

    Raises:
        InputError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
