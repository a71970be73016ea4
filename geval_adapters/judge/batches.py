"""Asking by the providers' batch interfaces: half the price, answers within hours, and nothing lost in between.

Requests wait until no more come, and then travel together; so a run that asks in rounds (a parameter that was refused,
samples until an error bar is small) makes a batch of each round. All that was sent and answered stands in one SQLite
file, the ledger, before anything depends on it. The same run, begun again, asks the same and finds the answers there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ..errors import JudgeError, UnderWay
from .base import Answer, cache_folder, log
from .batch_apis import BatchAPI, Status, batch_api
from .client import LiteLLMJudge
from .faults import Fault
from .ledger import Batch, Ledger

AT_ONCE = 50_000
"""Half of how many samples may wait for their batches at once; larger inputs go in several rounds."""
SETTLE = 0.5
"""Seconds without a new request after which those that wait are sent."""
PAUSES = (5.0, 600.0)
"""Seconds between two looks at a batch, at first and at the most; each pause is half as long again as the last."""

Answered = asyncio.Future[dict[str, Any]]


class BatchJudge(LiteLLMJudge):
    """A model that is asked by its provider's batch interface: half the price, answers within hours.

    Only the first few questions of a kind are asked in the ordinary way; what a model refuses, or turns out not to
    have, is learnt from them, so that a batch of many thousands is not lost to it.

    Args:
        model: a LiteLLM string of a provider that has batches (`batch_apis.batch_api`).
        batch: the ledger's file, from which the same run goes on after any interruption. `True` is one for each model
            in the user's cache folder.
        wait: whether to stay until the answers are there; else `UnderWay` ends the run once all is sent.
        watch: told of the ledger's batches whenever one of them has moved on.
        options: as for `LiteLLMJudge`; rates are the provider's own matter here.

    Raises:
        InputError: the ledger cannot be used.
        JudgeError: the provider has no batches, or as for `LiteLLMJudge`.
    """

    opening = 8
    asks_in_batches = True

    def __init__(
        self,
        model: str | None = None,
        *,
        batch: str | Path | Literal[True] = True,
        wait: bool = True,
        watch: Callable[[list[Batch]], None] = lambda batches: None,
        **options: Any,
    ) -> None:
        if options.get("router"):
            raise JudgeError("a router has no batches: name the model itself")
        super().__init__(model, **options | {"concurrency": AT_ONCE, "rpm": None, "tpm": None})
        self.ledger = Ledger(batch if batch is not True else _usual_ledger(self.name))
        self._api = batch_api(self.name, options.get("api_base"), options.get("api_key"))
        self._wait, self._watch = wait, watch
        self._posts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Post] = weakref.WeakKeyDictionary()
        if known := self.ledger.recall(self.name):
            self.parameters.recall(known)

    def recall(self, kind: str) -> Mapping[str, Any]:
        """What an earlier process learnt of questions of a kind."""
        return self.ledger.recall(f"{self.name} {kind}")

    def remember(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Keep what was learnt of questions of a kind, and of the model."""
        self.ledger.remember(self.name, self.parameters.learnt())
        self.ledger.remember(f"{self.name} {kind}", facts)

    def finish(self) -> None:
        """All that was asked for is written down: the same questions, asked again, are new ones."""
        self.ledger.finish()

    async def ask(
        self, messages: Sequence[Mapping[str, str]], *, about: str = "", now: bool = False, **options: Any
    ) -> Answer:
        """Return replies; see `Judge.ask`. Unless they are wanted now, that takes hours."""
        before = _ASKED.set((about, now))
        try:
            return await super().ask(messages, **options)
        finally:
            _ASKED.reset(before)

    async def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        about, now = _ASKED.get()
        loop = asyncio.get_running_loop()
        if (post := self._posts.get(loop)) is None:
            post = self._posts[loop] = Post(self.name, self._api, self.ledger, self._wait, self._watch, self._most_of)
        return await post.send(body, about, super()._answer if now else None)

    def _most_of(self, body: Mapping[str, Any]) -> float | None:
        """Dollars that a request may cost at the most, about."""
        prompt, completion = self._tokens(body)
        return self.price(int(prompt), 0, 0, int(completion))

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a judge that is asked in batches stays in its process: give workers an ordinary one")


_ASKED: ContextVar[tuple[str, bool]] = ContextVar("asked", default=("", False))
"""What the question under way is about, and whether it is to be answered at once."""


def _usual_ledger(model: str) -> Path:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"batches-{hashlib.sha256(model.encode()).hexdigest()[:12]}.db"


