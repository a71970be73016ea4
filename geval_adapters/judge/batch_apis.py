"""Which providers have batch interfaces, and those that LiteLLM speaks: files and batches as OpenAI documents them."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ..errors import JudgeError
from .anthropic_batches import AnthropicBatches
from .batch_base import BatchAPI, Body, Result, State, Status
from .direct import seconds_asked
from .faults import Fault
from .litellm_route import first_line, import_litellm
from .secrets import keep_secrets_in, redact

TAG = "geval_adapters"
"""The key of a batch's metadata under which it is looked up."""


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
        if provider in ("hosted_vllm", "litellm_proxy"):
            # LiteLLM would take these for OpenAI: to its address, and with its key.
            _, _, key, base = self._litellm.get_llm_provider(f"{provider}/{model}", api_base=base, api_key=key)
            if not base:
                raise JudgeError(f"{provider}/{model}: no address: set {provider.upper()}_API_BASE")
            key = key or "none"
        self._to |= {name: value for name, value in (("api_base", base), ("api_key", key)) if value}
        keep_secrets_in({"base": base, "key": key})
        # There a batch is of one model, and LiteLLM finds the provider's ways by it.
        self._of_model = {"model": f"{provider}/{model}"} if provider in ("mistral", "bedrock") else {}

    async def _call(self, name: str, **arguments: Any) -> Any:
        try:
            return await getattr(self._litellm, name)(**self._to, **arguments)
        except Exception as error:
            status = int(getattr(error, "status_code", None) or 500)
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            raise Fault(status, redact(first_line(error)), seconds_asked(headers.get("retry-after"))) from None

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
            metadata={TAG: name, "name": name},  # xAI keeps only the name
            **self._of_model,
        )
        return str(made.id)

    async def find(self, name: str, reference: str, size: int, since: float, ours: Sequence[str]) -> list[str]:
        """Batches with this name in their metadata, or made from this file."""
        after, seen = None, set[str]()
        while True:
            page = await self._call("alist_batches", limit=100, **({"after": after} if after else {}))
            batches = list(_field(page, "data") or [])
            for each in batches:
                told = _field(each, "metadata") or {}
                if name in (told.get(TAG), told.get("name")) or _field(each, "input_file_id") == reference:
                    return [str(_field(each, "id"))]
            oldest = _field(batches[-1], "created_at") if batches else None
            if not _field(page, "has_more") or (oldest and oldest < since - _DAY):
                return []
            after = _field(page, "next_page_token") or _field(batches[-1] if batches else page, "id")
            if not after or after in seen:  # LiteLLM does not turn Azure's pages
                raise Fault(400, "its list of batches cannot be read to the end")
            seen.add(after)

    async def status(self, batch: str) -> Status:
        """How far a batch is."""
        told = await self._call("aretrieve_batch", batch_id=batch, **self._of_model)
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
        told = await self._call("aretrieve_batch", batch_id=batch, **self._of_model)
        for file in (_field(told, "output_file_id"), _field(told, "error_file_id")):
            if not file:
                continue
            content = (await self._call("afile_content", file_id=file)).content
            for line in io.BytesIO(content):
                if line.strip() and (result := _openai_result(line)):
                    yield result

    async def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        await self._call("acancel_batch", batch_id=batch)


_ENDED = ("completed", "expired", "cancelled")
_DAY = 90_000.0
"""Seconds before a batch was sent at which the search for it ends: xAI's list has only dates."""


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
