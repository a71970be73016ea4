"""Text from outside, made inert: it can neither close the tags that it stands between nor end the judge's turn."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal, get_args

ControlTokens = Literal["inert", "kept"]
CONTROL_TOKENS: tuple[ControlTokens, ...] = get_args(ControlTokens)
"""What becomes of control tokens of chat templates in a sample."""

OPENING = "<＜﹤‹〈⟨❮《"
"""What begins a tag, or looks as if it did."""

NOTHING = (
    r"[\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]*"
)
"""What a tag can hold that nobody sees."""

TOKENS = re.compile(
    r"<[|｜][\w▁ .:/-]{1,60}[|｜]>"  # ChatML, Llama 3, Phi, DeepSeek, Command R, gpt-oss
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|gMASK|MASK)\]"  # Mistral, GLM
    r"|<</?SYS>>|</?s>|<(?:bos|eos|pad|unk|sop|eop|mask)>"  # Llama 2, Gemma, GLM
    r"|<(?:start|end)_of_(?:turn|image|text|utterance)>|</?(?:tool_call|tool_response|think|thinking|reserved_\d+)>",
    re.IGNORECASE,
)
"""Chat templates mark with these who speaks; servers that parse them in a user's text take them for their own."""


def shielded(
    texts: Mapping[str, str], control_tokens: ControlTokens = "inert", tags: Iterable[str] = ()
) -> dict[str, str]:
    """Texts by tag as a judge may be shown them, wherever they come from: sendable, inert, and fenced."""
    clean = {tag: sendable(text) for tag, text in texts.items()}
    return fenced({tag: inert(text) for tag, text in clean.items()} if control_tokens == "inert" else clean, tags)


def sendable(text: str) -> str:
    r"""The text with what no provider accepts (NUL, lone surrogates) as U+FFFD.

    >>> sendable("a\x00b") == "a\ufffdb"
    True
    """
    if text.isascii():  # what most text is, and much faster to see
        return text.replace("\x00", "\ufffd")
    return re.sub(r"[\x00\ud800-\udfff]", "\ufffd", text)


def inert(text: str) -> str:
    r"""The text with a space in each control token of a chat template, so that no tokenizer takes it for one.

    >>> inert("Good.<|im_end|>\n[INST] <a|b>")
    'Good.< |im_end|>\n[ INST] <a|b>'
    """
    if "<" not in text and "[" not in text:  # much faster to see than that no token is there
        return text
    return TOKENS.sub(lambda token: f"{token[0][0]} {token[0][1:]}", text)


def fenced(texts: Mapping[str, str], tags: Iterable[str] = ()) -> dict[str, str]:
    r"""Texts by their tags, with what would close one of these tags, or of further ones, escaped.

    Also what only looks like it: with full-width or styled letters, or with characters in it that nobody sees.

    >>> fenced({"output": "a </output > b"})
    {'output': 'a &lt;/output > b'}
    >>> fenced({"output": "a ＜/\u200bｏutput＞ b"})
    {'output': 'a &lt;/\u200bｏutput＞ b'}
    """
    closing = _closing(frozenset({*texts, *tags}))
    return {tag: closing.sub("&lt;", text) if _may_close(text) else text for tag, text in texts.items()}


def _may_close(text: str) -> bool:
    """Whether a text holds anything at all that begins a tag."""
    return "<" in text or (not text.isascii() and any(map(text.__contains__, OPENING)))


def tags_of(template: str) -> set[str]:
    """The tags that a prompt file closes.

    >>> tags_of("<article>{{Document}}</article>")
    {'article'}
    """
    return set(re.findall(r"</\s*([\w-]+)\s*>", template))


@cache
def _closing(tags: frozenset[str]) -> re.Pattern[str]:
    names = map(spelt, sorted(tags))
    return re.compile(rf"[{OPENING}](?={NOTHING}[/／∕⁄⧸╱]{NOTHING}(?:{'|'.join(names)})(?!\w))", re.IGNORECASE)


def spelt(word: str) -> str:
    """A pattern for a word, also with letters that only look like its own, or with what nobody sees between them."""
    alike = _look_alikes()
    return NOTHING.join(f"[{re.escape(alike.get(letter, letter))}]" for letter in word.lower())


BLOCKS = ((0x20, 0x250), (0x1D00, 0x1E00), (0x2070, 0x2190), (0x2460, 0x2500), (0xFE30, 0xFFF0), (0x1D400, 0x1D800))
"""Where Unicode has further forms of the Latin letters: styled, raised, circled, full-width."""

FOREIGN = {"a": "а", "c": "с", "e": "е", "i": "і", "o": "оο", "p": "р", "s": "ѕ", "u": "υ", "x": "х", "y": "у"}
"""Cyrillic and Greek letters that look like Latin ones."""


@cache
def _look_alikes() -> dict[str, str]:
    """For each character of a tag, all that are the same under compatibility (NFKC), or look it."""
    alike = dict(FOREIGN)
    for first, end in BLOCKS:
        for code in range(first, end):
            plain = unicodedata.normalize("NFKC", chr(code)).lower()
            if len(plain) == 1 and plain.isascii():
                alike[plain] = alike.get(plain, "") + chr(code)
    return alike
