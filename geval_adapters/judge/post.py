"""How requests travel as batches: collected, sent once, looked after, and answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from ..errors import JudgeError, UnderWay
from .base import log
from .batch_base import BatchAPI, Result, Status
from .faults import Fault
from .ledger import NO_RESULT, Batch, Ledger, Work
from .secrets import redact

SETTLE = 0.5
"""Seconds without a new request after which those that wait are sent."""
LAG = 60.0
"""Seconds after which a batch that was begun stands in its provider's list for certain."""
TAKEN = 500
"""Results that are written down at once, so that a batch of any size takes little memory."""
PAUSES = (5.0, 600.0)
"""Seconds between two looks at a batch, at first and at the most; each pause is half as long again as the last."""

Answered = asyncio.Future[dict[str, Any]]


class Keys:
    """The names of a judge's requests in the ledger.

    Equal requests of one run are counted in the order in which they are asked. One that failed, or was never sent, has
    its number again when it is sent again; and a run that did not end is gone on with by the same questions, also in
    the same process.
    """

    def __init__(self, model: str, base: str | None) -> None:
        self._of = [model, *([base] if base else [])]
        self._asked: Counter[str] = Counter()
        self._free: dict[str, list[int]] = {}
        self._under_way = 0
        self._broken = False
        self._lock = threading.Lock()

    def name(self, body: Mapping[str, Any], about: str) -> str:
        """The key of a request that is about to be made."""
        digest = hashlib.sha256(json.dumps([*self._of, about, body], sort_keys=True).encode()).hexdigest()[:40]
        with self._lock:
            if free := self._free.get(digest):
                return f"{digest}-{heappop(free)}"
            self._asked[digest] += 1
            return f"{digest}-{self._asked[digest]}"

    def release(self, key: str) -> None:
        """A request failed: sent again, it goes by the same key."""
        digest, _, number = key.rpartition("-")
        with self._lock:
            heappush(self._free.setdefault(digest, []), int(number))

    def begin(self) -> None:
        """A question is asked."""
        with self._lock:
            self._under_way += 1

    def end(self, failed: bool) -> None:
        """A question is answered; `failed` is one that was given up."""
        with self._lock:
            self._under_way -= 1
            self._broken |= failed
        if self._broken:  # whoever was answered may ask on before it is known whether the run is over
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        with self._lock:
            if self._broken and not self._under_way:
                self._broken = False
                self._asked.clear()
                self._free.clear()


