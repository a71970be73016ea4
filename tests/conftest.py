"""A loopback server that speaks the OpenAI protocol, and the data that lie beside the checkout."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from geval_adapters import cli

DATA = Path(os.environ.get("GEVAL_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def data() -> Path:
    """The folder with human ratings and real replies, which is no part of the project."""
    if not DATA.is_dir():
        pytest.skip(f"needs the human ratings and real replies in {DATA} (or $GEVAL_TEST_DATA)")
    return DATA


def completion(*texts: str, logprobs: list[dict[str, float]] | None = None, finish: str = "stop") -> dict:
    """A chat completion; `logprobs` gives each token's alternatives, the first of which is the token itself."""
    content = None
    if logprobs is not None:
        tops = [[{"token": t, "logprob": math.log(p)} for t, p in step.items()] for step in logprobs]
        content = {"content": [{**top[0], "top_logprobs": top} for top in tops]}
    choices = [
        {"index": i, "finish_reason": finish, "logprobs": content, "message": {"role": "assistant", "content": text}}
        for i, text in enumerate(texts)
    ]
    counts = {"prompt_tokens": 100, "completion_tokens": 3 * len(texts), "total_tokens": 100 + 3 * len(texts)}
    usage = {**counts, "prompt_tokens_details": {"cached_tokens": 40}}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


class Trouble(Exception):  # noqa: N818
    """What a handler raises to answer with something else than a completion."""

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        retry_after: str | None = None,
        hang: float = 0,
        cut: bool = False,
        location: str | None = None,
        encoding: str | None = None,
    ) -> None:
        self.status, self.body, self.hang, self.cut = status, body, hang, cut
        told = {"Retry-After": retry_after, "Location": location, "Content-Encoding": encoding}
        self.headers = {name: value for name, value in told.items() if value is not None}


def refusal(status: int, message: str, **more: str) -> Trouble:
    return Trouble(status, json.dumps({"error": {"message": message, **more}}).encode())


class Server:
    """Answers with what `handler(request)` returns; keeps the requests."""

    def __init__(self) -> None:
        self.handler: Callable[[dict], dict] = lambda request: completion(*["Rating: 4"] * request.get("n", 1))
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.paths: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                outer.headers.append(dict(self.headers))
                outer.paths.append(self.path)
                status, headers, missing = 200, {}, 0
                try:
                    body = json.dumps(outer.handler(request)).encode()
                except Trouble as trouble:
                    time.sleep(trouble.hang)
                    status, body, headers = trouble.status, trouble.body, trouble.headers
                    missing = 10 * trouble.cut  # the connection ends before the body does
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body) + missing))
                    self.end_headers()
                    self.wfile.write(body)
                    self.close_connection = self.close_connection or missing > 0
                except OSError:  # the client has gone
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda request, address: None  # a client that is gone is no news
        self.base = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()  # ends at once

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def geval(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run `geval` in a folder of its own: exit code, standard output, standard error; never a traceback or a key."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["geval", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert KEY not in captured.out + captured.err
        return int(ended.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    """A server that stands where OpenAI's would."""
    started = Server()
    monkeypatch.setenv("OPENAI_API_BASE", started.base)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GEVAL_MODEL", raising=False)
    yield started
    started.close()
