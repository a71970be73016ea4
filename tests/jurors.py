"""Judges of a jury whose qualities are known, and samples whose quality stands in their text."""

from __future__ import annotations

import random
import re

from geval_adapters import Answer, Judge, JudgeError, Reply, Sample, Usage


def samples(n: int, seed: int = 1, human: float | None = 0.2, documents: int | None = None) -> list[Sample]:
    """Samples of a quality from 1 to 5; people see it to within some noise."""
    rng = random.Random(seed)
    made = []
    for number in range(n):
        quality = rng.uniform(1, 5)
        people = {} if human is None else {"": quality + rng.gauss(0, human)}
        made.append(
            Sample(f"q={quality:.3f}", id=f"s{number}", doc_id=f"d{number % (documents or n // 4 or 1)}", human=people)
        )
    return made


class Sees(Judge):
    """Sees the quality, shifted and blurred; dies after so many requests, or says always the same."""

    def __init__(
        self,
        name: str,
        shift: float = 0.0,
        noise: float = 0.3,
        dies_after: int | None = None,
        always: float | None = None,
        factor: float = 1.0,
    ) -> None:
        self.name = name
        self.shift, self.noise, self.dies_after, self.always, self.factor = shift, noise, dies_after, always, factor
        self.asked = 0

    async def ask(self, messages: list[dict[str, str]], *, n: int = 1, **_: object) -> Answer:
        self.asked += 1
        if self.dies_after is not None and self.asked > self.dies_after:
            raise JudgeError(f"{self.name}: 401 invalid key")
        text = re.findall(r"q=([\d.]+)", messages[0]["content"])[-1]
        blur = random.Random(f"{self.name}{text}").gauss(0, self.noise)
        seen = 3 + self.factor * (float(text) - 3) + self.shift + blur if self.always is None else self.always
        return Answer([Reply(f"Rating: {min(5, max(1, round(seen)))}")] * n, Usage(100, 0, 3, 1, 0.001))
