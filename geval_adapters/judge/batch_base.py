"""What a provider's batch interface is to the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

Body = Mapping[str, Any]
State = Literal["under way", "ended", "refused"]


@dataclass(frozen=True)
class Status:
    """How far a batch is.

    Attributes:
        state: `under way`; `ended`, with or without a result for each request; or `refused` as a whole.
        done, failed: requests with a response, and with an error, as the provider counts them.
        expires: when the provider gives up, in seconds since 1970; None where it does not say.
        why: why it was refused, or ended early.
        retry: whether a refused batch may be taken later, once others are done.
    """

    state: State
    done: int = 0
    failed: int = 0
    expires: float | None = None
    why: str = ""
    retry: bool = False


class Result(NamedTuple):
    """What came of one request: a response's body with status 200, or an error's message."""

    key: str
    status: int
    body: Body | str


class BatchAPI(Protocol):
    """A provider's way to take many requests at once and answer within hours. All methods raise Fault."""

    most_requests: int
    most_bytes: int

    async def prepare(self, name: str, requests: Sequence[tuple[str, Body]]) -> str:
        """Hand over what the batch will need, which costs nothing yet; a reference to it."""
        ...

    async def send(self, name: str, reference: str, requests: Sequence[tuple[str, Body]]) -> str:
        """Begin the batch; the provider's id of it."""
        ...

    async def find(self, name: str, reference: str, size: int, since: float, ours: Sequence[str]) -> list[str]:
        """Ids of batches that may be the one whose answer was lost; exactly one leaves no doubt."""
        ...

    async def status(self, batch: str) -> Status:
        """How far a batch is."""
        ...

    def results(self, batch: str) -> AsyncIterator[Result]:
        """The results of a batch that ended, in any order."""
        ...

    async def cancel(self, batch: str) -> None:
        """Give a batch up; what is done by then can still be fetched."""
        ...
