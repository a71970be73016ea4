"""The two routes to a provider: LiteLLM for any, and HTTP for endpoints that speak the OpenAI protocol.

Both are given the body of a request and return the body of a response, or raise a `Fault`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import re
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, JudgeError
from .faults import UNREACHABLE, Fault
from .parameters import OPTIONAL

if TYPE_CHECKING:
    import aiohttp

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
"""Names of what nobody is to see."""

_sessions: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[None, None]]] = {}


async def http_session() -> aiohttp.ClientSession:
    """The connections of the running event loop, shared by all judges; closed with the loop."""
    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        import aiohttp

        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

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


@cache
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address.

    aiohttp's own `trust_env` looks it up for every request, in a thread, and `~/.netrc` too: a login for the host in
    that file would then contradict the key.
    """
    import urllib.parse
    import urllib.request

    parts = urllib.parse.urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(parts.scheme)


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
        self._url = (base or "https://api.openai.com/v1").rstrip("/") + "/chat/completions"
        self._headers = {"Authorization": f"Bearer {key or 'none'}"}
        if organization := os.environ.get("OPENAI_ORG_ID"):
            self._headers["OpenAI-Organization"] = organization

    def hint(self, status: int) -> str:
        """What may mend a refusal."""
        return f" (is {self._key_name} right?)" if status in (401, 403) and self._key_name else ""

    async def send(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        """One request and its response. Raises Fault."""
        import aiohttp

        session = await http_session()
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with session.post(
                self._url,
                json={"model": self._model, **body},
                headers=self._headers,
                timeout=limit,
                proxy=_proxy(self._url),
            ) as response:
                raw = await response.read()
                retry_after = seconds_asked(response.headers.get("Retry-After"))
                status = response.status
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise Fault(UNREACHABLE, f"cannot reach {self._url}: {error}", kind="unreachable") from None
        except aiohttp.ClientError as error:
            what = f"the connection broke: {error or type(error).__name__}"
            raise Fault(502, what, kind="connection broke") from None
        try:
            data = json.loads(raw)
        except ValueError:
            data = None
        if status != 200:
            told = _message(data) or f"HTTP {status}: {raw[:200].decode(errors='replace')}"
            raise Fault(status, told, retry_after, parameter=_parameter(data))
        if not isinstance(data, dict):
            raise Fault(502, "the response is not valid JSON", kind="malformed response")
        return data


@dataclass(frozen=True)
class Router:
    """Deployments for LiteLLM's `Router`.

    Attributes:
        name: what a signature calls it: the group that is asked, and a digest of the groups' models and the settings.
        group: which of the groups is asked.
        models: the LiteLLM strings behind all groups: any of them may answer, where fallbacks lead to it.
        settings: arguments of `litellm.Router`. They hold keys.
    """

    name: str
    group: str
    models: list[str]
    settings: dict[str, Any] = field(repr=False)

    def without_keys(self) -> Router:
        """The same router, its keys left to the environment; `os.environ/NAME` names one there and stays."""
        return replace(self, settings=_without_keys(self.settings))


def _without_keys(settings: Any) -> Any:
    if isinstance(settings, dict):
        return {
            name: _without_keys(value)
            for name, value in settings.items()
            if not (isinstance(value, str) and _SECRET.search(str(name)) and not value.startswith("os.environ/"))
        }
    return [_without_keys(each) for each in settings] if isinstance(settings, list) else settings


def read_router(path: str | Path, group: str | None) -> Router:
    """The deployments in a YAML or JSON file, as LiteLLM's proxy has them: `model_list` and `router_settings`.

    Raises:
        InputError: the file cannot be read, or has no such group.
    """
    import yaml

    try:
        told = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        deployments = [(each["model_name"], each["litellm_params"]["model"]) for each in told["model_list"]]
        settings = dict(told.get("router_settings") or {})
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"{path}: is no router file: it needs model_list, each entry with model_name and litellm_params.model"
        ) from None
    groups = list(dict.fromkeys(name for name, _ in deployments))
    if not groups or group not in (None, *groups):
        raise InputError(f"{path}: has no model_name {group!r}, but {', '.join(groups) or 'none'}")
    chosen = group or groups[0]
    digest = hashlib.sha256(json.dumps([deployments, settings.get("fallbacks")], default=str).encode()).hexdigest()[:8]
    models = list(dict.fromkeys(model for _, model in deployments))
    return Router(f"router/{chosen}@{digest}", chosen, models, settings | {"model_list": told["model_list"]})


class LiteLLMRoute:
    """Any provider, through LiteLLM: one model, or the deployments of a router."""

    def __init__(
        self, models: Sequence[str], base: str | None = None, key: str | None = None, router: Router | None = None
    ) -> None:
        self._litellm = import_litellm()
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
            self._ask = self._litellm.Router(**{"num_retries": 0, **router.settings}).acompletion
            self._to = {"model": router.group}
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
            response = await asyncio.wait_for(asked, timeout + 1)  # not every provider's client keeps to its timeout
        except (TimeoutError, asyncio.TimeoutError):
            raise
        except exceptions.UnsupportedParamsError as error:
            raise Fault(400, first_line(error)) from None
        except Exception as error:
            text = first_line(error)
            status = int(getattr(error, "status_code", None) or 500)
            if "Connection error" in text:
                status, text = UNREACHABLE, f"cannot reach the server: {text}"
            headers = getattr(error, "litellm_response_headers", None) or {}
            kinds = {408: "no answer in time", UNREACHABLE: "unreachable"}
            raise Fault(status, text, seconds_asked(headers.get("retry-after")), kinds.get(status, "")) from None
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
    return litellm


def redact(text: str, key: str | None = None) -> str:
    """The text without any key: the given one, and the value of each environment variable that holds one."""
    secrets = [value for name, value in os.environ.items() if _SECRET.search(name)]
    for secret in sorted({*secrets, key or ""}, key=len, reverse=True):
        if len(secret) >= 8:
            text = text.replace(secret, "[key]")
    return re.sub(r"\b(sk-[\w-]{2})[\w*-]{6,}", r"\1…", text)


def _message(data: object) -> str:
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict):
        code = f" [{error['code']}]" if isinstance(error.get("code"), str) else ""
        return f"{error.get('message') or ''}{code}"
    return str(error or (data.get("message") if isinstance(data, dict) else "") or "")


def _parameter(data: object) -> str | None:
    """Which parameter an error in OpenAI's format names."""
    error = data.get("error") if isinstance(data, dict) else None
    name = error.get("param") if isinstance(error, dict) else None
    return name if isinstance(name, str) else None


def first_line(error: Exception) -> str:
    """The first line of an error, without the names of LiteLLM's classes in front."""
    text = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return re.sub(r"^(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout)?: (?:litellm\.)?)*(?:\w+Exception - )?", "", text)


def seconds_asked(retry_after: str | None) -> float | None:
    """What a Retry-After header asks for: seconds, or a date."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
        return seconds if 0 < seconds < math.inf else None
    except ValueError:
        pass
    import email.utils

    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
