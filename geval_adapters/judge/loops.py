"""Asynchronous work: many jobs at a time, and the bridge over which code that is not asynchronous reaches it."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

AHEAD = 16
"""How many results may wait to be taken."""


async def concurrently(jobs: Iterator[Coroutine[Any, Any, T]], width: int, ordered: bool) -> AsyncGenerator[T]:
    """Run jobs, `width` at a time, and yield their results as they come or in order.

    The first error, of a job or of the iterator, ends the run: no further job is begun, but what is under way is
    waited for and yielded, for it is paid for; then the error is raised.
    """
    running: dict[asyncio.Task[T], None] = {}
    finished: asyncio.Queue[asyncio.Task[T]] = asyncio.Queue()
    failed: Exception | None = None

    def start() -> None:
        nonlocal failed
        try:
            job = next(jobs, None) if failed is None else None
        except Exception as error:
            failed, job = error, None
        if job is not None:
            task = asyncio.ensure_future(job)
            running[task] = None
            task.add_done_callback(finished.put_nowait)

    try:
        for _ in range(width):
            start()
        while running:
            task = next(iter(running)) if ordered else await finished.get()
            try:
                result = await task
            except Exception as error:
                failed = failed or error
                continue
            finally:
                del running[task]
            start()
            yield result
        if failed is not None:
            raise failed
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class PerLoop(Generic[T]):
    """One of something for each event loop: what waits in one loop must not be woken from another.

    It travels to other processes empty.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, T] = weakref.WeakKeyDictionary()

    def here(self) -> T:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        if (made := self._made.get(loop)) is None:
            made = self._made[loop] = self._make()
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return PerLoop, (self._make,)


def run(job: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, wherever this is called: in a notebook's running loop, or in a job that is itself waited
    for here; it runs in a loop of another thread.
    """
    with _waiting():
        return _wait_for(job, _free_loop())


def stream(results: AsyncGenerator[T]) -> Iterator[T]:
    """The results of an async generator, outside of async code; a few are made ahead of those that are taken.

    An iterator that is given up ends what is under way.
    """
    ready: SimpleQueue[T | None] = SimpleQueue()
    room = asyncio.Event()
    room.set()
    process = os.getpid()

    async def follow() -> None:
        try:
            async for result in results:
                ready.put(result)
                if ready.qsize() >= AHEAD:
                    room.clear()
                    if ready.qsize() >= AHEAD:  # still: whoever takes the next ones sees that there was no room
                        await room.wait()
        finally:
            try:
                await results.aclose()
            finally:
                ready.put(None)

    async def begin() -> asyncio.Task[None]:
        task = asyncio.ensure_future(follow())
        _followed.add(task)  # event loops hold their tasks weakly: with the iterator, its task would be collected
        task.add_done_callback(_followed.discard)
        return task

    async def end(cancel: bool) -> None:
        if cancel:
            following.cancel()
        await asyncio.wait([following])

    loop = _free_loop()
    following = _wait_for(begin(), loop)
    try:
        while True:
            if os.getpid() != process:
                raise RuntimeError("these ratings are made in another process: this one was forked from it")
            with _waiting():
                result = ready.get()
            if result is None:
                break
            yield result
            if not room.is_set() and ready.qsize() <= AHEAD // 2:
                loop.call_soon_threadsafe(room.set)
        with _waiting():
            _wait_for(end(cancel=False), loop)
        following.result()
    finally:
        if not following.done() and os.getpid() == process and not sys.is_finalizing():
            # Python may collect an iterator in any thread: in a loop's, where waiting could be for ever, nobody waits.
            if getattr(_thread, "bridge", None):
                loop.call_soon_threadsafe(following.cancel)
            else:
                _wait_for(end(cancel=True), loop)


# --- the bridge -------------------------------------------------------------------------------------------------------


class _Bridge:
    """An event loop in a thread of its own, and how many waits of other loops' results its thread is in."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(_Daemons())
        self.blocked = 0
        threading.Thread(target=self._run, name="geval-adapters", daemon=True).start()

    def _run(self) -> None:
        _thread.bridge = self
        self.loop.run_forever()

    def close(self) -> None:
        """End what is under way, and close connections; nobody waits for long."""

        async def end() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=0.5)
            await self.loop.shutdown_asyncgens()

        if not self.blocked:
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(end(), self.loop).result(timeout=1)


class _Daemons(ThreadPoolExecutor):
    """Threads that nobody waits for when Python exits: one may be looking up a name that is not there."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def do() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        threading.Thread(target=do, daemon=True).start()
        return future


_bridges: list[_Bridge] = []
_followed: set[asyncio.Task[None]] = set()
_thread = threading.local()
_starting = threading.Lock()


def _free_loop() -> asyncio.AbstractEventLoop:
    """A loop whose thread is not this one, and does not wait for another loop: mostly the only one there is."""
    with _starting:
        for bridge in _bridges:
            if not bridge.blocked and bridge is not getattr(_thread, "bridge", None):
                return bridge.loop
        _bridges.append(_Bridge())
        return _bridges[-1].loop


@contextmanager
def _waiting() -> Iterator[None]:
    """While this thread waits: where it is a bridge's, that one's loop stands still, and another must do the work."""
    bridge: _Bridge | None = getattr(_thread, "bridge", None)
    if bridge is None:
        yield
        return
    bridge.blocked += 1
    try:
        yield
    finally:
        bridge.blocked -= 1


def _wait_for(job: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    future = asyncio.run_coroutine_threadsafe(job, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _starting
    _bridges.clear()
    _starting = threading.Lock()
    _thread.__dict__.clear()


@atexit.register
def _close() -> None:
    for bridge in _bridges:
        bridge.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
