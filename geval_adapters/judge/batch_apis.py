"""The providers' batch interfaces behind one: files and batches through LiteLLM, and Anthropic's message batches.

LiteLLM can fetch Anthropic's batches but not create them; theirs are four requests over HTTP, which need no SDK.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ..errors import JudgeError
from .direct import http_session, seconds_asked
from .faults import Fault
from .litellm_route import first_line, import_litellm

Body = Mapping[str, Any]
State = Literal["under way", "ended", "refused"]

TAG = "geval_adapters"
"""The key of a batch's metadata under which it is looked up."""


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

    async def find(self, name: str, size: int, since: float, ours: Sequence[str]) -> list[str]:
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


def has_batches(model: str) -> bool:
    """Whether a model's provider is known to take batches."""
    return model.partition("/")[0] in ("anthropic", *LiteLLMBatches.PROVIDERS)


def batch_api(model: str, base: str | None = None, key: str | None = None) -> BatchAPI:
    """The batch interface of a model's provider.

    Raises:
        JudgeError: the provider has none, or it cannot be reached through LiteLLM; or no key.
    """
    provider, _, name = model.partition("/")
    if provider == "anthropic":
        return AnthropicBatches(name, base, key)
    if not has_batches(model):
        raise JudgeError(
            f"{model}: no batch interface is known for {provider!r}; known: anthropic,"
            f" {', '.join(LiteLLMBatches.PROVIDERS)}. Run without --batch"
        )
    return LiteLLMBatches(provider, name, base, key)


class LiteLLMBatches:
    """Files and batches as OpenAI documents them, for each provider for which LiteLLM speaks them."""

    PROVIDERS = ("openai", "azure", "vertex_ai", "bedrock", "mistral", "xai", "hosted_vllm", "litellm_proxy")
    most_requests = 50_000
    most_bytes = 190_000_000  # OpenAI takes 200 MB

    def __init__(self, provider: str, model: str, base: str | None, key: str | None) -> None:
        self._litellm = import_litellm()
        self._model = model
        # No retries inside: a batch whose answer is lost must be looked up, not sent again.
        self._to: dict[str, Any] = {"custom_llm_provider": provider, "max_retries": 0}
        self._to |= {name: value for name, value in (("api_base", base), ("api_key", key)) if value}

    async def _call(self, name: str, **arguments: Any) -> Any:
        try:
            return await getattr(self._litellm, name)(**self._to, **arguments)
        except Exception as error:
            status = int(getattr(error, "status_code", None) or 500)
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            raise Fault(status, first_line(error), seconds_asked(headers.get("retry-after"))) from None

    async def prepare(self, name: str, requests: Sequence[tuple[str, Body]]) -> str:
        """Upload the batch's file."""
        url = "/v1/chat/completions"
        lines = (
            json.dumps({"custom_id": key, "method": "POST", "url": url, "body": {"model": self._model, **body}})
            for key, body in requests
        )
        content = "".join(line + "\n" for line in lines).encode()
        made = await self._call("acreate_file", file=(f"{name}.jsonl", content, "application/jsonl"), purpose="batch")
        return str(made.id)

    async def send(self, name: str, reference: str, requests: Sequence[tuple[str, Body]]) -> str:
        """Begin a batch on an uploaded file."""
        made = await self._call(
            "acreate_batch",
            completion_window="24h",
            endpoint="/v1/chat/completions",
            input_file_id=reference,
            metadata={TAG: name},
        )
        return str(made.id)

    async def find(self, name: str, size: int, since: float, ours: Sequence[str]) -> list[str]:
        """Batches with this name in their metadata."""
        after = None
        while True:
            page = await self._call("alist_batches", limit=100, **({"after": after} if after else {}))
            batches = list(_field(page, "data") or [])
            for each in batches:
                if (_field(each, "metadata") or {}).get(TAG) == name:
                    return [str(_field(each, "id"))]
            if not batches or not _field(page, "has_more") or (_field(batches[-1], "created_at") or 0) < since - 3600:
                return []
            after = _field(batches[-1], "id")

    async def status(self, batch: str) -> Status:
        """How far a batch is."""
        told = await self._call("aretrieve_batch", batch_id=batch)
        counts = _field(told, "request_counts")
        errors = _field(_field(told, "errors"), "data") or []
        why = "; ".join(str(_field(each, "message") or _field(each, "code")) for each in errors)
        full = any("token_limit" in str(_field(each, "code")) for each in errors)
        state = str(_field(told, "status"))
        named: State = "refused" if state == "failed" else "ended" if state in _ENDED else "under way"
        return Status(
            named,
            int(_field(counts, "completed") or 0),
            int(_field(counts, "failed") or 0),
            _field(told, "expires_at"),
            why or (state if state in ("expired", "cancelled", "failed") else ""),
            full,
        )

    async def results(self, batch: str) -> AsyncIterator[Result]:
        """The lines of a batch's output file and of its error file."""
        told = await self._call("aretrieve_batch", batch_id=batch)
        for file in (_field(told, "output_file_id"), _field(told, "error_file_id")):
            if not file:
                continue
            content = (await self._call("afile_content", file_id=file)).content
            for line in content.splitlines():
                if line.strip() and (result := _openai_result(line)):
                    yield result

    async def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        await self._call("acancel_batch", batch_id=batch)


