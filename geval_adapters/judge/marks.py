"""Marks in messages, for providers that cache the beginning of a prompt only up to a mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def marked(message: Mapping[str, Any], shared: int, again: bool) -> dict[str, Any]:
    """A message with marks where a cache is to end: after what other messages share, and, if it is sent again, at its
    own end. One with images has none.
    """
    content = message["content"]
    if not isinstance(content, str):
        return dict(message)
    parts = [(content[:shared], shared > 0), (content[shared:], again)]
    mark = {"cache_control": {"type": "ephemeral"}}
    if not any(marked for _, marked in parts):
        return dict(message)
    blocks = [{"type": "text", "text": text} | (mark if marked else {}) for text, marked in parts if text]
    return {**message, "content": blocks}
