"""The command line: one verb per job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ..errors import GEvalError, InputError, StopError
from ..judge import local
from ..judge.client import LiteLLMJudge
from ..runs.progress import errors, say


def until_the_end(job: Coroutine[Any, Any, None], show: Callable[[], None]) -> int:
    """Run a job and show what it came to, however it ends; the exit code, 0 where it ran to its end."""
    code = 0
    try:
        asyncio.run(job)
    except KeyboardInterrupt:
        say("interrupted; what was done is kept")
        code = 130
    except StopError as error:
        say(f"stopped: {error}; what was done is kept")
        code = 1
    except GEvalError:
        show()
        raise
    show()
    return code


def warn_of_embedded(judge: LiteLLMJudge) -> None:
    """Say so where the judge is the embedded one, which is there to try things out with."""
    if judge.name == f"local/{local.SMOLLM2}":
        errors.print(
            "judge: local/smollm2, a tiny model to try things out with (on Topical-Chat engagingness it agrees with"
            " people at ρ ≈ .1; response length alone reaches .5). For real work: --model openai/gpt-4o-mini",
            style="yellow",
            soft_wrap=True,
        )


def write(path: Path, text: str) -> None:
    """Write a file as a whole: what was there before stays until all of it is there."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
