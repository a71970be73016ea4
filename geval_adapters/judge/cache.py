"""Replies that were paid for once, for later runs: one SQLite file of JSON."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, JudgeError
from .base import Answer, Reply, Took, Usage

if TYPE_CHECKING:
    import sqlite3

FILE = "replies.sqlite"
BUSY = 30.0
"""Seconds to wait for another process that writes."""


class NoReplyError(JudgeError):
    """A reply is not kept, and nobody may be asked for it."""


class ReplyCache:
    """Replies by request and number: the third reply to a request in one run is the third in the next.

    So a question that a run asks twice on purpose, as adaptive sampling does, gets two replies, never one of them
    twice. What went wrong is not kept. Several processes may use one folder.

    Args:
        folder: where the file lies, or will.
        only: whether a judge is never asked: what is not there is then an error.

    Raises:
        InputError: the folder cannot be written, or the file in it is no cache.
        NoReplyError: from `answer`, with `only`: a reply is not there.
    """

    def __init__(self, folder: str | Path, only: bool = False) -> None:
        self.path = Path(folder) / FILE
        self.only = only
        self._numbers: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._open: tuple[int, sqlite3.Connection] | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection  # noqa: B018 - so that a bad file is said before anything is asked
        except OSError as error:
            raise InputError(f"{folder}: no cache can be written there: {error.strerror or error}") from None

    @property
    def _connection(self) -> sqlite3.Connection:
        """A connection for each process: SQLite's do not survive a fork."""
        import sqlite3

        if self._open is None or self._open[0] != os.getpid():
            try:
                made = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
                made.execute("PRAGMA journal_mode=WAL")
                made.execute("PRAGMA synchronous=NORMAL")
                made.execute(
                    "CREATE TABLE IF NOT EXISTS replies (request BLOB, number INTEGER, answer TEXT,"
                    " PRIMARY KEY (request, number)) WITHOUT ROWID"
                )
            except sqlite3.Error as error:
                raise InputError(f"{self.path}: is no cache of replies, or cannot be used: {error}") from None
            self._open = os.getpid(), made
        return self._open[1]

    async def answer(self, request: Mapping[str, Any], n: int, ask: Callable[[int], Awaitable[Answer]]) -> Answer:
        """`n` replies to a request: those that are there, and the others from `ask`, which are kept.

        Args:
            request: all that could change a reply, as JSON has it.
            n: how many replies.
            ask: gets that many from the judge.
        """
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()[:16]
        first = self._numbers.get(key, 0)
        self._numbers[key] = first + n
        known = self._read(key, first, n)
        missing = [number for number in range(first, first + n) if number not in known]
        answer = Answer([], Usage(from_cache=len(known)))
        if missing and self.only:
            there = f"{len(known)} of {n}" if known else "none"
            raise NoReplyError(
                f"{self.path}: {there} of the replies to this question are kept, and no judge is to be asked"
            )
        if missing:
            answer = await ask(len(missing))
            for number, reply in zip(missing, answer.replies, strict=True):
                if reply.error is None:
                    self._write(key, number, reply, answer)
        new = dict(zip(missing, answer.replies, strict=True))
        replies = [known[number][0] if number in known else new[number] for number in range(first, first + n)]
        without = answer.without.union(*(each for _, _, each in known.values()))
        models = dict.fromkeys(name for name in (*(name for _, name, _ in known.values()), answer.model) if name)
        usage = answer.usage + Usage(from_cache=len(known)) if missing else answer.usage
        return Answer(replies, usage, "+".join(models) or None, without)

    def _read(self, key: bytes, first: int, n: int) -> dict[int, tuple[Reply, str | None, frozenset[str]]]:
        with self._lock:
            rows = self._connection.execute(
                "SELECT number, answer FROM replies WHERE request = ? AND number BETWEEN ? AND ?",
                (key, first, first + n - 1),
            ).fetchall()
        told = [(number, json.loads(answer)) for number, answer in rows]
        return {number: (_reply(each["reply"]), each["model"], frozenset(each["without"])) for number, each in told}

    def _write(self, key: bytes, number: int, reply: Reply, answer: Answer) -> None:
        reply = replace(reply, took=Took.of(answer.usage, len(answer.replies)))
        told = {"reply": asdict(reply), "model": answer.model, "without": sorted(answer.without)}
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, number, json.dumps(told)))

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process as the place of the file."""
        return {"path": self.path, "only": self.only}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"].parent, state["only"])  # type: ignore[misc]


def _reply(told: dict[str, Any]) -> Reply:
    took = told.get("took")  # which an older cache does not tell
    return Reply(**{**told, "took": Took(*took) if took else None})
