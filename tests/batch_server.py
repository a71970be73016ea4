"""A loopback server that takes batches, as OpenAI and as Anthropic document theirs, and fails where it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, completion

from geval_adapters import GEval
from geval_adapters.judge import post
from geval_adapters.judge.batches import BatchJudge


class BatchServer:
    """Answers ordinary requests at once and batches when `finish` is called, or at once with `instant`.

    Attributes:
        answer: what a request's body is answered with; may raise `Refused`.
        instant: whether a batch is done when it is first looked at.
        spoil: takes the rows of a batch's results and gives those that are handed out.
        lose: how many submissions are carried out, but answered with a broken connection.
        fault: called with each request's number, method and path; may return (status, message).
        kill: at which request (counted from 1) which process dies: {number: (pid, before the request is carried out)}.
    """

    def __init__(self) -> None:
        self.answer: Callable[[dict], dict] = lambda body: completion(*["Rating: 4"] * body.get("n", 1))
        self.instant = True
        self.spoil: Callable[[list[dict]], list[dict]] = lambda rows: rows
        self.lose = 0
        self.fault: Callable[[int, str, str], tuple[int, str] | None] = lambda number, method, path: None
        self.victim: Callable[[int], tuple[int, bool] | None] = lambda number: None
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.ordinary: list[dict] = []
        self.requests = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def _handle(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with outer._lock:
                    outer.requests += 1
                    victim = outer.victim(outer.requests)
                    fault = outer.fault(outer.requests, self.command, self.path)
                    if victim and victim[1]:
                        os.kill(victim[0], signal.SIGKILL)
                        return
                    lost = False
                    if fault:
                        status, body = fault[0], json.dumps({"error": {"message": fault[1]}}).encode()
                    else:
                        status, body, lost = outer.route(self.command, self.path, raw, self.headers)
                    if victim:
                        os.kill(victim[0], signal.SIGKILL)
                        return
                if lost:
                    self.close_connection = True
                    self.connection.close()
                    return
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = _handle  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda request, address: None
        self.base = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def asked(self) -> list[dict]:
        """The bodies of all requests in all batches."""
        return [body for batch in self.batches.values() for _, body in batch["rows"]]

    def finish(self) -> None:
        """All batches are done."""
        with self._lock:
            for batch in self.batches.values():
                batch["done"] = True

    def route(self, method: str, path: str, raw: bytes, headers: Any) -> tuple[int, bytes, bool]:
        """Status, body, and whether the answer is lost."""
        path, _, _ = path.removeprefix("/v1").partition("?")
        if path == "/chat/completions":
            body = json.loads(raw)
            self.ordinary.append(body)
            status, made = self._answered(body)
            return status, json.dumps(made).encode(), False
        if path == "/messages":
            body = json.loads(raw)
            self.ordinary.append(body)
            status, made = self._answered(body)
            return status, json.dumps(_message(made) if status == 200 else made).encode(), False
        if path == "/files":
            head = b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n"
            parts = BytesParser().parsebytes(head + raw).get_payload()
            name = f"file-{len(self.files) + 1}"
            self.files[name] = next(p.get_payload(decode=True) for p in parts if p.get_filename())
            made = {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"}
            return 200, json.dumps(made | {"status": "processed"}).encode(), False
        if found := re.fullmatch(r"/files/(.+)/content", path):
            return 200, self.files[found[1]], False
        anthropic = path.startswith("/messages")
        path = path.removeprefix("/messages")
        if path == "/batches" and method == "POST":
            batch = self._begin(json.loads(raw), anthropic)
            self.lose -= 1
            return 200, json.dumps(self._shown(batch)).encode(), self.lose >= 0
        if path == "/batches":
            shown = [self._shown(batch) for batch in reversed(self.batches.values())]
            return 200, json.dumps({"object": "list", "data": shown, "has_more": False}).encode(), False
        name, _, action = path.removeprefix("/batches/").partition("/")
        if name not in self.batches:
            return 404, json.dumps({"error": {"message": f"no batch {name}"}}).encode(), False
        batch = self.batches[name]
        if action == "results":
            return 200, b"".join(json.dumps(row).encode() + b"\n" for row in self._results(batch)), False
        if action == "cancel":
            batch["done"], batch["status"] = True, "cancelled"
        batch["done"] = batch["done"] or self.instant
        return 200, json.dumps(self._shown(batch)).encode(), False

    def _begin(self, sent: dict, anthropic: bool) -> dict[str, Any]:
        if anthropic:
            rows = [(each["custom_id"], each["params"]) for each in sent["requests"]]
        else:
            lines = [json.loads(line) for line in self.files[sent["input_file_id"]].splitlines()]
            rows = [(line["custom_id"], line["body"]) for line in lines]
        assert all(re.fullmatch(r"[\w-]{1,64}", key) for key, _ in rows)
        assert len({key for key, _ in rows}) == len(rows)
        name = f"batch_{len(self.batches) + 1}"
        batch = {"id": name, "rows": rows, "metadata": sent.get("metadata"), "done": False, "anthropic": anthropic}
        self.batches[name] = batch | {"created": time.time(), "status": "completed", "errors": None}
        return self.batches[name]

    def _answered(self, body: dict) -> tuple[int, dict]:
        try:
            return 200, self.answer(body)
        except Refused as refused:
            return refused.status, {"error": {"message": str(refused)}}

    def _results(self, batch: dict) -> list[dict]:
        if "results" not in batch:
            batch["results"] = self._made(batch)
        return batch["results"]

    def _made(self, batch: dict) -> list[dict]:
        rows = []
        for key, body in batch["rows"]:
            status, made = self._answered(body)
            if not batch["anthropic"]:
                response = {"status_code": status, "request_id": "r", "body": made}
                rows.append({"id": f"x{key}", "custom_id": key, "response": response, "error": None})
            elif status == 200:
                rows.append({"custom_id": key, "result": {"type": "succeeded", "message": _message(made)}})
            else:
                error = {"type": "invalid_request_error", "message": made["error"]["message"]}
                rows.append({"custom_id": key, "result": {"type": "errored", "error": {"error": error}}})
        return self.spoil(rows)

    def _shown(self, batch: dict) -> dict:
        size = len(batch["rows"])
        if batch["anthropic"]:
            counts = {"processing": 0 if batch["done"] else size, "succeeded": size if batch["done"] else 0}
            counts |= {"errored": 0, "canceled": 0, "expired": 0}
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch["created"]))
            status = "ended" if batch["done"] else "in_progress"
            return {"id": batch["id"], "processing_status": status, "request_counts": counts, "created_at": created}
        shown = {
            **{"id": batch["id"], "object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": "f"},
            **{"completion_window": "24h", "created_at": int(batch["created"]), "metadata": batch["metadata"]},
            **{"status": "in_progress", "expires_at": int(batch["created"]) + 86400, "errors": batch["errors"]},
            "request_counts": {"total": size, "completed": size if batch["done"] else 0, "failed": 0},
        }
        if batch["done"]:
            shown |= {"status": batch["status"]}
            if batch["status"] != "failed":
                self.files[f"out-{batch['id']}"] = b"".join(
                    json.dumps(row).encode() + b"\n" for row in self._results(batch)
                )
                shown |= {"output_file_id": f"out-{batch['id']}"}
        return shown


def _message(made: dict) -> dict:
    """A chat completion as a message of Anthropic's protocol."""
    text = made["choices"][0]["message"]["content"]
    usage = {"input_tokens": 100, "output_tokens": 3}
    told = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": usage}
    return told | {"content": [{"type": "text", "text": text}]}


