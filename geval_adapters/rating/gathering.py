"""Putting together what is asked one by one at about the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

SETTLE = 0.05
"""Seconds without a further one after which those that wait are worked on."""


class Gathering(Generic[S, T]):
    """Collects things from concurrent callers in one event loop, and works on them together.

    Args:
        work: takes several, and yields the place of each with its result.
        most: so many are worked on without waiting for more.
    """

    def __init__(self, work: Callable[[Sequence[S]], AsyncGenerator[tuple[int, T]]], most: int) -> None:
        self._work = work
        self._most = most
        self._waiting: list[tuple[S, asyncio.Future[T]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def result(self, thing: S) -> T:
        """The result of one thing, which others that are asked for meanwhile go with.

        Raises:
            Exception: whatever ended the work.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((thing, future))
        if self._timer:
            self._timer.cancel()
        self._timer = loop.call_later(0 if len(self._waiting) >= self._most else SETTLE, self._begin)
        return await future

    def _begin(self) -> None:
        waiting = [pair for pair in self._waiting if not pair[1].done()]  # whoever asked may have gone
        self._waiting, self._timer = [], None
        task = asyncio.ensure_future(self._do(waiting))
        self._under_way.add(task)  # event loops hold their tasks weakly
        task.add_done_callback(self._under_way.discard)

    async def _do(self, waiting: Sequence[tuple[S, asyncio.Future[T]]]) -> None:
        try:
            async with aclosing(self._work([thing for thing, _ in waiting])) as results:
                async for place, result in results:
                    if not waiting[place][1].done():
                        waiting[place][1].set_result(result)
        except Exception as error:
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