_ENDED = ("completed", "expired", "cancelled")


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _openai_result(line: bytes) -> Result | None:
    """One line of a batch's output; None for a line that names no request, whose request then has no result."""
    try:
        row = json.loads(line)
        key = str(row["custom_id"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    response = row.get("response")
    response = response if isinstance(response, Mapping) else {}
    status, body = response.get("status_code"), response.get("body")
    if status == 200 and isinstance(body, Mapping):
        return Result(key, 200, body)
    error = row.get("error") or (body.get("error") if isinstance(body, Mapping) else None) or {}
    message = _field(error, "message") or _field(error, "code") or "the batch gave no response"
    if _field(error, "code") == "batch_expired":
        return Result(key, 408, str(message))
    return Result(key, status if isinstance(status, int) and status != 200 else 500, str(message))


class AnthropicBatches:
    """Anthropic's Message Batches: requests in, results as JSON lines, 100,000 requests or 256 MB at a time."""

    most_requests = 100_000
    most_bytes = 240_000_000

    def __init__(self, model: str, base: str | None, key: str | None) -> None:
        key = key or os.environ.get("ANTHROPIC_API_KEY")
        if not key:
            raise JudgeError(f"anthropic/{model}: no API key: set ANTHROPIC_API_KEY")
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
                    message = str(error.get("message") or f"HTTP {response.status}")
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
            return str((await _json(response))["id"])

    def _params(self, body: Body) -> dict[str, Any]:
        """A request to OpenAI's protocol as one to Anthropic's."""
        messages = [{"role": each["role"], "content": each["content"]} for each in body["messages"]]
        params: dict[str, Any] = {"model": self._model, "messages": messages, "max_tokens": 4096}
        params |= {name: body[name] for name in ("max_tokens", "temperature", "top_p") if name in body}
        if "stop" in body:
            params["stop_sequences"] = [text for text in body["stop"] if text.strip()]  # blank ones are refused
        return params

    async def find(self, name: str, size: int, since: float, ours: Sequence[str]) -> list[str]:
        """Batches of this size made since then that are not known to be others: there is no metadata here."""
        from datetime import datetime

        async with self._ask("GET", "?limit=100") as response:
            batches = (await _json(response)).get("data") or []
        return [
            str(each["id"])
            for each in batches
            if each["id"] not in ours
            and sum((each.get("request_counts") or {}).values()) == size
            and datetime.fromisoformat(each["created_at"].replace("Z", "+00:00")).timestamp() >= since - 60
        ]

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
    status = _ANTHROPIC_STATUS.get(str(_field(error, "type")), 500)
    return Result(key, status, str(_field(error, "message") or "the batch gave no response"))


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
