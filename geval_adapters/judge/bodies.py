"""The bytes of requests and of responses, of these no more than the request can be worth, also after decompression."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterable, Mapping
from typing import Any

from .faults import Fault

LEAST_BYTES = 1 << 20
UNLIMITED_TOKENS = 16_384
"""Tokens that an answer without a limit is thought to have at the most."""


def most_bytes(body: Mapping[str, Any]) -> int:
    """How large the response to a request may be."""
    tokens = body.get("max_tokens") or body.get("max_completion_tokens") or UNLIMITED_TOKENS
    per_token = 4096 if body.get("logprobs") else 64
    return LEAST_BYTES + int(body.get("n", 1) * tokens * per_token)


async def read_body(chunks: AsyncIterable[bytes], encoding: str, most: int) -> bytes:
    """The bytes of a response, decompressed.

    Raises:
        Fault: there are too many, or they are compressed in a way that was not offered.
    """
    inflate = None
    if encoding in ("gzip", "deflate"):
        inflate = zlib.decompressobj(wbits=47 if encoding == "gzip" else zlib.MAX_WBITS)
    elif encoding not in ("", "identity"):
        raise Fault(502, f"the response is compressed by {encoding[:20]!r}, which was not offered", kind="odd encoding")
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in chunks:
            part = inflate.decompress(chunk, most - size + 1) if inflate else chunk
            parts.append(part)
            size += len(part)
            if size > most or (inflate and inflate.unconsumed_tail):
                raise Fault(502, f"the response has more than {most} bytes", kind="too large a response")
    except zlib.error as error:
        raise Fault(502, f"the response cannot be decompressed: {error}", kind="malformed response") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def parsed(raw: bytes) -> Any:
    """JSON as Python's values; None where it is none, or too deep.

    Pydantic's parser takes half of the time of Python's own, and refuses some of what that one takes (lone surrogates,
    UTF-16, deep nesting): then Python's decides.
    """
    from pydantic_core import from_json

    try:
        return from_json(raw)
    except ValueError:
        pass
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def as_json(body: Mapping[str, Any]) -> bytes:
    """A request's body as it is sent."""
    from pydantic_core import to_json

    try:
        return to_json(body)
    except ValueError:  # lone surrogates, which Python's own escapes
        return json.dumps(body).encode()