class Post:
    """Requests that wait for each other and travel as batches, in one event loop.

    Args:
        model: the judge's model string.
        api: the provider's batch interface.
        ledger: where all of it is written down.
        keys: what requests are called there.
        wait: whether to stay until the results are there; else `UnderWay` is raised once all is sent.
        watch: told of the batches whenever one has moved on.
        price: what a request may cost at the most, None where that is not known.
    """

    def __init__(
        self,
        model: str,
        api: BatchAPI,
        ledger: Ledger,
        keys: Keys,
        wait: bool,
        watch: Callable[[list[Batch]], None],
        price: Callable[[Mapping[str, Any]], float | None],
    ) -> None:
        self._model = model
        self._api = api
        self._ledger = ledger
        self._keys = keys
        self._wait = wait
        self._watch = watch
        self._price = price
        self._most = api.most_requests
        self._told: set[str] = set()  # keys of requests whose failure is known here: asked again, they are sent again
        self._open: dict[str, tuple[dict[str, Any], Answered]] = {}
        self._taken_up = False
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._more = asyncio.Event()

    async def send(
        self,
        body: dict[str, Any],
        about: str,
        at_once: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None = None,
    ) -> dict[str, Any]:
        """One request and its response: `at_once`, or when its batch has been answered.

        Raises Fault, JudgeError or UnderWay.
        """
        key = self._keys.name(body, about)
        known = self._ledger.look_up(key)
        if at_once and (known is None or key in self._told):
            try:
                response = await at_once(body)
            except BaseException:
                self._keys.release(key)
                raise
            self._ledger.store(self._model, key, response)
            return response
        answer: Answered = asyncio.get_running_loop().create_future()
        self._open[key] = body, answer
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SETTLE, self._begin)
        return await answer

    def _begin(self) -> None:
        self._timer = None
        self._more.set()
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        """Send what is open and fetch what is done, until nothing is open; a failure is for all who wait to hear."""
        try:
            with self._ledger.at_work() as work:
                await self._run_with(work)
        except Exception as error:
            waiting, self._open = self._open, {}
            self._taken_up = False  # what is asked after this is another run
            for _, answer in waiting.values():
                if not answer.done():
                    answer.set_exception(error)

    async def _run_with(self, work: Work) -> None:
        pause = PAUSES[0]
        while self._open:
            if self._more.is_set():
                self._more.clear()
                pause = PAUSES[0]
            await self._take_up(work)
            await self._send_new(work)
            await self._fetch()
            self._open = {key: each for key, each in self._open.items() if not each[1].done()}  # whoever asked has gone
            if not self._open or self._more.is_set() or self._timer:
                await asyncio.sleep(0)
                continue
            if not self._wait:
                raise UnderWay(self._said)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._more.wait(), pause)
            pause = min(PAUSES[1], pause * 1.5)

    async def _take_up(self, work: Work) -> None:
        """Settle what an earlier run left: what was not sent is dropped, what may have been is looked up."""
        if self._taken_up:
            return
        left = [batch for batch in self._ledger.batches(self._model) if batch.number not in work.sending]
        for batch in left:
            if batch.stage == "prepared":
                self._ledger.forget(batch)
            elif batch.stage == "sending":
                await self._find(batch)
        if all(batch.stage == "ended" for batch in left) and not work.sending:
            self._ledger.forget_failures(self._model)  # that run is over: this one asks for them again
        self._taken_up = True

    async def _find(self, batch: Batch) -> Batch | None:
        """The batch whose submission was not answered, if the provider has it; else it is dropped.

        Raises:
            JudgeError: the provider's list leaves a doubt. Nothing is sent twice on a guess.
        """
        ours = [each.remote for each in self._ledger.batches() if each.remote]
        sent = batch.sent or 0.0
        try:
            while True:
                found = await self._api.find(batch.name, batch.reference, batch.size, sent, ours)
                if found or time.time() > sent + LAG:
                    break
                await asyncio.sleep(min(PAUSES[0], LAG))
        except Fault as fault:
            if fault.passes:
                raise JudgeError(f"{self._model}: its list of batches cannot be read: {fault.message}") from None
            found = ["", fault.message]
        if not found:
            self._ledger.forget(batch)
            return None
        if len(found) > 1:
            raise JudgeError(
                f"{self._ledger.path}: batch {batch.number} ({batch.size} requests) may or may not have been sent, and"
                f" {self._model.partition('/')[0]} does not tell. Look at its list of batches, then say"
                f" `geval batches {self._ledger.path} --adopt {batch.number}=ID` if it is there,"
                f" or `--drop {batch.number}` if it is not"
            )
        return self._ledger.write(replace(batch, stage="under way", remote=found[0]))

    async def _send_new(self, work: Work) -> None:
        """Send all that is open and was never sent, in as few batches as the provider's limits allow."""
        new = [(key, body) for key, (body, _) in self._open.items() if self._is_new(key)]
        under_way = any(batch.stage == "under way" for batch in self._ledger.batches(self._model))
        if self._most < self._api.most_requests and under_way:
            return  # the provider's queue is full: what is under way must be done first
        for chunk in _chunks(new, self._most, self._api.most_bytes):
            prices = [self._price(body) for _, body in chunk]
            cost = None if None in prices else sum(price for price in prices if price is not None)
            batch, mine = self._ledger.prepare(self._model, [key for key, _ in chunk], cost)
            self._told -= mine
            work.sending.add(batch.number)
            try:
                if mine:
                    await self._submit(batch, [(key, body) for key, body in chunk if key in mine])
                else:
                    self._ledger.forget(batch)
            finally:
                work.sending.discard(batch.number)
            self._watch(self._ledger.batches())

    def _is_new(self, key: str) -> bool:
        return self._ledger.look_up(key) is None or key in self._told

    async def _submit(self, batch: Batch, requests: list[tuple[str, dict[str, Any]]]) -> None:
        try:
            reference = await self._api.prepare(batch.name, requests)
            batch = self._ledger.write(replace(batch, stage="sending", reference=reference, sent=time.time()))
            remote = await self._api.send(batch.name, reference, requests)
            self._ledger.write(replace(batch, stage="under way", remote=remote))
        except Fault as fault:
            if not (batch.stage == "sending" and fault.unsure and await self._find(batch)):
                self._ledger.forget(batch)
                self._answer(fault, [key for key, _ in requests])

    async def _fetch(self) -> None:
        """Look after what is under way, and hand on what has been answered."""
        for batch in self._ledger.batches(self._model):
            remote = batch.remote
            if batch.stage != "under way" or remote is None:
                continue
            try:
                status = await self._api.status(remote)
                why = redact(status.why)
                batch = replace(batch, done=status.done, failed=status.failed, expires=status.expires, why=why)
                if status.state == "refused":
                    self._refused(batch, status)
                elif status.state == "ended":
                    await self._take(batch, remote)
                else:
                    self._ledger.write(batch)
            except Fault as fault:
                if not fault.passes:
                    raise JudgeError(
                        f"{self._model}: batch {batch.remote}: {fault.message} (`geval batches {self._ledger.path}"
                        f" --drop {batch.number}` gives it up, and its requests are sent anew)"
                    ) from None
                log.warning("batch %s: %s; looked at again later", batch.remote, fault.message)
            self._watch(self._ledger.batches())
        for number, key in enumerate(list(self._open)):
            known = None if key in self._told else self._ledger.look_up(key)
            if known and known.status is not None:
                answer = json.loads(known.answer or "null")
                self._answer(answer if known.status == 200 else Fault(known.status, str(answer)), [key])
                if number % TAKEN == 0:
                    await asyncio.sleep(0)  # those who wait take theirs before more is read

    async def _take(self, batch: Batch, remote: str) -> None:
        """Write down the results of a batch that is over."""
        strange = 0
        some: list[Result] = []
        async for result in self._api.results(remote):
            some.append(result)
            if len(some) == TAKEN:
                strange += self._ledger.take(batch, some)
                some.clear()
        if strange := strange + self._ledger.take(batch, some):
            log.warning("batch %s: %d results of no request of ours were refused", remote, strange)
        self._ledger.end(batch, *NO_RESULT)

    def _refused(self, batch: Batch, status: Status) -> None:
        """A batch that the provider did not take: smaller ones may do where its queue is full, else nothing does."""
        if status.retry and batch.size > 1:
            self._most = -(-batch.size // 2)
            self._ledger.forget(batch)
        else:
            self._ledger.end(batch, 400, batch.why or "the provider refused the batch")

    def _answer(self, answer: dict[str, Any] | Fault, keys: Iterable[str]) -> None:
        for key in keys:
            _, waiting = self._open.pop(key)
            if isinstance(answer, Fault):
                self._told.add(key)
                self._keys.release(key)
            if waiting.done():  # whoever asked has gone
                continue
            if isinstance(answer, Fault):
                waiting.set_exception(Fault(answer.status, answer.message, answer.retry_after, answer.kind))
            else:
                waiting.set_result(answer)

    def _said(self) -> str:
        own = [batch for batch in self._ledger.batches(self._model) if batch.stage == "under way"]
        size, done = sum(batch.size for batch in own), sum(batch.done + batch.failed for batch in own)
        return (
            f"{size} requests are under way in {len(own)} batches, {done} of them done; the same command takes what is"
            f" there (`geval batches {self._ledger.path}` shows it)"
        )


def _chunks(
    requests: list[tuple[str, dict[str, Any]]], most: int, most_bytes: int
) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Requests in groups that a provider takes: so many at the most, and so many bytes."""
    chunk: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for key, body in requests:
        length = len(json.dumps(body)) + 200
        if chunk and (len(chunk) >= most or size + length > most_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append((key, body))
        size += length
    if chunk:
        yield chunk