class Refused(Exception):  # noqa: N818
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


MODELS = ("openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5")
TEXTS = [f"Text number {number}." for number in range(40)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BatchServer]:
    started = BatchServer()
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_BASE", started.base if name == "OPENAI" else started.base.removesuffix("/v1"))
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(post, "PAUSES", (0.02, 0.1))
    monkeypatch.setattr(post, "SETTLE", 0.05)
    monkeypatch.setattr(post, "LAG", 0.1)
    yield started
    started.close()


def number_in(body: dict[str, Any]) -> int:
    """Which of TEXTS a request is about."""
    content = (
        body["messages"][-1]["content"] if body["messages"][-1]["role"] == "user" else body["messages"][0]["content"]
    )
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    return int(text.split("Text number ")[1].split(".")[0])


def rate_by_number(body: dict[str, Any]) -> dict[str, Any]:
    """1 to 5, by the text's number, so that a mix-up shows."""
    return completion(*[f"Rating: {number_in(body) % 5 + 1}"] * body.get("n", 1))


def rate(tmp_path: Path, texts: list[str] = TEXTS, model: str = MODELS[0], **options: Any) -> list[Any]:
    options = {"readout": "samples", "n": 2, **options}
    asking = {name: options.pop(name) for name in ("wait", "retries") if name in options}
    judge = BatchJudge(model, batch=tmp_path / "run.batches.db", **asking)
    return list(GEval("fluency", judge, scale="1-5", **options).rate_many(texts))


def assert_right(ratings: list[Any]) -> None:
    assert [rating.sample.output for rating in ratings] == TEXTS
    assert [rating.score for rating in ratings] == [number % 5 + 1 for number in range(len(TEXTS))]
