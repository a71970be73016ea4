"""What is sent to a judge: a message's text, and the images that its text names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .content import Image, image_numbers

Messages = list[dict[str, Any]]
"""As in OpenAI's chat protocol: the content is text, or a list of text parts and images."""


def user_message(text: str, shown: Iterable[str], images: Sequence[Image]) -> dict[str, Any]:
    """A message with those images whose marks stand in what is shown, each named by its mark, and then the text.

    Raises:
        InputError: an image's file is gone, or has changed.

    >>> user_message("Rate it.", ["A cat."], [])
    {'role': 'user', 'content': 'Rate it.'}
    """
    parts: list[dict[str, Any]] = []
    numbers = image_numbers("\n".join(shown)) if images else []
    for number in sorted(number for number in numbers if number <= len(images)):
        parts.append({"type": "text", "text": f"[image {number}]:"})
        parts.append({"type": "image_url", "image_url": {"url": images[number - 1].url()}})
    return {"role": "user", "content": [*parts, {"type": "text", "text": text}] if parts else text}


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, without its images."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))


def common_prefix(one: str, other: str) -> int:
    """How many characters two texts have in common at the beginning.

    >>> common_prefix("abc", "abd")
    2
    """
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def count_images(messages: Iterable[Mapping[str, Any]]) -> int:
    """How many images messages hold."""
    contents = (message.get("content") for message in messages)
    return sum(
        isinstance(part, Mapping) and part.get("type") == "image_url"
        for content in contents
        if isinstance(content, list)
        for part in content
    )
