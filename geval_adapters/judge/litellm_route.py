"""The route through LiteLLM, to any provider."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from ..errors import JudgeError
from .bodies import most_bytes, read_body
from .direct import seconds_asked
from .faults import UNREACHABLE, Fault
from .parameters import OPTIONAL
from .router import Router
from .secrets import keep_secrets_in, known_secrets, redact, redact_logs

if TYPE_CHECKING:
    import httpx


class LiteLLMRoute:
    """Any provider, through LiteLLM: one model, or the deployments of a router."""

    def __init__(
        self, models: Sequence[str], base: str | None = None, key: str | None = None, router: Router | None = None
    ) -> None:
        self._litellm = import_litellm()
        keep_secrets_in({"base": base, "key": key})
        for model in models:
            try:
                self._litellm.get_llm_provider(model, api_base=base)
            except self._litellm.exceptions.BadRequestError:
                raise JudgeError(
                    f"{model!r} is no model that LiteLLM knows: write PROVIDER/MODEL, as in openai/gpt-4o-mini,"
                    " anthropic/…, hosted_vllm/…, or local/smollm2"
                ) from None
        self._model = models[0]
        self._ask = self._litellm.acompletion
        self._to: dict[str, Any] = {"model": self._model, "max_retries": 0}
        self._to |= {name: value for name, value in (("api_base", base), ("api_key", key)) if value}
        if router:
            try:
                self._ask = self._litellm.Router(**{"num_retries": 0, **router.settings}).acompletion
            except Exception as error:
                raise JudgeError(f"LiteLLM cannot make the router: {redact(first_line(error))}") from None
            self._to = {"model": router.group}
        self.secrets = known_secrets()
        declared = [set(self._litellm.get_supported_openai_params(model=model) or ()) for model in models]
        shared = set.intersection(*declared)
        self.undeclared = {name for name in OPTIONAL if name not in shared} - {"continue_final_message"}

    def hint(self, status: int) -> str:
        """What may mend a refusal."""
        if status not in (401, 403):
            return ""
        missing = self._litellm.validate_environment(self._model)["missing_keys"]
        usual = f"{self._model.partition('/')[0].upper()}_API_KEY"
        return f" (set {', '.join(missing)})" if missing else f" (is {usual} right?)"

    async def send(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        """One request and its response. Raises Fault."""
        sent = dict(body)
        extra = {key: sent.pop(key) for key in ("continue_final_message", "add_generation_prompt") if key in sent}
        if extra:
            sent["extra_body"] = extra
        exceptions = self._litellm.exceptions
        try:
            asked = self._ask(timeout=timeout, num_retries=0, **self._to, **sent)
            _most.set(most_bytes(body))
            await _closed_with_loop()
            response = await asyncio.wait_for(asked, timeout + 1)  # not every provider's client keeps to its timeout
        except (TimeoutError, asyncio.TimeoutError):
            raise
        except exceptions.UnsupportedParamsError as error:
            raise Fault(400, first_line(error)) from None
        except Exception as error:
            text = first_line(error)
            if found := re.search(_REFUSED_HERE, str(error)):
                raise Fault(502, found[1], kind="odd response") from None
            status = getattr(error, "status_code", None)
            status = status if isinstance(status, int) else 500
            if "Connection error" in text:
                status, text = UNREACHABLE, f"cannot reach the server: {text}"
            headers = getattr(error, "litellm_response_headers", None) or {}
            kinds = {408: "no answer in time", UNREACHABLE: "unreachable"}
            wait, parameter = seconds_asked(headers.get("retry-after")), getattr(error, "param", None)
            parameter = parameter if isinstance(parameter, str) else None
            raise Fault(status, text, wait, kinds.get(status, ""), parameter) from None
        return dict(response.model_dump())


@cache
def import_litellm() -> Any:
    """LiteLLM, quiet, and without its download of a price table."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    redact_logs()
    _guard_transports()
    return litellm


_most: ContextVar[int | None] = ContextVar("most bytes of the response to this judge's request", default=None)
_REFUSED_HERE = r"geval-adapters: ([^\"}]*)"
"""How an error begins that `_guarded` makes out of a response."""


def _guard_transports() -> None:
    """Let no response to a judge's request lead elsewhere or be of any size; others' requests are as they were."""
    import httpx
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    for transport in (httpx.AsyncHTTPTransport, LiteLLMAiohttpTransport):
        transport.handle_async_request = _guarded(transport.handle_async_request)  # type: ignore[method-assign]


def _guarded(handle: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    import httpx

    @wraps(handle)
    async def guarded(self: Any, request: httpx.Request) -> httpx.Response:
        most = _most.get()
        if most is None:
            return cast(httpx.Response, await handle(self, request))
        request.headers["Accept-Encoding"] = "identity"
        response = cast(httpx.Response, await handle(self, request))
        told = response.headers.get("Content-Length", "")
        bounded = told.isdecimal() and int(told) <= most and "Transfer-Encoding" not in response.headers
        if bounded and response.status_code == 200 and "Content-Encoding" not in response.headers:
            return response
        problem, raw = "", b""
        if 300 <= response.status_code < 400:
            problem = f"HTTP {response.status_code}: the server redirects elsewhere, which is not followed"
        else:
            try:
                chunks = cast(httpx.AsyncByteStream, response.stream)
                raw = await read_body(chunks, response.headers.get("Content-Encoding", "").lower(), most)
            except Fault as fault:
                problem = fault.message
        await response.aclose()
        dropped = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.items() if name.lower() not in dropped]
        if problem:
            error = {"error": {"message": f"geval-adapters: {problem}"}}
            return httpx.Response(502, json=error, request=request)
        return httpx.Response(response.status_code, headers=headers, content=raw, request=request)

    return guarded


_closers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = weakref.WeakKeyDictionary()


async def _closed_with_loop() -> None:
    """See to it that LiteLLM's connections of the running event loop are closed with it."""
    loop = asyncio.get_running_loop()
    if loop not in _closers:

        async def closer() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                _closers.pop(loop, None)
                await _close_clients(loop)

        # An event loop that ends closes the async generators that were begun on it.
        _closers[loop] = closer()
        await anext(_closers[loop])


async def _close_clients(loop: asyncio.AbstractEventLoop) -> None:
    """Close those of LiteLLM's clients that belong to a loop: its cache has the loop's id in their keys."""
    clients = import_litellm().in_memory_llm_clients_cache.cache_dict
    for key in [key for key in clients if str(key).endswith(f"-{id(loop)}")]:
        client = clients.pop(key)
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        with suppress(Exception):
            if close and isawaitable(closing := close()):
                await closing


def first_line(error: Exception) -> str:
    """The first line of an error, without the names of LiteLLM's classes in front."""
    text = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return re.sub(r"^(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout)?: (?:litellm\.)?)*(?:\w+Exception - )?", "", text)
