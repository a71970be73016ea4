"""The first few questions, which show what a judge takes before many thousands are sent at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from .base import Judge

Learnt = Mapping[str, bool]


class Opening:
    """Lets `judge.opening` questions of a kind be asked before all others, which wait for what these show.

    What they showed is kept with the judge, so that a process that goes on with the run begins with it.

    Args:
        judge: who is asked.
        kind: which questions these are.
        learnt: says what has been shown.
        recall: takes what was shown to an earlier process.
    """

    def __init__(self, judge: Judge, kind: str, learnt: Callable[[], Learnt], recall: Callable[[Learnt], None]) -> None:
        self._judge, self._kind, self._learnt = judge, kind, learnt
        self._left = self._out = judge.opening
        self._open = asyncio.Event()
        if facts := judge.recall(kind):
            recall(facts)
            self._left = self._out = 0
            self._open.set()

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[bool]:
        """Wait for one's turn; whether this is one of the first, to be answered at once."""
        if self._left <= 0:
            await self._open.wait()
            yield False
            return
        self._left -= 1
        try:
            yield True
        finally:
            self._out -= 1
            if self._out == 0:
                self._judge.remember(self._kind, self._learnt())
                self._open.set()
