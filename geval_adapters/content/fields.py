"""The fields of a row that are more than text: messages, content parts, tool calls, lists of contexts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, brief
from .conversation import Conversation, listed
from .images import Album, unmarked
from .messages import Block, Turn, call_text, compact, is_call, messages_in, parts_of, plain_message, shown, turns_of


def text_fields(values: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any]:
    r"""A row's values as a `Sample` takes them: texts, and beside them the conversation, contexts and images.

    Messages are the source, the output, or both: the last of the assistant's turns is what is judged, unless a
    criterion says otherwise. Where an output stands beside messages, it is the next turn.

    Args:
        values: `source`, `output`, `reference`, `context` and `messages`, each None where there is none.
        folder: where images may lie that are named by paths.

    Raises:
        InputError: what is no message, or a part of it that a judge cannot be shown.

    >>> fields = text_fields({"messages": [{"role": "user", "content": "Hi"}], "output": "Hello"})
    >>> fields["source"], fields["output"]
    ('[1] user:\n    Hi', '[2] assistant:\n    Hello')
    """
    source, output, reference, context = (values.get(name) for name in ("source", "output", "reference", "context"))
    messages = _parsed(values.get("messages"))
    if messages is not None and (source is None or output is None):
        source = messages
    album = Album(folder)
    said, replied = messages_in(source), messages_in(output)
    if messages is not None and source is messages:
        said = _listed(messages)
    fields: dict[str, Any] = {}
    if said is None and replied is None:
        fields |= {"source": _text(source, album), "output": _text(output, album)}
    else:
        conversation = Conversation(turns_of(_joined(source, said, output, replied), album))
        fields |= last_turn(conversation) | {"conversation": conversation}
    fields["reference"] = _reference(reference, album)
    contexts = _contexts(context, album)
    fields["context"] = contexts[0] if len(contexts) == 1 else listed(contexts, "passage") if contexts else None
    fields["contexts"] = tuple(contexts)
    if fields["output"] is None and (contexts or "conversation" in fields):
        fields |= {"output": "", "lacks_output": True}
    if album.images:
        for name, value in (("source", source), ("output", output), ("reference", reference)):
            if isinstance(value, str) and fields[name] == value:
                fields[name] = unmarked(value)
    return fields | {"images": tuple(album.images)}


def last_turn(conversation: Conversation, **cut: int) -> dict[str, Any]:
    """The assistant's last turn as the output, and what went before it as the source."""
    if not conversation.assistant:
        return {"source": conversation.whole(**cut).text or None, "output": None}
    return turn_fields(conversation, conversation.assistant[-1], **cut)


def turn_fields(conversation: Conversation, number: int, **cut: int) -> dict[str, Any]:
    """A turn as the output, what went before it as the source, and how many turns are left out of that."""
    before = conversation.before(number, **cut)
    return {"source": before.text or None, "output": conversation.turn(number), "left_out": before.left_out}


def _joined(source: Any, said: list[Any] | None, output: Any, replied: list[Any] | None) -> list[Any]:
    """The messages of the source and of the output as one conversation."""
    begin = said if said is not None else [] if source is None else [{"role": "user", "content": source}]
    if replied is None:
        if output is None or (begin and _says(begin[-1], output)):
            return begin
        return [*begin, {"role": "assistant", "content": output}]
    if said is not None and replied[: len(said)] == said:  # a run that was handed on with what it began with
        return replied
    if said is None and plain_message(replied[0]).get("role", plain_message(replied[0]).get("type")) not in _REPLIES:
        return replied
    return [*begin, *replied]


_REPLIES = ("assistant", "ai", "AIMessageChunk", "tool", "function")


def _says(message: object, output: object) -> bool:
    plain = plain_message(message)
    return plain.get("content") == output and (plain.get("role") or plain.get("type")) in _REPLIES


def _parsed(messages: Any) -> Any:
    """Messages, also as JSON, as they stand in a CSV file."""
    if isinstance(messages, str):
        try:
            return json.loads(messages)
        except (ValueError, RecursionError):
            raise InputError(
                f"messages: expected a list of messages, or one as JSON, found {brief(messages)}"
            ) from None
    return messages


def _listed(messages: Any) -> list[Any]:
    if isinstance(messages, Mapping):
        messages = messages.get("messages", [messages])
    if not isinstance(messages, list | tuple) or not messages:
        raise InputError(f"messages: expected a list of messages, found {brief(messages)}")
    return list(messages)


def _text(value: Any, album: Album) -> Any:
    """A field's content parts as text; anything else as it is, for whoever checks that."""
    if isinstance(value, list | tuple) and any(map(_is_part, value)):
        return "\n".join(filter(None, (shown(part, album) for part in parts_of(value))))
    if isinstance(value, Mapping) and _is_part(value):
        return shown(value, album)
    return value


def _is_part(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def _reference(value: Any, album: Album) -> Any:
    """A reference: text, content parts, messages, or the calls that were expected."""
    if (messages := messages_in(value)) is not None:
        turns = turns_of(messages, album)
        if len(turns) == 1 and all(block.kind == "says" for block in turns[0].blocks):
            return "\n".join(block.text for block in turns[0].blocks)
        return Conversation(turns).whole().text
    if isinstance(value, list | tuple) and value and all(map(is_call, value)):
        calls = tuple(Block("call", call_text(call), number) for number, call in enumerate(value, start=1))
        return Conversation((Turn("assistant", calls),)).turn(1)
    return _text(value, album)


def _contexts(value: Any, album: Album) -> list[str]:
    """The contexts one by one, of a text, a list of them, or documents as retrievers give them."""
    if value is None:
        return []
    given = list(map(_passage, value)) if isinstance(value, list | tuple) else [_passage(value)]
    contexts = [_text(each, album) for each in given]
    for each, context in zip(given, contexts, strict=True):
        if not isinstance(context, str):
            raise InputError(f"context: must be text, or a list of texts, found {brief(each)}")
    plain = [isinstance(each, str) for each in given]
    return [unmarked(text) if album.images and own else text for text, own in zip(contexts, plain, strict=True)]


def _passage(value: Any) -> Any:
    """A document's text; content parts, and what is no context, as they are."""
    if isinstance(value, Mapping) and not str(value.get("type")).endswith(("text", "image", "image_url")):
        texts = (value.get(name) for name in ("page_content", "text", "content"))
        return next((text for text in texts if isinstance(text, str)), compact(value))  # a tool's description, say
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return getattr(value, "page_content", value)
