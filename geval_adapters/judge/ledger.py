"""What was sent in batches and what came back: one SQLite file, written before anything depends on it."""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..errors import BusyError, InputError
from .batch_base import Result
from .secrets import known_secrets

NO_RESULT = (408, "the batch ended without a result for this request")

OURS = 0x6765766C
"""What SQLite's header says of a file that is a ledger."""
BUSY = 30.0
"""Seconds to wait for another process that writes."""

Stage = Literal["prepared", "sending", "under way", "ended"]


@dataclass(frozen=True)
class Batch:
    """One batch as the ledger has it.

    Attributes:
        number: counts the ledger's batches from 1.
        name: what it is called at the provider, where batches have metadata.
        model: the judge's model string.
        stage: `prepared` (on disk), `sending` (it may have been sent), `under way` or `ended`.
        reference: what the provider called that which the batch was made from, where that is handed over before.
        remote: the provider's id of it.
        size, done, failed: requests in all, with a response, and with an error.
        sent, expires: when it was sent, and when the provider gives it up, in seconds since 1970.
        why: what the provider said of a batch that it did not finish.
        cost: dollars that it may take at the most; None where the price is not known.
    """

    number: int
    name: str
    model: str
    stage: Stage
    reference: str
    remote: str | None
    size: int
    done: int
    failed: int
    sent: float | None
    expires: float | None
    why: str
    cost: float | None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return vars(self)


class Known(NamedTuple):
    """A request that was sent: its status and answer (JSON), None while there is none."""

    status: int | None
    answer: str | None


@dataclass
class Work:
    """What this process does with one ledger's batches.

    Attributes:
        users: how many are at it.
        sending: numbers of the batches that are being sent right now.
    """

    lock: sqlite3.Connection
    users: int = 0
    sending: set[int] = field(default_factory=set)


_under_way: dict[Path, Work] = {}
_taking = threading.Lock()


