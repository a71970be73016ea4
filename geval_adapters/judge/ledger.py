"""What was sent in batches and what came back: one SQLite file, written before anything depends on it."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..errors import InputError
from .batch_apis import Result

NO_RESULT = (408, "the batch ended without a result for this request")

Stage = Literal["prepared", "sending", "under way", "ended"]


@dataclass(frozen=True)
class Batch:
    """One batch as the ledger has it.

    Attributes:
        number: counts the ledger's batches from 1.
        name: what it is called at the provider, where batches have metadata.
        model: the judge's model string.
        stage: `prepared` (on disk), `sending` (it may have been sent), `under way` or `ended`.
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


class Ledger:
    """All batches of a run, what they asked and what came back, in one SQLite file.

    Each change is on disk before the next step is taken.

    Raises:
        InputError: the file is no ledger, or cannot be written.
    """

    def __init__(self, path: str | Path, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise InputError(f"{path}: there is no such file")
        try:
            self._data = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._data.execute("PRAGMA synchronous = FULL")
            self._data.executescript(_TABLES)
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot be used as a file of batches: {error}") from None

    @contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        """All of a change or nothing of it."""
        self._data.execute("BEGIN IMMEDIATE")
        try:
            yield self._data
        except BaseException:
            self._data.execute("ROLLBACK")
            raise
        self._data.execute("COMMIT")

    def batches(self) -> list[Batch]:
        """All batches, the oldest first."""
        rows = self._data.execute(
            "SELECT number, name, model, stage, remote, size, done, failed, sent, expires, why, cost FROM batches"
            " ORDER BY number"
        )
        return [Batch(*row) for row in rows]

    def prepare(self, model: str, keys: Iterable[str], cost: float | None) -> Batch:
        """Write down a batch that is about to be sent."""
        keys, name = list(keys), f"geval-{uuid.uuid4().hex}"
        with self._at_once() as data:
            made = data.execute(
                "INSERT INTO batches (name, model, stage, size, done, failed, why, cost)"
                " VALUES (?, ?, 'prepared', ?, 0, 0, '', ?)",
                (name, model, len(keys), cost),
            )
            number = int(made.lastrowid or 0)
            data.executemany("INSERT INTO requests (key, batch) VALUES (?, ?)", ((key, number) for key in keys))
        return Batch(number, name, model, "prepared", None, len(keys), 0, 0, None, None, "", cost)

    def write(self, batch: Batch) -> Batch:
        """Write down what has become of a batch."""
        with self._at_once() as data:
            data.execute(
                "UPDATE batches SET stage = ?, remote = ?, done = ?, failed = ?, sent = ?, expires = ?, why = ?"
                " WHERE number = ?",
                (
                    batch.stage,
                    batch.remote,
                    batch.done,
                    batch.failed,
                    batch.sent,
                    batch.expires,
                    batch.why,
                    batch.number,
                ),
            )
        return batch

    def forget(self, batch: Batch) -> None:
        """Take back a batch that was never sent, or was refused as a whole; its requests are asked anew."""
        with self._at_once() as data:
            data.execute("DELETE FROM requests WHERE batch = ?", (batch.number,))
            data.execute("DELETE FROM batches WHERE number = ?", (batch.number,))

    def end(self, batch: Batch, results: Iterable[Result], rest: tuple[int, str] = NO_RESULT) -> int:
        """Write down the results of a batch; the number of those that are of no request of it, or come twice.

        `rest` is the status and message of the requests without a result.
        """
        refused = 0
        with self._at_once() as data:
            for key, status, body in results:
                answer = json.dumps(body)
                taken = data.execute(
                    "UPDATE requests SET status = ?, answer = ? WHERE key = ? AND batch = ? AND status IS NULL",
                    (status, answer, key, batch.number),
                )
                refused += not taken.rowcount
            data.execute(
                "UPDATE requests SET status = ?, answer = ? WHERE batch = ? AND status IS NULL",
                (rest[0], json.dumps(rest[1]), batch.number),
            )
            data.execute(
                "UPDATE batches SET stage = 'ended', done = ?, failed = ?, why = ? WHERE number = ?",
                (batch.done, batch.failed, batch.why, batch.number),
            )
        return refused

    def look_up(self, key: str) -> Known | None:
        """What is known of a request; None for one that was never sent."""
        row = self._data.execute("SELECT status, answer FROM requests WHERE key = ?", (key,)).fetchone()
        return Known(*row) if row else None

    def store(self, key: str, answer: Mapping[str, Any]) -> None:
        """Write down what was answered at once."""
        with self._at_once() as data:
            data.execute("INSERT INTO requests VALUES (?, NULL, 200, ?)", (key, json.dumps(answer)))

    def finish(self) -> None:
        """A run is over and its results are written: whoever asks the same again wants a new answer."""
        with self._at_once() as data:
            data.execute(
                "DELETE FROM requests WHERE batch IS NULL"
                " OR batch IN (SELECT number FROM batches WHERE stage = 'ended')"
            )

    def recall(self, name: str) -> dict[str, Any]:
        """What was remembered under a name; nothing where there is nothing."""
        row = self._data.execute("SELECT facts FROM learnt WHERE name = ?", (name,)).fetchone()
        return dict(json.loads(row[0])) if row else {}

    def remember(self, name: str, facts: Mapping[str, Any]) -> None:
        """Keep facts under a name."""
        with self._at_once() as data:
            data.execute("INSERT OR REPLACE INTO learnt VALUES (?, ?)", (name, json.dumps(dict(facts))))

    def close(self) -> None:
        """Close the file."""
        self._data.close()


_TABLES = """
CREATE TABLE IF NOT EXISTS batches (
    number INTEGER PRIMARY KEY, name TEXT, model TEXT, stage TEXT, remote TEXT,
    size INTEGER, done INTEGER, failed INTEGER, sent REAL, expires REAL, why TEXT, cost REAL
);
CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, batch INTEGER, status INTEGER, answer TEXT);
CREATE TABLE IF NOT EXISTS learnt (name TEXT PRIMARY KEY, facts TEXT);
CREATE INDEX IF NOT EXISTS by_batch ON requests (batch);
"""
