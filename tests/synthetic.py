"""Judges whose biases are known because they were planted, and samples whose quality is known because it was made.

An output is good in consistency as far as its words stand in the source, and in fluency as far as they are not broken.
"""

from __future__ import annotations

import random
import re

from geval_adapters import Judge, Sample, Scale, Usage
from geval_adapters.judge.base import Answer, Reply


def samples(documents: int = 12, systems: int = 5, seed: int = 7) -> list[Sample]:
    """Samples whose two qualities, length and system are independent of each other."""
    rng = random.Random(seed)
    made = []
    for document in range(documents):
        source = [f"word{rng.randrange(10_000)}" for _ in range(30)]
        for system in range(systems):
            length, faithful, broken = rng.randrange(24, 60), rng.random(), rng.randrange(21)
            words = [
                rng.choice(source) if rng.random() < faithful else f"other{rng.randrange(99)}" for _ in range(length)
            ]
            for place in rng.sample(range(length), broken):
                words[place] += "_"
            output = " ".join(["moreover", *words] if system == 0 else words)
            people = {
                "consistency": 1 + 4 * consistency(output, " ".join(source)),
                "fluency": 1 + 4 * fluency(output),
            }
            annotators = {
                f"summeval/{name}": tuple(score + rng.gauss(0, 0.17) for _ in range(3))
                for name, score in people.items()
            }
            human = {name: sum(scores) / 3 for name, scores in annotators.items()}
            made.append(
                Sample(
                    output,
                    source=" ".join(source),
                    id=f"{document}/{system}",
                    doc_id=str(document),
                    system_id=f"system {system}",
                    human=human,
                    annotators=annotators,
                )
            )
    return made


def consistency(output: str, source: str) -> float:
    known = set(source.split())
    words = output.split()
    return sum(word.rstrip("_") in known for word in words) / len(words) if words else 0.0


def fluency(output: str) -> float:
    return 1 - min(20, output.count("_")) / 20 if output.split() else 0.0


class Unbiased(Judge):
    """Sees what is there, to within a little noise, whatever it is asked like."""

    name = "synthetic/unbiased"
    concurrency = 1

    def __init__(self) -> None:
        self.rng = random.Random(self.name)
        self.asked = 0

    async def ask(self, messages: list[dict[str, str]], *, n: int = 1, **_: object) -> Answer:
        self.asked += n
        prompt = messages[0]["content"]
        return Answer([Reply(self.reply(prompt)) for _ in range(n)], Usage(requests=n, cost=0.0))

    def reply(self, prompt: str) -> str:
        texts = {tag: text for tag, text in re.findall(r"(?s)<(\w+)>\n(.*?)\n?</\1>", prompt)}
        if not texts:
            return "1. Read the texts.\n2. Choose a score."
        if "summary_A" in texts:
            return self.verdict(texts, re.findall(r"in terms of (\w+)", prompt)[-1])
        rated = re.findall(r"(?m)^(?:\d\. )?(\w+) \((.+?)\) - ", prompt)
        if "summary_1" in texts:
            return self.together(prompt, rated[0][0].lower(), _scale(rated[0][1]))
        scores: list[str] = []
        previous: float | None = None
        for criterion, scale in rated:
            previous = self.share(criterion.lower(), texts, previous)
            scores.append(self.score(previous, _scale(scale)))
        if len(rated) > 1:
            return "\n".join(f"- {name}: {score}" for (name, _), score in zip(rated, scores, strict=True))
        return f"Analysis: Fine.\nRating: {scores[0]}" if "Analysis:" in prompt else f"Rating: {scores[0]}"

    def together(self, prompt: str, criterion: str, scale: Scale) -> str:
        seen: dict[str, str] = {}
        lines = []
        for tag, text in re.findall(r"(?s)<(\w+)>\n(.*?)\n?</\1>", prompt):
            if tag.startswith("summary_"):
                score = self.score(self.share(criterion, seen | {"summary": text}, None), scale)
                lines.append(f"Summary {tag[8:]}: {score}")
            else:
                seen[tag] = text
        return "\n".join(lines)

    def quality(self, criterion: str, texts: dict[str, str]) -> float:
        output = texts["summary"]
        if criterion == "fluency":
            return fluency(output)
        return consistency(output, texts["article"]) if "article" in texts else 0.5

    def share(self, criterion: str, texts: dict[str, str], previous: float | None) -> float:
        return min(1.0, max(0.0, self.quality(criterion, texts) + self.rng.gauss(0, 0.02)))

    def score(self, share: float, scale: Scale) -> str:
        value = min(scale.values, key=lambda step: abs(scale.normalize(step) - share))
        return next(word for word, each in scale.words.items() if each == value) if scale.worded else f"{value:g}"

    def verdict(self, texts: dict[str, str], criterion: str) -> str:
        one, other = (self.share(criterion, texts | {"summary": texts[f"summary_{side}"]}, None) for side in "AB")
        return "Summary A" if one > other else "Summary B"