class Ledger:
    """All batches of a run, what they asked and what came back, in one SQLite file.

    Each change is on disk before the next step is taken.

    Raises:
        InputError: the file is no ledger, or cannot be read or written; from any method.
    """

    def __init__(self, path: str | Path, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise InputError(f"{path}: there is no such file")
        self._lock = threading.RLock()
        with self._told():
            self._data = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
            kind, tables = self._data.execute(
                "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
            ).fetchone()
            if kind != OURS and (tables or not create):
                raise InputError(f"{path}: is no file of batches")
            self._data.execute("PRAGMA synchronous = FULL")
            self._data.execute(f"PRAGMA application_id = {OURS}")
            self._data.executescript(_TABLES)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite finds wrong, as an error that names the file."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise InputError(f"{self.path}: cannot be used as a file of batches: {error}") from None

    @contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        """All of a change or nothing of it."""
        with self._told():
            self._data.execute("BEGIN IMMEDIATE")
            try:
                yield self._data
            except BaseException:
                self._data.execute("ROLLBACK")
                raise
            self._data.execute("COMMIT")

    @contextmanager
    def at_work(self) -> Iterator[Work]:
        """While this process sends and fetches, no other does.

        Raises:
            BusyError: another process is at it.
        """
        path = self.path.resolve()
        with _taking:
            if path not in _under_way:
                lock = sqlite3.connect(f"{path}.lock", timeout=0, isolation_level=None, check_same_thread=False)
                try:
                    lock.execute("BEGIN EXCLUSIVE")
                except sqlite3.Error:
                    lock.close()
                    raise BusyError(f"{self.path}: another process is at work with these batches") from None
                _under_way[path] = Work(lock)
            work = _under_way[path]
            work.users += 1
        try:
            yield work
        finally:
            with _taking:
                work.users -= 1
                if not work.users:
                    _under_way.pop(path).lock.close()

    def batches(self, model: str | None = None) -> list[Batch]:
        """All batches, or those of a model; the oldest first."""
        with self._told():
            rows = self._data.execute(
                "SELECT number, name, model, stage, reference, remote, size, done, failed, sent, expires, why, cost"
                " FROM batches ORDER BY number"
            ).fetchall()
        return [batch for batch in (Batch(*row) for row in rows) if model in (None, batch.model)]

    def prepare(self, model: str, keys: Iterable[str], cost: float | None) -> tuple[Batch, set[str]]:
        """Write down a batch that is about to be sent, of those requests that are in no other; and which these are."""
        name = f"geval-{uuid.uuid4().hex}"
        with self._at_once() as data:
            made = data.execute(
                "INSERT INTO batches (name, model, stage, reference, size, done, failed, why, cost)"
                " VALUES (?, ?, 'prepared', '', 0, 0, 0, '', ?)",
                (name, model, cost),
            )
            number = int(made.lastrowid or 0)
            mine = {key for key in keys if data.execute(_CLAIM, (key, model, number)).rowcount}
            data.execute("UPDATE batches SET size = ? WHERE number = ?", (len(mine), number))
        return Batch(number, name, model, "prepared", "", None, len(mine), 0, 0, None, None, "", cost), mine

    def write(self, batch: Batch) -> Batch:
        """Write down what has become of a batch."""
        told = (batch.stage, batch.reference, batch.remote, batch.done, batch.failed, batch.sent, batch.expires)
        with self._at_once() as data:
            data.execute(
                "UPDATE batches SET stage = ?, reference = ?, remote = ?, done = ?, failed = ?, sent = ?, expires = ?,"
                " why = ? WHERE number = ? AND stage != 'ended'",
                (*told, batch.why, batch.number),
            )
        return batch

    def forget(self, batch: Batch) -> None:
        """Take back a batch that was never sent, or was refused as a whole; its requests are asked anew."""
        with self._at_once() as data:
            data.execute("DELETE FROM requests WHERE batch = ?", (batch.number,))
            data.execute("DELETE FROM batches WHERE number = ?", (batch.number,))

    def forget_failures(self, model: str) -> None:
        """Take back the requests to a model that were answered with an error."""
        with self._at_once() as data:
            data.execute("DELETE FROM requests WHERE model = ? AND status != 200", (model,))

    def take(self, batch: Batch, results: Iterable[Result]) -> int:
        """Write down results of a batch, of each request the first; the number of those that are of none of it."""
        refused = 0
        secrets = known_secrets()
        with self._at_once() as data:
            for key, status, body in results:
                taken = data.execute(
                    "UPDATE requests SET status = coalesce(status, ?), answer = coalesce(answer, ?)"
                    " WHERE key = ? AND batch = ?",
                    (status, _json(body, secrets), key, batch.number),
                )
                refused += not taken.rowcount
        return refused

    def end(self, batch: Batch, status: int, message: str) -> None:
        """A batch is over; its requests without a result get this one."""
        with self._at_once() as data:
            data.execute(
                "UPDATE requests SET status = ?, answer = ? WHERE batch = ? AND status IS NULL",
                (status, json.dumps(message), batch.number),
            )
            data.execute(
                "UPDATE batches SET stage = 'ended', done = ?, failed = ?, why = ? WHERE number = ?",
                (batch.done, batch.failed, batch.why, batch.number),
            )

    def look_up(self, key: str) -> Known | None:
        """What is known of a request; None for one that was never sent."""
        with self._told():
            row = self._data.execute("SELECT status, answer FROM requests WHERE key = ?", (key,)).fetchone()
        return Known(*row) if row else None

    def store(self, model: str, key: str, answer: Mapping[str, Any]) -> None:
        """Write down what was answered at once."""
        with self._at_once() as data:
            data.execute(
                "INSERT OR REPLACE INTO requests VALUES (?, ?, NULL, 200, ?)",
                (key, model, _json(answer, known_secrets())),
            )

    def finish(self, model: str) -> None:
        """A run is over and its results are written: whoever asks this model the same again wants a new answer."""
        with self._at_once() as data:
            data.execute(
                "DELETE FROM requests WHERE model = ? AND (batch IS NULL"
                " OR batch IN (SELECT number FROM batches WHERE stage = 'ended'))",
                (model,),
            )

    def recall(self, name: str) -> dict[str, Any]:
        """What was remembered under a name; nothing where there is nothing."""
        with self._told():
            row = self._data.execute("SELECT facts FROM learnt WHERE name = ?", (name,)).fetchone()
        return dict(json.loads(row[0])) if row else {}

    def remember(self, name: str, facts: Mapping[str, Any]) -> None:
        """Keep facts under a name."""
        with self._at_once() as data:
            data.execute("INSERT OR REPLACE INTO learnt VALUES (?, ?)", (name, json.dumps(dict(facts))))

    def close(self) -> None:
        """Close the file."""
        self._data.close()


def _json(body: Mapping[str, Any] | str, secrets: Iterable[str]) -> str:
    """A response as JSON; a server may have echoed the request's key in it."""
    text = json.dumps(body)
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


_CLAIM = (
    "INSERT INTO requests VALUES (?, ?, ?, NULL, NULL) ON CONFLICT (key)"
    " DO UPDATE SET batch = excluded.batch, status = NULL, answer = NULL WHERE status != 200"
)
"""Takes a request into a batch, if it is in none or was answered with an error there."""
_TABLES = """
CREATE TABLE IF NOT EXISTS batches (
    number INTEGER PRIMARY KEY, name TEXT, model TEXT, stage TEXT, reference TEXT, remote TEXT,
    size INTEGER, done INTEGER, failed INTEGER, sent REAL, expires REAL, why TEXT, cost REAL
);
CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, model TEXT, batch INTEGER, status INTEGER, answer TEXT);
CREATE TABLE IF NOT EXISTS learnt (name TEXT PRIMARY KEY, facts TEXT);
CREATE INDEX IF NOT EXISTS by_batch ON requests (batch);
"""
