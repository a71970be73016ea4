"""Messages as OpenAI, LangChain and Anthropic write them, as turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..errors import InputError, brief
from .images import Album, unmarked

Role = Literal["system", "developer", "user", "assistant", "tool"]

ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "developer", "user": "user", "human": "user", "HumanMessageChunk": "user",
    "assistant": "assistant", "ai": "assistant", "AIMessageChunk": "assistant", "model": "assistant",
    "tool": "tool", "function": "tool", "ToolMessageChunk": "tool",
}  # fmt: skip
"""Who speaks, by the names that the frameworks have for it."""

TEXTS = ("text", "input_text", "output_text", "refusal")
CALLS = ("tool_use", "server_tool_use", "tool_call", "function_call", "function", "custom")
UNSAID = ("thinking", "redacted_thinking", "reasoning")
"""Parts in which a model thinks, which nobody was told: they are not shown."""


class Block(NamedTuple):
    """A part of a turn: what is said, a tool that is called, or what a tool gave back.

    `call` is the number of the call in the conversation; of a result, 0 where it belongs to none.
    """

    kind: Literal["says", "call", "result", "failed result"]
    text: str
    call: int = 0


class Turn(NamedTuple):
    """What one party does at a time: says something, calls tools, and has their results."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass
class _Reader:
    """Reads messages one after the other, and knows which calls await a result."""

    album: Album
    turns: list[tuple[Role, list[Block]]] = field(default_factory=list)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    calls: int = 0

    def take(self, message: Mapping[str, Any]) -> None:
        role = _role(message)
        if role == "tool":
            failed = message.get("status") == "error"
            self._result(message.get("tool_call_id"), message.get("content"), failed)
            return
        beside = tool_calls(message)
        known: set[str] = set()
        blocks: list[Block] = []
        content = message.get("content")
        for part in [*parts_of(content), *parts_of(message.get("refusal"))]:
            kind = _kind_of(part)
            if kind == "tool_result":
                self._result(part.get("tool_use_id"), part.get("content"), bool(part.get("is_error")))
            elif kind in CALLS:
                blocks.append(self._call(_told_beside(part, beside), known))
            elif text := shown(part, self.album):
                says = bool(blocks) and blocks[-1].kind == "says"
                blocks[-1:] = (
                    [Block("says", f"{blocks[-1].text}\n{text}")] if says else [*blocks[-1:], Block("says", text)]
                )
        blocks += [self._call(call, known) for call in beside]
        results_alone = not blocks and any(_kind_of(part) == "tool_result" for part in parts_of(content))
        if not results_alone:
            self.turns.append((role, blocks or [Block("says", "")]))

    def _call(self, call: Mapping[str, Any], known: set[str]) -> Block:
        """A call, which awaits its result; `known` are the ids of the same message's calls before it."""
        self.calls += 1
        identity = _identity(call) or f"\0{self.calls}"
        if identity not in known:  # an id that comes again in a later message means that one's call
            self.waiting.pop(identity, None)
        known.add(identity)
        self.waiting.setdefault(identity, []).append(self.calls)
        return Block("call", call_text(call), self.calls)

    def _result(self, identity: object, content: object, failed: bool) -> None:
        """What a tool gave back; without an id it is that of the first call that still has none."""
        called = str(identity) if identity else next(iter(self.waiting), "")
        first, *others = self.waiting.pop(called, [0])
        if others:
            self.waiting[called] = others
        text = "\n".join(filter(None, (shown(part, self.album) for part in parts_of(content))))
        if not self.turns or self.turns[-1][0] != "assistant":
            self.turns.append(("tool", []))
        self.turns[-1][1].append(Block("failed result" if failed else "result", text, first))


def turns_of(messages: Iterable[object], album: Album) -> tuple[Turn, ...]:
    """Messages as turns; results of tools belong to the turn that called them.

    Raises:
        InputError: what is no message, a role that is not known, or a part that a judge cannot be shown.

    >>> turns_of([{"role": "user", "content": "Hello"}], Album())
    (Turn(role='user', blocks=(Block(kind='says', text='Hello', call=0),)),)
    """
    reader = _Reader(album)
    for number, message in enumerate(messages, start=1):
        try:
            reader.take(plain_message(message))
        except InputError as error:
            raise InputError(f"message {number}: {error}") from None
        except RecursionError:
            raise InputError(f"message {number}: is nested too deep") from None
    return tuple(Turn(role, tuple(blocks)) for role, blocks in reader.turns)


def plain_message(message: object) -> Mapping[str, Any]:
    """A message as a mapping with `role` or `type`, `content` and what belongs to it, however it was written.

    Raises:
        InputError: it is no message.
    """
    if isinstance(message, Mapping):
        if isinstance(inner := message.get("kwargs"), Mapping) and "lc" in message:  # LangChain's serialised form
            name = str((message.get("id") or [""])[-1])
            kind = name.removesuffix("Chunk").removesuffix("Message").lower()
            return {"type": kind, **inner}
        if isinstance(inner := message.get("data"), Mapping) and "type" in message:  # messages_to_dict
            return {**inner, "type": message["type"]}
        return message
    if isinstance(message, list | tuple) and len(message) == 2 and isinstance(message[0], str):
        return {"role": message[0], "content": message[1]}
    if hasattr(message, "content") and (hasattr(message, "type") or hasattr(message, "role")):
        names = ("role", "type", "content", "tool_calls", "invalid_tool_calls", "tool_call_id", "status", "refusal")
        return {name: getattr(message, name) for name in names if getattr(message, name, None) is not None}
    raise InputError(f"expected a message with role and content, found {brief(message)}")