class Post:
    """Requests that wait for each other and travel as batches, in one event loop.

    Args:
        model: the judge's model string.
        api: the provider's batch interface.
        ledger: where all of it is written down.
        wait: whether to stay until the results are there; else `UnderWay` is raised once all is sent.
        watch: told of the batches whenever one has moved on.
        price: what a request may cost at the most, None where that is not known.
    """

    def __init__(
        self,
        model: str,
        api: BatchAPI,
        ledger: Ledger,
        wait: bool,
        watch: Callable[[list[Batch]], None],
        price: Callable[[Mapping[str, Any]], float | None],
    ) -> None:
        self._model = model
        self._api = api
        self._ledger = ledger
        self._wait = wait
        self._watch = watch
        self._price = price
        self._most = api.most_requests
        self._asked: Counter[str] = Counter()
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
        key = self._key(body, about)
        if at_once and self._ledger.look_up(key) is None:
            response = await at_once(body)
            self._ledger.store(key, response)
            return response
        answer: Answered = asyncio.get_running_loop().create_future()
        self._open[key] = body, answer
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SETTLE, self._begin)
        return await answer

    def _key(self, body: Mapping[str, Any], about: str) -> str:
        """A request's name in the ledger: equal ones of one run are counted, in the order in which they are asked."""
        digest = hashlib.sha256(json.dumps([self._model, about, body], sort_keys=True).encode()).hexdigest()[:40]
        self._asked[digest] += 1
        return f"{digest}-{self._asked[digest]}"

    def _begin(self) -> None:
        self._timer = None
        self._more.set()
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        """Send what is open and fetch what is done, until nothing is open; a failure is for all who wait to hear."""
        pause = PAUSES[0]
        try:
            while self._open:
                if self._more.is_set():
                    self._more.clear()
                    pause = PAUSES[0]
                await self._take_up()
                await self._send_new()
                await self._fetch()
                if not self._open or self._more.is_set() or self._timer:
                    await asyncio.sleep(0)
                    continue
                if not self._wait:
                    raise UnderWay(self._said())
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._more.wait(), pause)
                pause = min(PAUSES[1], pause * 1.5)
        except Exception as error:
            waiting, self._open = self._open, {}
            for _, answer in waiting.values():
                if not answer.done():
                    answer.set_exception(error)

    async def _take_up(self) -> None:
        """Settle what an earlier process left: what was not sent is dropped, what may have been is looked up."""
        for batch in [] if self._taken_up else self._ledger.batches():
            if batch.stage == "prepared":
                self._ledger.forget(batch)
            elif batch.stage == "sending" and batch.model == self._model:
                await self._find(batch)
        self._taken_up = True

    async def _find(self, batch: Batch) -> Batch | None:
        """The batch whose submission was not answered, if the provider has it; else it is dropped.

        Raises:
            JudgeError: the provider's list leaves a doubt. Nothing is sent twice on a guess.
        """
        ours = [each.remote for each in self._ledger.batches() if each.remote]
        try:
            found = await self._api.find(batch.name, batch.size, batch.sent or 0.0, ours)
        except Fault as fault:
            if fault.passes:
                raise
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

    async def _send_new(self) -> None:
        """Send all that is open and was never sent, in as few batches as the provider's limits allow."""
        new = [(key, body) for key, (body, _) in self._open.items() if self._ledger.look_up(key) is None]
        under_way = any(batch.stage == "under way" for batch in self._ledger.batches())
        if self._most < self._api.most_requests and under_way:
            return  # the provider's queue is full: what is under way must be done first
        for chunk in _chunks(new, self._most, self._api.most_bytes):
            prices = [self._price(body) for _, body in chunk]
            cost = None if None in prices else sum(price for price in prices if price is not None)
            batch = self._ledger.prepare(self._model, [key for key, _ in chunk], cost)
            try:
                reference = await self._api.prepare(batch.name, chunk)
                batch = self._ledger.write(replace(batch, stage="sending", sent=time.time()))
                remote = await self._api.send(batch.name, reference, chunk)
                batch = self._ledger.write(replace(batch, stage="under way", remote=remote))
            except Fault as fault:
                sent = batch.stage == "sending" and fault.unsure and await self._find(batch)
                if not sent:
                    self._ledger.forget(batch)
                    self._answer(fault, [key for key, _ in chunk])
            self._watch(self._ledger.batches())

    async def _fetch(self) -> None:
        """Look after what is under way, and hand on what has been answered."""
        for batch in self._ledger.batches():
            remote = batch.remote
            if batch.stage != "under way" or batch.model != self._model or remote is None:
                continue
            try:
                status = await self._api.status(remote)
                batch = replace(batch, done=status.done, failed=status.failed, expires=status.expires, why=status.why)
                if status.state == "refused":
                    self._refused(batch, status)
                elif status.state == "ended":
                    results = [result async for result in self._api.results(remote)]
                    if strange := self._ledger.end(batch, results):
                        log.warning("batch %s: %d results of no request of ours were refused", batch.remote, strange)
                else:
                    self._ledger.write(batch)
            except Fault as fault:
                if not fault.passes:
                    raise JudgeError(f"{self._model}: batch {batch.remote}: {fault.message}") from None
                log.warning("batch %s: %s; looked at again later", batch.remote, fault.message)
            self._watch(self._ledger.batches())
        for key in list(self._open):
            known = self._ledger.look_up(key)
            if known and known.status is not None:
                answer = json.loads(known.answer or "null")
                self._answer(answer if known.status == 200 else Fault(known.status, str(answer)), [key])

    def _refused(self, batch: Batch, status: Status) -> None:
        """A batch that the provider did not take: smaller ones may do where its queue is full, else nothing does."""
        if status.retry and batch.size > 1:
            self._most = -(-batch.size // 2)
            self._ledger.forget(batch)
        else:
            self._ledger.end(batch, [], rest=(400, status.why or "the provider refused the batch"))

    def _answer(self, answer: dict[str, Any] | Fault, keys: Iterable[str]) -> None:
        for key in keys:
            _, waiting = self._open.pop(key)
            if waiting.done():  # whoever asked has gone
                continue
            if isinstance(answer, Fault):
                waiting.set_exception(Fault(answer.status, answer.message, answer.retry_after, answer.kind))
            else:
                waiting.set_result(answer)

    def _said(self) -> str:
        own = [batch for batch in self._ledger.batches() if batch.stage == "under way"]
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
