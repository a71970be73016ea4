"""Further parameters that users send with each request (`reasoning_effort`, `top_p`, `extra_body`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import InputError

OWN = {
    "messages": "", "model": "--model", "n": "--n", "temperature": "--temperature", "logprobs": "--readout",
    "top_logprobs": "--readout", "stop": "", "stream": "", "max_tokens": "", "timeout": "--timeout",
    "api_key": "the provider's environment variable", "api_base": "api_base=", "base_url": "api_base=",
    "headers": "a router file", "extra_headers": "a router file", "extra_query": "a router file",
}  # fmt: skip
"""Parameters of a request that are no options, and where they are set instead."""


def sendable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they are sent, those of `extra_body` beside the others.

    Raises:
        InputError: one of them is set in another way, or is no JSON.
    """
    flat = {**options, **(options.get("extra_body") or {})}
    flat.pop("extra_body", None)
    for name in flat:
        if name in OWN:
            where = f": use {OWN[name]}" if OWN[name] else ""
            raise InputError(f"{name!r} is no option of a judge{where}")
    try:
        return dict(json.loads(json.dumps(flat)))
    except (TypeError, ValueError) as error:
        raise InputError(f"a judge's options must be JSON: {error}") from None
