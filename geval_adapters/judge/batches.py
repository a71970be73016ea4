"""Asking by the providers' batch interfaces: half the price, answers within hours, and nothing lost in between.

Requests wait until no more come, and then travel together; so a run that asks in rounds (a parameter that was refused,
samples until an error bar is small) makes a batch of each round. All that was sent and answered stands in one SQLite
file, the ledger, before anything depends on it. The same run, begun again, asks the same and finds the answers there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from ..errors import JudgeError
from .base import Answer, cache_folder
from .batch_apis import batch_api
from .client import LiteLLMJudge
from .ledger import Batch, Ledger
from .loops import PerLoop
from .post import Keys, Post

AT_ONCE = 50_000
"""Half of how many samples may wait for their batches at once; larger inputs go in several rounds."""


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
        self._api = batch_api(self.name, options.get("api_base"), options.get("api_key"))
        self.ledger = Ledger(batch if batch is not True else _usual_ledger(self.name))
        self._wait, self._watch = wait, watch
        self._posts = PerLoop(self._post)
        self._keys = Keys(self.name, options.get("api_base"))
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
        self.ledger.finish(self.name)

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], *, about: str = "", now: bool = False, **options: Any
    ) -> Answer:
        """Return replies; see `Judge.ask`. Unless they are wanted now, that takes hours."""
        before = _ASKED.set((about, now))
        self._keys.begin()
        try:
            answer = await super().ask(messages, **options)
        except BaseException:
            self._keys.end(failed=True)
            raise
        finally:
            _ASKED.reset(before)
        self._keys.end(failed=False)
        return answer

    async def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        about, now = _ASKED.get()
        return await self._posts.here().send(body, about, super()._answer if now else None)

    def _post(self) -> Post:
        return Post(self.name, self._api, self.ledger, self._keys, self._wait, self._watch, self._most_of)

    def _most_of(self, body: Mapping[str, Any]) -> float | None:
        """Dollars that a request may cost at the most, about."""
        prompt, completion = self._tokens(body)
        return self.price(int(prompt), 0, 0, int(completion), batch=True)

    @property
    def asks_in_batches(self) -> bool:
        """Whether the question under way costs the price of batches: one that is asked at once does not."""
        return not _ASKED.get()[1]

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a judge that is asked in batches stays in its process: give workers an ordinary one")


_ASKED: ContextVar[tuple[str, bool]] = ContextVar("asked", default=("", False))
"""What the question under way is about, and whether it is to be answered at once."""


def _usual_ledger(model: str) -> Path:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"batches-{hashlib.sha256(model.encode()).hexdigest()[:12]}.db"
