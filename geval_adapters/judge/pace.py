"""How fast a judge may be asked, and how much in all."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable

from ..errors import StopError


class Pace:
    """Lets requests pass: as many at once as the provider bears, as many per minute as it allows.

    The number at once starts at the most that is allowed. It is halved when the provider says that it is too much, once
    for all requests that were then under way; it shrinks by a quarter when replies take three times as long as at their
    best; it grows by one with each round of replies (additive increase, multiplicative decrease: Chiu & Jain 1989).

    A pace belongs to one event loop.

    Args:
        most: requests under way at once.
        rpm: requests per minute.
        tpm: tokens per minute.

    >>> Pace(16).limit
    16.0
    """

    SLOW = 3.0

    def __init__(self, most: int, rpm: float | None = None, tpm: float | None = None) -> None:
        self.most = most
        self.limit = float(most)
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cut = 0.0
        self._seconds_per = (60 / rpm if rpm else 0.0, 60 / tpm if tpm else 0.0)
        self._free = [0.0, 0.0]
        self._rounds: dict[Hashable, _Round] = {}

    async def enter(self, tokens: float) -> None:
        """Wait for a place, and for the turn of a request that takes so many tokens."""
        if self._waiting or self._busy >= int(self.limit):
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():  # the place was given already
                    self.release()
                raise
        else:
            self._busy += 1
        now = time.monotonic()
        turn = now
        for index, amount in enumerate((1.0, tokens)):
            if seconds := self._seconds_per[index]:
                begins = max(now, self._free[index])
                self._free[index] = begins + amount * seconds
                turn = max(turn, begins)
        if turn > now:
            try:
                await asyncio.sleep(turn - now)
            except asyncio.CancelledError:
                self.release()
                raise

    def leave(self, began: float, kind: Hashable, extra_tokens: float = 0.0) -> None:
        """A request has been answered, and took so many tokens more than was thought.

        Args:
            began: when it was sent, by `time.monotonic`.
            kind: requests of one kind take about equally long.
            extra_tokens: may be negative.
        """
        self._free[1] += extra_tokens * self._seconds_per[1]
        self.limit = min(self.most, self.limit + 1 / self.limit)
        finished = self._rounds.setdefault(kind, _Round()).add(time.monotonic() - began, int(self.limit))
        if finished:
            self.limit = max(1.0, self.limit * 0.75)
        self.release()

    def leave_refused(self, began: float) -> None:
        """A request was refused because there were too many."""
        if began > self._cut:
            self._cut = time.monotonic()
            self.limit = max(1.0, self.limit / 2)
        self.release()

    def release(self) -> None:
        """Give a place back; a request that failed for other reasons says nothing about the pace."""
        self._busy -= 1
        while self._waiting and self._busy < int(self.limit):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._busy += 1
                waiter.set_result(None)


class _Round:
    """Replies of one kind, as many at a time as requests are under way; the best round's mean latency is kept."""

    def __init__(self) -> None:
        self._count = 0
        self._total = 0.0
        self._best = float("inf")

    def add(self, seconds: float, size: int) -> bool:
        """Count one reply; whether it ends a round that was slow."""
        self._count += 1
        self._total += seconds
        if self._count < max(4, size):
            return False
        mean = self._total / self._count
        slow = mean > Pace.SLOW * self._best
        self._best = min(mean, self._best * 1.05)  # what was once fast need not be for ever
        self._count, self._total = 0, 0.0
        return slow


class Budget:
    """What may be spent in all.

    Args:
        max_requests: requests, those sent again among them.
        max_cost: dollars.

    >>> budget = Budget(max_requests=1)
    >>> budget.reserve(0.0); budget.reserve(0.0)
    Traceback (most recent call last):
    geval_adapters.errors.StopError: 1 requests were sent, which is all that max_requests allows
    """

    def __init__(self, max_requests: int | None = None, max_cost: float | None = None) -> None:
        self.max_requests = max_requests
        self.max_cost = max_cost
        self.requests = 0
        self.cost = 0.0
        self._reserved = 0.0

    def reserve(self, cost: float) -> None:
        """Set aside what a request may cost at the most.

        Raises:
            StopError: that is more than is left.
        """
        if self.max_requests is not None and self.requests >= self.max_requests:
            raise StopError(f"{self.requests} requests were sent, which is all that max_requests allows")
        if self.max_cost is not None and self.cost + self._reserved + cost > self.max_cost:
            aside = f", ${self._reserved:.4f} are set aside for requests under way" if self._reserved > 1e-9 else ""
            raise StopError(
                f"${self.cost:.4f} were spent{aside}, the next request may cost ${cost:.4f}, and max_cost allows no"
                f" more than ${self.max_cost:g}"
            )
        self.requests += 1
        self._reserved += cost

    def settle(self, reserved: float, cost: float | None) -> None:
        """Take what a request did cost for what had been set aside; where that is not known, all of it."""
        self._reserved -= reserved
        self.cost += reserved if cost is None else cost
