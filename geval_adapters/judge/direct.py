"""The direct route: HTTP to endpoints that speak the OpenAI protocol, without a layer in between."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import math
import os
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncGenerator
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import JudgeError
from .bodies import as_json, most_bytes, parsed, read_body
from .faults import UNREACHABLE, Fault
from .secrets import keep_secret, keep_secrets_in, known_secrets, without_login

if TYPE_CHECKING:
    import aiohttp

_sessions: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[None, None]]] = {}


async def http_session() -> aiohttp.ClientSession:
    """The connections of the running event loop, shared by all judges; closed with the loop."""
    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0)
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,  # `read_body` does that, up to a size
        )

        async def closer() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                del _sessions[loop]
                await session.close()

        # An event loop that ends closes the async generators that were begun on it.
        _sessions[loop] = session, closer()
        await anext(_sessions[loop][1])
    return _sessions[loop][0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_sessions.clear)  # its sockets are the parent's


@cache
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address.

    aiohttp's own `trust_env` looks it up for every request, in a thread, and `~/.netrc` too: a login for the host in
    that file would then contradict the key.
    """
    parts = urllib.parse.urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(parts.scheme)


@cache
def _limit(seconds: float) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=seconds)


class DirectRoute:
    """The OpenAI protocol over HTTP, without a layer in between."""

    def __init__(self, name: str, model: str, base: str | None, key: str | None) -> None:
        provider = name.partition("/")[0]
        bases = {
            "openai": os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE"),
            "hosted_vllm": os.environ.get("HOSTED_VLLM_API_BASE"),
        }
        base = base or bases.get(provider)
        self._key_name = {"openai": "OPENAI_API_KEY", "hosted_vllm": "HOSTED_VLLM_API_KEY"}.get(provider, "")
        key = key or os.environ.get(self._key_name)
        if provider == "hosted_vllm" and not base:
            raise JudgeError(f"{name}: set HOSTED_VLLM_API_BASE to the server's address, http://HOST:8000/v1")
        if provider == "openai" and not base and not key:
            raise JudgeError(f"{name}: no API key: set OPENAI_API_KEY")
        self._model = model
        keep_secrets_in({"base": base, "key": key})
        parts = urllib.parse.urlsplit(base or "https://api.openai.com/v1")
        login, _, host = parts.netloc.rpartition("@")
        path = parts.path.rstrip("/") + "/chat/completions"
        self._url = urllib.parse.urlunsplit(parts._replace(netloc=host, path=path))
        self._headers = {"Authorization": f"Bearer {key or 'none'}"}
        if login and not key:
            encoded = base64.b64encode(urllib.parse.unquote(login).encode()).decode()
            keep_secret(encoded)
            self._headers["Authorization"] = f"Basic {encoded}"
        if organization := os.environ.get("OPENAI_ORG_ID"):
            self._headers["OpenAI-Organization"] = organization
        self.secrets = known_secrets()

    def hint(self, status: int) -> str:
        """What may mend a refusal."""
        return f" (is {self._key_name} right?)" if status in (401, 403) and self._key_name else ""

    async def send(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        """One request and its response. Raises Fault."""
        import aiohttp

        session = await http_session()
        try:
            async with session.post(
                self._url,
                data=aiohttp.BytesPayload(as_json({"model": self._model, **body}), content_type="application/json"),
                headers=self._headers,
                timeout=_limit(timeout),
                proxy=_proxy(self._url),
                allow_redirects=False,
            ) as response:
                encoding = response.headers.get("Content-Encoding", "").lower()
                most = most_bytes(body)
                if not encoding and response.content_length is not None and response.content_length <= most:
                    raw = await response.read()
                else:
                    raw = await read_body(response.content.iter_any(), encoding, most)
                retry_after = seconds_asked(response.headers.get("Retry-After"))
                status = response.status
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise Fault(UNREACHABLE, f"cannot reach {without_login(self._url)}: {error}", kind="unreachable") from None
        except aiohttp.ClientError as error:
            what = f"the connection broke: {error or type(error).__name__}"
            raise Fault(502, what, kind="connection broke") from None
        if 300 <= status < 400:
            raise Fault(status, f"HTTP {status}: the server redirects elsewhere, which is not followed: check api_base")
        data = parsed(raw)
        if status != 200:
            told = _message(data) or f"HTTP {status}: {raw[:200].decode(errors='replace')}"
            raise Fault(status, told, retry_after, parameter=_parameter(data))
        if not isinstance(data, dict):
            raise Fault(502, "the response is not valid JSON", kind="malformed response")
        return data


def _parameter(data: object) -> str | None:
    """Which parameter an error in OpenAI's format names."""
    error = data.get("error") if isinstance(data, dict) else None
    name = error.get("param") if isinstance(error, dict) else None
    return name if isinstance(name, str) else None


def _message(data: object) -> str:
    """What an error says, in OpenAI's format, FastAPI's, or another."""
    if not isinstance(data, dict):
        return ""
    told = data.get("error") or data.get("detail") or data.get("message") or ""
    code = ""
    if isinstance(told, dict):
        code = f" [{told['code']}]" if isinstance(told.get("code"), str) else ""
        told = told.get("message") or ""
    try:
        return f"{str(told)[:2000]}{code[:100]}"
    except RecursionError:
        return "an error that is nested too deep"


def seconds_asked(retry_after: str | None) -> float | None:
    """What a Retry-After header asks for: seconds, or a date."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
        return seconds if 0 < seconds < math.inf else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
