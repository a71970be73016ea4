"""Asking a judge until its replies make a distribution: by log-probabilities where it has them, else by samples."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from functools import cache
from queue import SimpleQueue
from typing import Any, TypeVar

from ..errors import StopError

T = TypeVar("T")


async def concurrently(jobs: Iterator[Coroutine[Any, Any, T]], width: int, ordered: bool) -> AsyncGenerator[T]:
    """Run jobs, `width` at a time, and yield their results as they come or in order; the first error ends all.

    Where that error is a `StopError`, what is under way is waited for: it is paid for.
    """
    running: dict[asyncio.Task[T], None] = {}
    finished: asyncio.Queue[asyncio.Task[T]] = asyncio.Queue()

    def start() -> None:
        if (job := next(jobs, None)) is not None:
            task = asyncio.ensure_future(job)
            running[task] = None
            task.add_done_callback(finished.put_nowait)

    spent: StopError | None = None
    try:
        for _ in range(width):
            start()
        while running:
            task = next(iter(running)) if ordered else await finished.get()
            try:
                result = await task
            except StopError as error:
                spent = error
                continue
            finally:
                del running[task]
            if spent is None:
                start()
            yield result
        if spent is not None:
            raise spent
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


_starting = threading.Lock()


def run(job: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, also inside a running event loop (a notebook): it runs in a loop of its own thread."""
    with _starting:  # two threads that ask at once must not get a loop each
        loop = _own_loop()
    future = asyncio.run_coroutine_threadsafe(job, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def stream(results: AsyncGenerator[T]) -> Iterator[T]:
    """The results of an async generator, outside of async code; a few are made ahead of those that are taken."""
    ready: SimpleQueue[T | None] = SimpleQueue()
    room = asyncio.Event()

    async def follow() -> None:
        try:
            async for result in results:
                ready.put(result)
                if ready.qsize() >= AHEAD:
                    room.clear()
                    if ready.qsize() >= AHEAD:  # still: whoever takes the next ones sees that there was no room
                        await room.wait()
        finally:
            await results.aclose()
            ready.put(None)

    async def begin() -> asyncio.Task[None]:
        room.set()
        return asyncio.ensure_future(follow())

    async def end(cancel: bool) -> None:
        if cancel:
            following.cancel()
        await asyncio.wait([following])

    following = run(begin())
    try:
        while (result := ready.get()) is not None:
            yield result
            if not room.is_set() and ready.qsize() <= AHEAD // 2:
                _own_loop().call_soon_threadsafe(room.set)
        run(end(cancel=False))
        following.result()
    finally:
        run(end(cancel=True))


AHEAD = 16
"""How many results may wait to be taken."""


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="geval-adapters", daemon=True).start()
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result(timeout=5))
    return loop
