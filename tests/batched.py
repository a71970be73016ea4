"""Texts that say how good they are, and a judge that rates several of them in one reply."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from geval_adapters import GEval, Judge
from geval_adapters.judge import Answer, Reply, Usage

MODEL = "openai/gpt-4o-mini"
QUALITY = re.compile(r"<output_(\d+)>\nquality ([\d.]+), number (\d+)(.*?)</output_\1>", re.DOTALL)
Lines = list[str]


def texts(count: int) -> list[str]:
    return [f"quality {1 + number % 37 / 9:.1f}, number {number}" for number in range(count)]


def quality(text: str) -> float:
    return float(text.split()[1].rstrip(","))


def shown_in(request: str) -> list[tuple[int, float]]:
    """Number and quality of the texts in a request, in their order."""
    return [(int(number), float(quality)) for _, quality, number, _ in QUALITY.findall(request)]


def rating_lines(request: str) -> Lines:
    """What a judge writes that sees the quality of a text."""
    return [f"Output {place + 1}: {quality}" for place, (_, quality) in enumerate(shown_in(request))]


class Rater(Judge):
    """Rates each text by its quality; `say` makes a reply of the lines, and is told of how many it is."""

    name = "rater"

    def __init__(self, say: Callable[[Lines, int], str] = lambda lines, number: "\n".join(lines)) -> None:
        self.say = say
        self.asked: list[str] = []
        self.told: list[dict[str, Any]] = []

    async def takes(self, parameter: str) -> bool:
        return parameter != "logprobs"

    async def ask(self, messages: Sequence[Any], *, n: int = 1, **told: Any) -> Answer:
        request = messages[0]["content"]
        self.asked.append(request)
        self.told.append(told)
        await asyncio.sleep(0)
        reply = self.say(rating_lines(request), len(self.asked))
        return Answer([Reply(reply)] * n, Usage(101, 40, 33, 1, 0.00012345))


def batched(judge: Judge, **options: Any) -> GEval:
    return GEval("Is it good?", judge, **{"scale": "1-5", "recipe": "batcheval", **options})


def batched_by(model: str, **options: Any) -> GEval:
    return GEval("Is it good?", model, **{"scale": "1-5", "recipe": "batcheval", **options})


def swapped(lines: Lines) -> Lines:
    return [lines[1], lines[0], *lines[2:]]