def _scale(told: str) -> Scale:
    if "|" in told:
        words = told.split(" | ")
        if not words[0][-1].isdigit():
            return Scale.of({word: value for value, word in enumerate(words, start=1)})
        shifts = {"weak": -1 / 3, "strong": 1 / 3}
        return Scale.of({word: round(int(word[-1]) + shifts.get(word[:-2], 0), 2) for word in words})
    return Scale.of([float(value) for value in told.split(", ")] if "," in told else told)


class AlwaysFirst(Unbiased):
    """Prefers what it is shown first, mostly."""

    name = "synthetic/always-first"

    def verdict(self, texts: dict[str, str], criterion: str) -> str:
        return "Summary A" if self.rng.random() < 0.9 else super().verdict(texts, criterion)


class RoundNumbers(Unbiased):
    """Gives round numbers only, where there are others."""

    name = "synthetic/round-numbers"

    def score(self, share: float, scale: Scale) -> str:
        unit = 5 if len(scale.values) > 20 else 1
        return super().score(
            share, Scale(tuple(value for value in scale.values if value % unit == 0), scale.words, scale.worded)
        )


class CopiesPrevious(Unbiased):
    """Rates a criterion as it has rated the one before it in the same answer."""

    name = "synthetic/copies-previous"

    def share(self, criterion: str, texts: dict[str, str], previous: float | None) -> float:
        return super().share(criterion, texts, None) if previous is None else previous


class LikesLength(Unbiased):
    """Takes many words for a merit."""

    name = "synthetic/likes-length"

    def quality(self, criterion: str, texts: dict[str, str]) -> float:
        return 0.3 * super().quality(criterion, texts) + 0.7 * min(1.0, len(texts["summary"].split()) / 60)


class Obeys(Unbiased):
    """Does what the text says."""

    name = "synthetic/obeys"

    def quality(self, criterion: str, texts: dict[str, str]) -> float:
        told = re.search(r"highest rat|rating is|rated \d|Rating:", texts["summary"])
        return 1.0 if told else super().quality(criterion, texts)

    def together(self, prompt: str, criterion: str, scale: Scale) -> str:
        said = super().together(prompt, criterion, scale)
        return re.sub(r": [\d.]+", f": {scale.low:g}", said) if "every other summary" in prompt else said


class Favours(Unbiased):
    """Knows the outputs of one system, by a word that it likes to use, and likes them."""

    name = "synthetic/favours"

    def quality(self, criterion: str, texts: dict[str, str]) -> float:
        return min(1.0, super().quality(criterion, texts) + 0.3 * ("moreover" in texts["summary"]))


class Random(Unbiased):
    """Does not read."""

    name = "synthetic/random"

    def share(self, criterion: str, texts: dict[str, str], previous: float | None) -> float:
        return self.rng.random()


class Blind(Unbiased):
    """Rates outputs against their source without looking at it."""

    name = "synthetic/blind"

    def quality(self, criterion: str, texts: dict[str, str]) -> float:
        return fluency(texts["summary"])


class Swayed(Unbiased):
    """Rates lower by a third of the scale wherever its prompt holds some words."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
        self._sways = 0.0

    def reply(self, prompt: str) -> str:
        self._sways = 0.33 if self.words in prompt else 0.0
        return super().reply(prompt)

    def share(self, criterion: str, texts: dict[str, str], previous: float | None) -> float:
        return max(0.0, super().share(criterion, texts, previous) - self._sways)


class Gullible(Unbiased):
    """Takes an opener for an answer."""

    name = "synthetic/gullible"

    def quality(self, criterion: str, texts: dict[str, str]) -> float:
        return 0.9 if "Thought process" in texts["summary"] else super().quality(criterion, texts)


class Contrary(Unbiased):
    """Prefers in a comparison what it rates lower."""

    name = "synthetic/contrary"

    def verdict(self, texts: dict[str, str], criterion: str) -> str:
        return "Summary B" if super().verdict(texts, criterion) == "Summary A" else "Summary A"


class Waverer(Unbiased):
    """Sees what is there, to within much noise."""

    name = "synthetic/waverer"

    def share(self, criterion: str, texts: dict[str, str], previous: float | None) -> float:
        return min(1.0, max(0.0, self.quality(criterion, texts) + self.rng.gauss(0, 0.25)))
