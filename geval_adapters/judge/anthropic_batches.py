"""Anthropic's message batches: four requests over HTTP, which need no SDK.

LiteLLM can fetch these batches but not create them.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ..errors import JudgeError
from .batch_base import Body, Result, Status
from .direct import http_session, seconds_asked
from .faults import Fault
from .secrets import keep_secrets_in, redact


class AnthropicBatches:
    """Anthropic's Message Batches: requests in, results as JSON lines, 100,000 requests or 256 MB at a time."""

    most_requests = 100_000
    most_bytes = 240_000_000

    def __init__(self, model: str, base: str | None, key: str | None) -> None:
        key = key or os.environ.get("ANTHROPIC_API_KEY")
        if not key:
            raise JudgeError(f"anthropic/{model}: no API key: set ANTHROPIC_API_KEY")
        keep_secrets_in({"base": base, "key": key})
        base = base or os.environ.get("ANTHROPIC_API_BASE") or "https://api.anthropic.com"
        self._model = model
        self._url = f"{base.rstrip('/').removesuffix('/v1')}/v1/messages/batches"
        self._headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}

    @asynccontextmanager
    async def _ask(self, method: str, path: str = "", **options: Any) -> AsyncIterator[Any]:
        import aiohttp

        session = await http_session()
        limit = aiohttp.ClientTimeout(total=600)
        try:
            async with session.request(
                method, self._url + path, headers=self._headers, timeout=limit, allow_redirects=False, **options
            ) as response:
                if response.status != 200:
                    error = (await _json(response)).get("error") or {}
                    message = redact(str(error.get("message") or f"HTTP {response.status}"))
                    raise Fault(response.status, message, seconds_asked(response.headers.get("Retry-After")))
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Fault(503, f"{self._url}: {error or type(error).__name__}", kind="connection broke") from None

    async def prepare(self, name: str, requests: Sequence[tuple[str, Body]]) -> str:
        """Nothing: the requests travel with the batch."""
        return ""

    async def send(self, name: str, reference: str, requests: Sequence[tuple[str, Body]]) -> str:
        """Begin a batch."""
        rows = [{"custom_id": key, "params": self._params(body)} for key, body in requests]
        async with self._ask("POST", json={"requests": rows}) as response:
            made = await _json(response)
        if not made.get("id"):
            raise Fault(502, "the response names no batch", kind="malformed response")
        return str(made["id"])

    def _params(self, body: Body) -> dict[str, Any]:
        """A request to OpenAI's protocol as one to Anthropic's."""
        messages = [{"role": each["role"], "content": content_of(each["content"])} for each in body["messages"]]
        params: dict[str, Any] = {"model": self._model, "messages": messages, "max_tokens": 4096}
        params |= {name: body[name] for name in ("max_tokens", "temperature", "top_p") if name in body}
        if "stop" in body:
            params["stop_sequences"] = [text for text in body["stop"] if text.strip()]  # blank ones are refused
        return params

    async def find(self, name: str, reference: str, size: int, since: float, ours: Sequence[str]) -> list[str]:
        """Batches of this size made since then that are not known to be others: there is no metadata here."""
        from datetime import datetime

        found: list[str] = []
        after = ""
        while True:
            async with self._ask("GET", f"?limit=100{after}") as response:
                page = await _json(response)
            batches = page.get("data") or []
            times = [datetime.fromisoformat(each["created_at"].replace("Z", "+00:00")).timestamp() for each in batches]
            found += [
                str(each["id"])
                for each, made in zip(batches, times, strict=True)
                if each["id"] not in ours
                and sum((each.get("request_counts") or {}).values()) == size
                and made >= since - 60
            ]
            if not batches or not page.get("has_more") or times[-1] < since - 60:
                return found
            if after == (after := f"&after_id={batches[-1]['id']}"):
                raise Fault(400, "its list of batches cannot be read to the end")

    async def status(self, batch: str) -> Status:
        """How far a batch is."""
        from datetime import datetime

        async with self._ask("GET", f"/{batch}") as response:
            told = await _json(response)
        counts = told.get("request_counts") or {}
        done = int(counts.get("succeeded") or 0)
        failed = sum(int(counts.get(name) or 0) for name in ("errored", "canceled", "expired"))
        expires = told.get("expires_at")
        until = datetime.fromisoformat(expires.replace("Z", "+00:00")).timestamp() if expires else None
        return Status("ended" if told.get("processing_status") == "ended" else "under way", done, failed, until)

    async def results(self, batch: str) -> AsyncIterator[Result]:
        """The rows of a batch's results, as responses of OpenAI's protocol."""
        async with self._ask("GET", f"/{batch}/results") as response:
            async for line in _lines(response.content):
                if line.strip() and (result := _anthropic_result(line)):
                    yield result

    async def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        async with self._ask("POST", f"/{batch}/cancel"):
            pass


async def _lines(content: Any) -> AsyncIterator[bytes]:
    """Lines of any length, which aiohttp's own reader of lines refuses."""
    rest = b""
    async for chunk in content.iter_chunked(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    yield rest


def content_of(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A message's content with its images as Anthropic has them."""
    return content if isinstance(content, str) else [_image(part) for part in content]


def _image(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return part
    url = part["image_url"]["url"]
    head, _, data = url.partition(";base64,")
    source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data} if data else None
    return {"type": "image", "source": source or {"type": "url", "url": url}}


async def _json(response: Any) -> dict[str, Any]:
    try:
        data = json.loads(await response.read())
    except ValueError:
        raise Fault(502, "the response is not valid JSON", kind="malformed response") from None
    return data if isinstance(data, dict) else {}


_ANTHROPIC_STATUS = {"invalid_request_error": 400, "rate_limit_error": 429, "overloaded_error": 529}


def _anthropic_result(line: bytes) -> Result | None:
    try:
        row = json.loads(line)
        key, result = str(row["custom_id"]), dict(row["result"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    kind = result.get("type")
    if kind == "succeeded" and isinstance(result.get("message"), Mapping):
        return Result(key, 200, _as_openai(result["message"]))
    if kind in ("expired", "canceled"):
        return Result(key, 408, f"the batch's request was {kind}")
    error = result.get("error") or {}
    error = error.get("error") or error
    status = _ANTHROPIC_STATUS.get(str(error.get("type")), 500)
    return Result(key, status, str(error.get("message") or "the batch gave no response"))


def _as_openai(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of Anthropic's protocol as a response of OpenAI's."""
    blocks = [each for each in message.get("content") or [] if isinstance(each, Mapping)]
    text = "".join(str(each.get("text") or "") for each in blocks if each.get("type") == "text")
    thinking = "".join(str(each.get("thinking") or "") for each in blocks if each.get("type") == "thinking")
    said = {"role": "assistant", "content": text} | ({"reasoning_content": thinking} if thinking else {})
    usage = message.get("usage") or {}
    read, written = (int(usage.get(f"cache_{name}_input_tokens") or 0) for name in ("read", "creation"))
    finish = {"max_tokens": "length", "refusal": "content_filter"}.get(str(message.get("stop_reason")), "stop")
    return {
        "model": message.get("model"),
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": int(usage.get("input_tokens") or 0) + read + written,
            "completion_tokens": int(usage.get("output_tokens") or 0),
            "prompt_tokens_details": {"cached_tokens": read},
            "cache_creation_input_tokens": written,
        },
    }
