"""One run of the command line: what is read, what was done before, how it goes on, and what is printed of it."""

from __future__ import annotations

from collections import deque

from .. import report
from ..errors import StopError


class Breaker:
    """Ends a run in which hardly anything succeeds any more.

    >>> breaker = Breaker(0.5)
    >>> for _ in range(Breaker.LAST): breaker.count("no answer within 120 s")
    Traceback (most recent call last):
    geval_adapters.errors.StopError: 50 of the last 50 failed: no answer within 120 s (--max-failures 1 goes on)
    """

    LAST = 50

    def __init__(self, most: float) -> None:
        self._most = most
        self._last: deque[str | None] = deque(maxlen=self.LAST)

    def count(self, error: str | None) -> None:
        """Count what came out of one item.

        Raises:
            StopError: more than the allowed share of the last items came to nothing.
        """
        self._last.append(error)
        failed = [each for each in self._last if each]
        if len(self._last) == self.LAST and len(failed) > self._most * self.LAST:
            reason = report.plain(max(failed, key=failed.count))
            raise StopError(f"{len(failed)} of the last {self.LAST} failed: {reason} (--max-failures 1 goes on)")
