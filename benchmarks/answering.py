"""A small HTTP server on loopback, in a process of its own; its user says what it answers, and asks what it counted."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar


class Answering(asyncio.Protocol):
    """One connection. `GET` returns the counts since the last `GET`; subclasses answer what is posted."""

    counts: ClassVar[Counter[str]] = Counter()
    cpu: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, rest = self.received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if not end or len(rest) < size:
            return
        self.received = rest[size:]
        if head.startswith(b"GET"):
            cpu = time.process_time()
            self.send(http(200, json.dumps(self.counts | {"cpu": cpu - self.cpu}).encode()))
            self.counts.clear()
            Answering.cpu = cpu
        else:
            self.answer(json.loads(rest[:size]), size)

    def answer(self, request: dict[str, Any], size: int) -> None:
        """What to do with a request of so many bytes."""
        raise NotImplementedError

    def send(self, answer: bytes) -> None:
        """Write an answer; one that is not whole ends the connection."""
        if self.transport.is_closing():
            return
        self.transport.write(answer)
        head, _, body = answer.partition(b"\r\n\r\n")
        told = re.search(rb"Content-Length: (\d+)", head)
        if not told or len(body) < int(told[1]):
            self.transport.close()


def http(status: int, body: bytes, *headers: str) -> bytes:
    """A response with JSON in it."""
    head = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def serve(kind: type[Answering], pipe: Connection) -> None:
    """Answer on loopback until the process is ended; the address goes through the pipe."""

    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(kind, "127.0.0.1", 0, backlog=1024)
        pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        await server.serve_forever()

    asyncio.run(forever())


def counts(base: str) -> dict[str, int]:
    """What the server did since this was last asked."""
    with urllib.request.urlopen(base) as response:
        return dict(json.load(response))


def start(target: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
    """A process, and the pipe to it."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    return process, ours
