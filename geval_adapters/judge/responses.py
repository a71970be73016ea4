"""What a response holds: replies and token counts. Whatever shape it has, it harms no other request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .base import Reply, Usage
from .faults import Fault
from .secrets import known_secrets, redact

MOST_TOKENS = 10**9
"""No request takes as many: a count above it is none."""


class Counts(NamedTuple):
    """Tokens of one response, as the provider counts them; those read from and written to a cache are of the prompt."""

    prompt: int
    completion: int
    cached: int
    written: int


class Response(NamedTuple):
    """What came of one request; the model that answered, where that varies."""

    replies: list[Reply]
    usage: Usage
    answered: str | None


def replies_of(response: Mapping[str, Any]) -> list[Reply]:
    """The replies in a response of the OpenAI protocol.

    Raises:
        Fault: there are none, or they are not as the protocol has them.
    """
    choices = response.get("choices")
    if not choices:
        raise Fault(502, "the response holds no choices", kind="no choices")
    if not isinstance(choices, list) or not all(isinstance(each, Mapping) for each in choices):
        raise _malformed("choices that are no objects")
    served = served_by(response.get("model"), response.get("system_fingerprint"))
    return [reply_of(choice, served) for choice in choices]


def served_by(model: object, fingerprint: object) -> str | None:
    """A model and its fingerprint as a provider names them, as one text; None where it names none.

    Of a file that a local server has loaded it is the name alone, which is the same on each machine.

    >>> served_by("gpt-4o-mini-2024-07-18", "fp_44709d6fcb")
    'gpt-4o-mini-2024-07-18 (fp_44709d6fcb)'
    >>> served_by("/models/tiny.gguf", None)
    'tiny.gguf'
    """
    name, mark = (each[:400] if isinstance(each, str) else "" for each in (model, fingerprint))
    if name.endswith(".gguf"):
        name = re.split(r"[/\\]", name)[-1]
    return " ".join(filter(None, [name, f"({mark})" if mark else ""])) or None


def counts_of(response: Mapping[str, Any]) -> Counts | None:
    """The token counts in a response; None where it has none, or none that can be."""
    told = response.get("usage")
    if not isinstance(told, Mapping):
        return None
    details = told.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    written = told.get("cache_creation_input_tokens")
    numbers: list[Any] = [told.get("prompt_tokens"), told.get("completion_tokens"), cached or 0, written or 0]
    if not all(type(number) in (int, float) and 0 <= number <= MOST_TOKENS for number in numbers):
        return None
    prompt, completion, read, wrote = map(int, numbers)
    counts = Counts(prompt, completion, read, wrote)
    return counts if counts.cached + counts.written <= counts.prompt else None


def reply_of(choice: Mapping[str, Any], served: str | None = None) -> Reply:
    """One of a response's choices as a reply of a model. Raises Fault, where it is not as the protocol has it."""
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise _malformed("choices without a message")
    content, reasoning = message.get("content"), _thinking(message)
    if isinstance(content, list):
        reasoning = reasoning or _joined(content, ("thinking", "reasoning", "reasoning_content"))
        content = _joined(content, ("text", "output_text"))
    if not isinstance(content, str | None):
        raise _malformed(f"a message whose content is {type(content).__name__}")
    refusal, finish, logprobs = message.get("refusal"), choice.get("finish_reason"), choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if tokens:
        tokens = _checked(tokens)
        spelt = "".join(token["token"] for token in tokens)
        if content and content != spelt and content.endswith(spelt):
            content = spelt  # llama.cpp puts the beginning that it was given before the text
        tokens = _of_text(tokens, content or "")
    return Reply(
        content or "",
        tokens or None,
        reasoning=reasoning or None,
        refusal=refusal if isinstance(refusal, str) and refusal else None,
        finish=finish if isinstance(finish, str) else None,
        served=served,
    )


def without_echoes(reply: Reply, secrets: Iterable[str] | None = None) -> Reply:
    """The reply; a server may have echoed the request's key in it. The `secrets` are by default all that are known."""
    texts = {name: text for name, text in vars(reply).items() if isinstance(text, str)}
    if not any(map("\n".join(texts.values()).__contains__, known_secrets() if secrets is None else secrets)):
        return reply
    return Reply(**vars(reply) | {name: redact(text) for name, text in texts.items()})


def _thinking(message: Mapping[str, Any]) -> str:
    """What was thought, by the names that providers have for it."""
    for name in ("reasoning_content", "reasoning"):  # vLLM, DeepSeek, LiteLLM; newer vLLM, OpenRouter
        if isinstance(thought := message.get(name), str) and thought:
            return thought
    blocks = message.get("thinking_blocks")  # LiteLLM's name for Anthropic's
    return _joined(blocks, ("thinking",)) if isinstance(blocks, list) else ""


def _joined(parts: Sequence[Any], kinds: tuple[str, ...]) -> str:
    """The text of those parts of a content that are of some kinds."""
    texts = []
    for part in parts:
        if isinstance(part, str) and "text" in kinds:
            texts.append(part)
        if not isinstance(part, Mapping) or part.get("type") not in kinds:
            continue
        told = next((part[name] for name in ("text", "thinking", "reasoning", "content") if part.get(name)), "")
        if isinstance(told, list):
            told = "".join(each["text"] for each in told if isinstance(each, Mapping) and _is_text(each.get("text")))
        texts.append(told if isinstance(told, str) else "")
    return "".join(texts)


def _checked(tokens: Any) -> list[Mapping[str, Any]]:
    """Log-probabilities, if they have the protocol's shape."""
    if not isinstance(tokens, list) or not _are_tokens(tokens):
        raise _malformed("malformed log-probabilities")
    for token in tokens:
        tops = token.get("top_logprobs")
        if tops is not None and not (isinstance(tops, list) and _are_tokens(tops)):
            raise _malformed("malformed log-probabilities")
    return tokens


def _are_tokens(entries: list[Any]) -> bool:
    try:  # nearly always, and seen without a call for each
        texts, values = {type(each["token"]) for each in entries}, {type(each["logprob"]) for each in entries}
    except (KeyError, TypeError, IndexError):
        return False
    return (texts <= {str} and values <= {float}) or all(map(_is_token, entries))


def _is_token(token: Any) -> bool:
    return (
        isinstance(token, dict)
        and type(token.get("token")) is str
        and (type(value := token.get("logprob")) is float or (type(value) is int and abs(value) <= MOST_TOKENS))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _of_text(tokens: list[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """Those tokens that spell the text: servers that cut the thinking out of a reply leave its tokens in."""
    spelt = "".join(token["token"] for token in tokens)
    if spelt == text or not text or (start := spelt.rfind(text)) < 0:
        return tokens
    place, kept = 0, []
    for token in tokens:
        end = place + len(token["token"])
        if end > start and place < start + len(text):
            kept.append(token)
        place = end
    return kept


def _malformed(what: str) -> Fault:
    return Fault(502, f"the response holds {what}", kind="malformed response")