def messages_in(value: object) -> list[Any] | None:
    """The messages that a field's value holds: a list of them, one, or a mapping with `messages`; None for others."""
    if isinstance(value, Mapping) and isinstance(inner := value.get("messages"), list | tuple):
        return list(inner)
    if _is_message(value):
        return [value]
    if isinstance(value, list | tuple) and value and all(map(_is_message, value)):
        return list(value)
    return None


def tool_calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls that stand beside a message's content.

    Raises:
        InputError: they are no list of calls.
    """
    found: list[Any] = []
    for name in ("tool_calls", "invalid_tool_calls"):
        calls = message.get(name) or []
        if not isinstance(calls, list | tuple):
            raise InputError(f"{name}: expected a list of calls, found {brief(calls)}")
        found += calls
    if message.get("function_call"):
        found.append(message["function_call"])
    return [_mapping(call) for call in found]


def _identity(call: Mapping[str, Any]) -> str:
    return str(call.get("id") or call.get("call_id") or "")


def _told_beside(call: Mapping[str, Any], beside: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A content's call as it stands, whole, beside the content, and is taken from there; else itself.

    LangChain has Anthropic's calls in both; in the content of what was streamed, their arguments are missing.
    """
    same = (place for place, each in enumerate(beside) if _identity(call) and _identity(each) == _identity(call))
    place = next(same, None)
    return call if place is None else beside.pop(place)


def call_text(call: Mapping[str, Any]) -> str:
    """A call in one form, whoever wrote it: the tool's name, and its arguments as compact JSON.

    >>> call_text({"type": "function", "function": {"name": "search", "arguments": '{"q": "a b"}'}})
    'search {"q":"a b"}'
    """
    inner = _mapping(call.get("function") or call.get("custom") or call)
    name = str(inner.get("name") or "")
    given: Any = next((inner[key] for key in ("arguments", "args", "input") if inner.get(key) is not None), {})
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):  # what a model wrote need not be JSON: it is shown as text then
            given = json.loads(given)
    plain = name.replace("_", "").replace("-", "").replace(".", "").isalnum() and len(name) <= 100
    return unmarked(f"{name if plain else compact(name)} {compact(given)}")


def is_call(value: object) -> bool:
    """Whether a value is a tool call, of a reference that lists them."""
    call = value if isinstance(value, Mapping) else {}
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    return "name" in inner and any(key in inner for key in ("arguments", "args", "input"))


def shown(part: Mapping[str, Any], album: Album) -> str:
    """A part of a content as text, an image as its mark.

    Raises:
        InputError: a part of another kind, which would be judged unseen.
    """
    kind = _kind_of(part)
    if kind in UNSAID:
        return ""
    if kind in TEXTS:
        return unmarked(str(part.get("text") or part.get(kind) or ""))
    if kind in ("image_url", "input_image"):
        told = part.get("image_url")
        return album.mark(told.get("url") if isinstance(told, Mapping) else told)
    if kind == "image":
        return album.mark(_image_place(part))
    raise InputError(f"a part of type {brief(part.get('type'))} cannot be shown to a judge; known: text, image_url")


def _image_place(part: Mapping[str, Any]) -> object:
    """Where an image is, as Anthropic's and LangChain's parts say it."""
    source = part.get("source")
    inner = source if isinstance(source, Mapping) else part
    data = inner.get("data") or inner.get("base64")
    if data:
        kind = inner.get("media_type") or inner.get("mime_type") or "image/png"
        return f"data:{kind};base64,{data}"
    return inner.get("image") or inner.get("url") or inner.get("path")


def parts_of(content: object) -> list[Mapping[str, Any]]:
    """A content as its parts."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, Mapping):
        return [content] if "type" in content else [{"type": "text", "text": compact(content)}]
    if isinstance(content, Sequence):
        return [part for each in content for part in parts_of(each)]
    return [{"type": "text", "text": compact(content)}]


def _kind_of(part: Mapping[str, Any]) -> str:
    return str(part.get("type"))


def _role(message: Mapping[str, Any]) -> Role:
    named = message.get("role") or message.get("type")
    role = ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        raise InputError(f"unknown role {brief(named)}; known: system, developer, user, assistant, tool")
    return role


def _is_message(value: object) -> bool:
    if isinstance(value, Mapping):
        if "lc" in value and "kwargs" in value:
            return True
        named = value.get("role") or value.get("type")
        return isinstance(named, str) and named in ROLES and bool({"content", "data", "tool_calls"} & value.keys())
    return not isinstance(value, type) and hasattr(value, "content") and hasattr(value, "type")


def _mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump"):  # an object of OpenAI's client
        return dict(value.model_dump())
    raise InputError(f"expected a tool call with its name and arguments, found {brief(value)}")


def compact(value: object) -> str:
    """A value as JSON without spaces.

    Raises:
        InputError: it has no such form.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        raise InputError("a value is nested too deep") from None
    except (TypeError, ValueError) as error:  # keys that are no names, a list that holds itself
        raise InputError(f"a value cannot be written as JSON: {error}") from None
