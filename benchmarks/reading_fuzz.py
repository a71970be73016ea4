"""Replies that nobody would write: none may raise, score off its scale, or have bounds that leave its score out.

    python benchmarks/reading_fuzz.py [--n 1000000] [--seed 0]

A third each of random text (of what rules are made of), of replies of the corpus (`reading.py`) with pieces cut,
doubled, swapped and put in, and of log-probabilities that are wrong in every way.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from typing import Any

from reading import Case, corpus

from geval_adapters import Scale, read_logprobs, read_text, read_verdict, read_verdict_logprobs
from geval_adapters.reading import FORMS, Reading

PIECES = (
    "Rating", ":", " ", "\n", "4", "5", "10", "/", "out of", "five", "not", "a", "I would give", "**", "[[", "]]", "{",
    "}", '"', '"score"', ",", ".", "1.", "-", "–", "<think>", "</think>", "★", "☆", "A", "B", "C", "is better", "than",
    "(", "worse", ")", "%", "=", "+", "评分", "满分", "分", "if", "overall", "<score>", "</score>", "\\boxed{", "|",
    "weak", "strong", "½", "1e9", "9" * 30, "٤", "４", "\0", "\ufeff", "é", "𝟜", "“", "”", "neither", "equally", "zero",
    "#", "’", "\t", "\u3000",
)  # fmt: skip
LOGPROBS: tuple[Any, ...] = (
    0.0, -0.1, -0.7, -2.3, -9.0, -9999.0, float("-inf"), float("inf"), float("nan"), 0.5, None, "x", True
)  # fmt: skip
SCALES = [Scale.of(spec) for spec in ("1-5", "0-1", "1-10", "1-100", "1-3")] + [
    Scale.of([1, 1.33, 1.67, 2]), Scale.of({"weak 3": 2.67, "3": 3, "strong 3": 3.33}), Scale.of({"bad": 1, "good": 2}),
]  # fmt: skip
EDGE = 1e-9


def mutated(text: str, rng: random.Random) -> str:
    """A text with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        place, other = rng.randint(0, len(text)), rng.randint(0, len(text))
        low, high = min(place, other), max(place, other)
        text = rng.choice((
            text[:low] + text[high:],
            text[:high] + text[low:],
            text[:place] + rng.choice(PIECES) + text[place:],
            text[low:high] + text[:low] + text[high:],
        ))[:2000]  # fmt: skip
    return text


def tokens(text: str, rng: random.Random) -> list[dict[str, Any]]:
    """A text as log-probability content, sometimes right and sometimes not."""
    content = []
    sane = rng.random() < 0.5
    while text:
        size = rng.randint(1, 4)
        piece, text = text[:size], text[size:]
        listed = [piece, *rng.choices((*PIECES, "1", "2", " 3", "4.", "10"), k=rng.randint(0, 4))]
        share = [rng.random() for _ in listed]
        entries = [
            {"token": each, "logprob": math.log(p / sum(share)) if sane else rng.choice(LOGPROBS)}
            for each, p in zip(listed, share, strict=True)
        ]
        content.append({**entries[0], "top_logprobs": rng.choice((entries, entries, entries[1:], None, []))})
    if rng.random() < 0.1 and content:
        content.pop(rng.randrange(len(content)))
    return content


def fault_of(reading: Reading, scale: Scale) -> str | None:
    """What is wrong with a reading."""
    low, high = reading.bounds
    if (reading.score is None) != bool(reading.error):
        return "a score and a reason, or neither"
    if not (scale.low - EDGE <= low <= high + EDGE and high <= scale.high + EDGE):
        return "bounds off the scale"
    if not -EDGE <= reading.coverage <= 1 + EDGE:
        return "coverage"
    if reading.distribution and abs(sum(reading.distribution.values()) - 1) > 1e-6:
        return "a distribution that does not add up"
    if reading.score is not None and not low - EDGE <= reading.score <= high + EDGE:
        return "bounds without the score"
    return None


def read_one(kind: int, cases: list[Case], rng: random.Random) -> tuple[object, Reading, Scale]:
    """One reply, what it is read as, and on which scale."""
    scale, form = rng.choice(SCALES), rng.choice(FORMS)
    case = rng.choice(cases)
    text = "".join(rng.choices(PIECES, k=rng.randint(0, 30))) if kind == 0 else mutated(case.reply, rng)
    policy = rng.choice(("keep", "floor", "reject"))
    compares = rng.random() < 0.2
    if kind == 2:
        content = tokens(text[:300], rng)
        known = rng.choice((None, None, text[:300]))
        if compares:
            return content, read_verdict_logprobs(content, text=known), Scale.of("0-1")
        return content, read_logprobs(content, scale, form, "coherence", off_grid=policy, text=known), scale
    if compares:
        return text, read_verdict(text, shown=case.shown), Scale.of("0-1")
    return text, read_text(text, scale, form, "coherence", off_grid=policy, shown=case.shown), scale


def main() -> None:
    """Read `n` of them, and say what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    cases = list(corpus(20, options.seed))
    faults: Counter[str] = Counter()
    scored, began = 0, time.monotonic()
    for number in range(options.n):
        try:
            given, reading, scale = read_one(number % 3, cases, rng)
        except Exception as error:
            faults[type(error).__name__] += 1
            print(f"{number}: {error!r}")
            continue
        scored += reading.score is not None
        if fault := fault_of(reading, scale):
            faults[fault] += 1
            if faults[fault] < 5:
                print(f"{number}: {fault}: {given!r:.300} {scale} {reading}")
    seconds = time.monotonic() - began
    print(
        f"{options.n:,} replies, {scored:,} with a score, {sum(faults.values())} faults {dict(faults)}, {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
