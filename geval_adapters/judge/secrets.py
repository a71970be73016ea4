"""Keys: what of a run's settings nobody is to see, and a text without it."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTHORI|COOKIE|BEARER", re.IGNORECASE)
"""Names of what nobody is to see."""
_HOLDERS = re.compile(r"^(?:extra_|default_)?(?:headers|cookies|query)$", re.IGNORECASE)
"""Names of mappings whose every value may be a key."""
_SIGNED = re.compile(rf"([?&](?:[\w.-]*(?:{SECRET_NAME.pattern}|SIGNATURE)[\w.-]*|sig)=)[^&\s\"'<>]+", re.IGNORECASE)
"""A parameter of an address with which whoever has it can open it, as links to stored images have them."""
SHORTEST = 8
"""Characters below which a value is no key."""
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "openai._base_client", "httpx", "aiohttp.client")

_kept: dict[str, None] = {}


def keep_secret(*values: object) -> None:
    """From now on, take these, and what is made of them on the way to a provider, out of every text."""
    for value in values:
        for secret in filter(_is_long, _strings(value)):
            for part in (secret, *secret.split()):
                if _is_long(part):
                    encoded = base64.b64encode(part.encode()).decode()
                    forms = (part, encoded, encoded.rstrip("="), urllib.parse.quote(part, safe=""))
                    _kept.update(dict.fromkeys((*forms, json.dumps(part)[1:-1])))


def keep_secrets_in(settings: object) -> None:
    """The same for every value in settings, whatever their shape, that goes by the name of a secret."""
    keep_secret(*_secrets_in(settings))


def known_secrets() -> tuple[str, ...]:
    """All that were kept, and each environment variable that holds one; the longest first."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and value not in _kept:
            keep_secret(value)
    return tuple(sorted(_kept, key=len, reverse=True))


def redact(text: str) -> str:
    """The text without any key."""
    for secret in known_secrets():
        if secret in text:
            text = text.replace(secret, "[key]")
    text = re.sub(r"(://)[^/@\s:]{1,100}:[^/@\s]{1,200}@", r"\1[key]@", text)
    text = _SIGNED.sub(r"\1[key]", text)
    return re.sub(r"\b(sk-[\w-]{2})[\w*-]{6,}", r"\1…", text)


def without_keys(settings: Any) -> Any:
    """Settings without the keys in them; `os.environ/NAME` names one elsewhere, and stays."""
    if isinstance(settings, Mapping):
        return {
            name: without_keys(value)
            for name, value in settings.items()
            if not _HOLDERS.search(str(name)) and not (SECRET_NAME.search(str(name)) and _is_value(value))
        }
    if isinstance(settings, str):
        return without_login(settings)
    return [without_keys(each) for each in settings] if isinstance(settings, list) else settings


def without_login(address: str) -> str:
    """An address without a user, a password, and parameters that are keys."""
    if "://" not in address:
        return address
    parts = urllib.parse.urlsplit(address)
    asked = urllib.parse.parse_qsl(parts.query)
    query = urllib.parse.urlencode([(name, value) for name, value in asked if not SECRET_NAME.search(name)])
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query))


class Redacting(logging.Filter):
    """Takes keys out of what other libraries log of a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without keys."""
        record.msg, record.args = redact(record.getMessage()), ()
        return True


def redact_logs() -> None:
    """Take keys out of the logs of the libraries that requests go through."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, Redacting) for each in logger.filters):
            logger.addFilter(Redacting())


def _secrets_in(settings: object, secret: bool = False) -> Iterator[object]:
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            yield from _secrets_in(value, secret or bool(SECRET_NAME.search(str(name)) or _HOLDERS.search(str(name))))
    elif isinstance(settings, list | tuple):
        for each in settings:
            yield from _secrets_in(each, secret)
    elif isinstance(settings, str) and secret and _is_value(settings):
        yield settings
    elif isinstance(settings, str) and "://" in settings:
        parts = urllib.parse.urlsplit(settings)
        login = parts.netloc.rpartition("@")[0]
        yield from (login, urllib.parse.unquote(parts.password or ""))
        yield from (value for name, value in urllib.parse.parse_qsl(parts.query) if SECRET_NAME.search(name))


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    revealed = getattr(value, "get_secret_value", None)  # pydantic's SecretStr
    return [str(revealed())] if callable(revealed) else []


def _is_long(value: str) -> bool:
    return len(value) >= SHORTEST


def _is_value(value: object) -> bool:
    return isinstance(value, str) and not value.startswith("os.environ/")
