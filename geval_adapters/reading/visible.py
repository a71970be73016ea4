"""What of a reply is the judge's answer: not its thinking, nor what it was shown and repeats, nor what it quotes.

The rest is blanked out character for character, so that a place in what is left is one in the reply. Every step takes
time in proportion to the reply's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .lexer import NUMBERS, PLAIN

BLANK = "\0"

THINKING = (  # where a judge's thinking begins and ends, as models write it
    (r"<(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>",
     r"</(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<seed:think>", r"</seed:think>"),
    (r"(?:<\|start\|>(?:assistant)?)?<\|channel\|>(?:analysis|commentary)(?:[^<\n]{0,40})(?:<\|message\|>)?",
     r"(?:<\|(?:end|return|call)\|>)?(?:<\|start\|>(?:assistant)?)?<\|channel\|>final(?:<\|message\|>)?"),
    (r"\Aanalysis(?=[A-Z])", r"assistant(?:<\|channel\|>)?final"),
)  # fmt: skip
_MARK = re.compile("|".join(f"({begin})|({end})" for begin, end in THINKING), re.IGNORECASE)
_SIGNS = ("<", "THINK]", "◁")
_LEFTOVER = re.compile(r"<\|(?:end|return|start|message|im_end|im_start|eot_id|endoftext)\|>|</s>")
_QUOTED = re.compile(r'"[^"\n]*"|“[^“”]*”|«[^«»]*»|「[^「」]*」|『[^『』]*』|„[^„“”]*[“”]')
_SENTENCE = re.compile(r"[^\n.!?。]+[.!?。]?")
_COULD_RATE = re.compile(rf"\d|★|\b(?:{'|'.join(NUMBERS)})\b", re.IGNORECASE)
_FEWEST, _BARELY = 3, 4
"""Words that a shown text, and a piece of one, has at the least: shorter ones a judge may well write by itself."""


def visible(reply: str, shown: Iterable[str] = ()) -> str:
    """The reply in plain characters, with its thinking and what it repeats of the texts shown blanked out.

    >>> visible("<think>A 2?</think>Rating：４").strip()
    'Rating:4'
    """
    text = reply if reply.isascii() else reply.translate(PLAIN)
    text = _without_thinking(text)
    if len(text.split(None, _FEWEST)) < _FEWEST:  # nothing that is looked for has as few words
        return text
    for other in shown:
        for piece in _pieces(other):
            if piece in text:
                text = text.replace(piece, BLANK * len(piece))
    return text


def without_quotes(text: str) -> str:
    """The text with what stands in quotation marks blanked out, if it is more than a word, and not all there is."""
    if not any(mark in text for mark in '"“«「『„'):
        return text
    stripped = text.strip()

    def blank(match: re.Match[str]) -> str:
        inner = match[0][1:-1]
        whole = match[0] == stripped or not re.search(r"\s", inner.strip())
        return match[0] if whole else BLANK * len(match[0])

    return _QUOTED.sub(blank, text)


def _without_thinking(text: str) -> str:
    """Blank from each mark that begins thinking to the one that ends it, or to the reply's end."""
    if not any(sign in text for sign in _SIGNS) and not text.startswith("analysis"):
        return text
    if not (marks := list(_MARK.finditer(text))):
        return _LEFTOVER.sub(lambda match: " " * len(match[0]), text)
    parts: list[str] = []
    done, began = 0, 0
    thinking = marks[0].lastindex is not None and marks[0].lastindex % 2 == 0  # only closed: begun before the reply
    for mark in marks:
        begins = mark.lastindex is not None and mark.lastindex % 2 == 1
        if begins and not thinking:
            parts.append(text[done : mark.start()])
            thinking, began = True, mark.start()
        elif not begins:
            parts.append(" " * (mark.end() - (began if thinking else done)))
            thinking, done = False, mark.end()
    parts.append(" " * (len(text) - began) if thinking else text[done:])
    return _LEFTOVER.sub(lambda match: " " * len(match[0]), "".join(parts))


@lru_cache(4096)
def _pieces(shown: str) -> tuple[str, ...]:
    """A shown text and its sentences, as far as they could be taken for a rating; the longest first."""
    shown = shown.strip().translate(PLAIN)
    lines = [line.strip() for line in shown.split("\n")]
    sentences = [match[0].strip() for match in _SENTENCE.finditer(shown)]
    pieces = [piece for piece in (*lines, *sentences) if len(piece.split()) >= _BARELY and _COULD_RATE.search(piece)]
    whole = [shown] if len(shown.split()) >= _FEWEST else []
    return tuple(sorted({*whole, *pieces}, key=len, reverse=True))
