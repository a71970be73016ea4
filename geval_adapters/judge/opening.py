"""The first few questions, which show what a judge takes before many thousands are sent at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

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
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        if facts := judge.recall(kind):
            recall(facts)
            self._left = self._out = 0

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[bool]:
        """Wait for one's turn; whether this is one of the first, to be answered at once."""
        opened = asyncio.Event()
        with self._lock:
            first = self._left > 0
            self._left -= first
            if not first and self._out:
                self._waiting.append((asyncio.get_running_loop(), opened))
            else:
                opened.set()
        if not first:
            await opened.wait()
            yield False
            return
        try:
            yield True
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._out -= 1
            if self._out:
                return
            self._judge.remember(self._kind, self._learnt())
            for loop, opened in self._waiting:  # a judge may be asked from several loops
                with suppress(RuntimeError):  # that loop is closed
                    loop.call_soon_threadsafe(opened.set)
            self._waiting.clear()
