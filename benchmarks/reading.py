"""How well replies are read: a corpus of them, drawn from grammars of how judges write, each with its right reading.

    python benchmarks/reading.py [--draws 450] [--seed 0] [--file fixed_first] [--show 5]

The grammars lie in `replies/*.yaml`; those in `fixed_first.yaml` were fixed before the present reader was written. A
class is a set of templates: `{a|b}` is a choice, `{name}` one of the slots of `_slots`. `right` is the reading: v (the
default), half (v + ½), none, verdict (the label {W}), tie, or "no verdict". A reply to be read may be dressed in noise.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from geval_adapters import Scale, read_text, read_verdict
from geval_adapters.reading import FORMS, Reading

HERE = Path(__file__).parent / "replies"
SCALES = ("1-5", "1-5", "1-10", "0-10", "1-3", "0-1", "1-100")
THIRDS = {f"{m}{v}": v + s for v in range(1, 6) for m, s in (("weak ", -1 / 3), ("", 0.0), ("strong ", 1 / 3))}
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LABELS = ("Rating", "Score", "Overall rating", "Final score", "My rating", "Overall score", "Final rating")
WHY = (
    "The summary covers 3 of the 5 main points.", "Two sentences lack a subject.", "It names 2 towns and 4 people.",
    "The second sentence repeats the first.", "Most of the text is easy to follow.", "There are a few gaps.",
    "It says that 12 people were hurt in 1998.", "The order of events is kept.", "One of the names is misspelled.",
    "It is not clear who is speaking.", "A reader would understand it at once.", "It ends abruptly after line 3.",
    "The writing is plain, and nothing is missing.", "Some links between the sentences are weak.",
    "About 40% of the source is left out.", "Nothing in it contradicts the source.", "It reads well overall.",
    "The topic changes twice, without any transition.", "It is good but not excellent.",
)  # fmt: skip
NOISE = (
    "{}", "{}", "{}", "{}", "{}\n", "  {}", "\n\n{}", "{}\n\n", "<think>\n\n</think>\n\n{}",
    "<think>Let me see. {why}\nRating: {o}? Or {o2}?</think>\n\n{}", "{why} Hmm, {o} or {o2}.\n</think>\n\n{}",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One reply: how it was asked for, what it says, and what a person reads in it (None where nothing)."""

    kind: str
    form: str
    scale: Scale
    reply: str
    right: float | None
    shown: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def read(self) -> Reading:
        """What the package reads in it."""
        if self.labels:
            other = {} if self.labels == ("A", "B") else {"labels": self.labels}
            return read_verdict(self.reply, shown=self.shown, **other)
        form = self.form if self.form in FORMS else "score_only"
        return read_text(self.reply, self.scale, form, "coherence", shown=self.shown)

    def outcome(self) -> str:
        """`read`, `unread` or `wrong`: another reading than the right one, or one where there is none."""
        score = self.read().score
        if score is None:
            return "read" if self.right is None else "unread"
        return "read" if self.right is not None and abs(score - self.right) < 0.006 else "wrong"


def corpus(draws: int = 450, seed: int = 0, files: tuple[str, ...] = ()) -> Iterator[Case]:
    """`draws` replies of each class; the same for the same seed.

    >>> len(list(corpus(1))) == len({case.kind for case in corpus(1)})
    True
    """
    for file in sorted(HERE.glob("*.yaml")):
        if files and file.stem not in files:
            continue
        for kind, entry in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            rng = random.Random(f"{seed} {kind}")
            for _ in range(draws):
                yield _draw(kind, entry, rng)


def _draw(kind: str, entry: dict[str, Any], rng: random.Random) -> Case:
    name = rng.choice(entry.get("scales") or SCALES)
    scale = Scale.of(THIRDS) if name == "thirds" else Scale.of(name)
    labels = rng.choice(entry.get("labels") or [["A", "B"]])
    slots = _slots(scale, labels, rng)
    right = entry.get("right", "v")
    while right == "half" and float(slots["v"]) == scale.high:
        slots = _slots(scale, labels, rng)
    shown = _fill(entry["shown"], slots, rng) if "shown" in entry else ""
    reply = _fill(rng.choice(entry["templates"]), slots | {"shown": shown}, rng)
    if entry.get("noise", True) and right not in ("none", "no verdict"):
        reply = _fill(rng.choice(NOISE), slots, rng).replace("\0", reply)
    score: float | None = {"tie": 0.5, "none": None, "no verdict": None}.get(right)
    if right == "half":
        score = float(slots["v"]) + 0.5
    if right == "v":
        score = scale.words[slots["v"]] if scale.worded else float(slots["v"])
    if right == "verdict":
        score = float(slots["W"] == labels[0])
    compares = right in ("verdict", "tie", "no verdict")
    form = rng.choice([entry["form"]] if "form" in entry else entry.get("forms") or FORMS)
    return Case(kind, form, scale, reply, score, (shown,) if shown else (), tuple(labels) if compares else ())


def _slots(scale: Scale, labels: list[str], rng: random.Random) -> dict[str, str]:
    """What stands for {v} and its like in one reply."""
    steps = list(scale.words) if scale.worded else [f"{value:g}" for value in scale.values]
    v = rng.choice(steps)
    o = rng.choice([step for step in steps if step != v])
    o2 = rng.choice([step for step in steps if step not in (v, o)] or [v])
    win = rng.choice(labels[:2])
    word = WORDS[int(float(v))] if not scale.worded and float(v) <= 10 else v
    top = WORDS[int(scale.high)] if scale.high <= 10 else f"{scale.high:g}"
    whole = not scale.worded and scale.high <= 10
    return {
        "": "\0", "v": v, "o": o, "o2": o2, "hi": f"{scale.high:g}", "lo": f"{scale.low:g}", "w": word,
        "W": win, "L": labels[0] if win == labels[1] else labels[1],
        "word": word.capitalize(), "hiw": top, "cnt": str(rng.randint(2, 9)),
        "fw": _in_digits(v, "０"), "ar": _in_digits(v, "٠"), "hd": _in_digits(v, "०"),
        "stars": "★" * int(float(v)) + "☆" * int(scale.high - float(v)) if whole else "",
        "lb": "\1", "rb": "\2", "bar": "\3", "nl": "\n", "crit": "coherence", "Crit": "Coherence",
    }  # fmt: skip


def _in_digits(number: str, zero: str) -> str:
    return "".join(chr(ord(zero) + int(c)) if c.isdigit() else c for c in number)


def _fill(template: str, slots: dict[str, str], rng: random.Random) -> str:
    def choose(match: re.Match[str]) -> str:
        inner = match[1]
        if "|" in inner:
            return rng.choice(inner.split("|"))
        if inner in slots:
            return slots[inner]
        reason = rng.choice(WHY)
        drawn = {
            "Label": rng.choice(LABELS), "Because": rng.choice(("Rationale", "Explanation", "Reason")),
            "why": reason, "whyl": reason[0].lower() + reason[1:], "whyj": json.dumps(reason)[1:-1],
        }  # fmt: skip
        return drawn[inner]

    while (filled := re.sub(r"\{([^{}]*)\}", choose, template)) != template:
        template = filled
    return template.replace("\1", "{").replace("\2", "}").replace("\3", "|")


def main() -> None:
    """Read the corpus and print a table by class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=450)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", action="append", default=[], help="only the grammars of this file (repeatable)")
    parser.add_argument("--show", type=int, default=0, help="print so many misread replies of each class")
    options = parser.parse_args()
    cases = list(corpus(options.draws, options.seed, tuple(options.file)))
    began = time.process_time()
    outcomes = [case.outcome() for case in cases]
    seconds = time.process_time() - began
    kinds: dict[str, Counter[str]] = {}
    readable: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for case, outcome in zip(cases, outcomes, strict=True):
        kinds.setdefault(case.kind, Counter())[outcome] += 1
        readable[case.kind] += case.right is not None
        if outcome != "read" and shown[case.kind] < options.show:
            shown[case.kind] += 1
            read = case.read()
            print(f"{case.kind}: {outcome} ({case.form}, {case.scale}): {case.reply!r} right {case.right}", end=" ")
            print(read.error if read.score is None else read.score)
    print("| replies | n | unread % | wrong % |\n| --- | ---: | ---: | ---: |")
    for kind, counts in kinds.items():
        _line(kind, counts, readable[kind])
    _line("**all**", sum(kinds.values(), Counter()), sum(readable.values()))
    print(f"\n{len(cases) / seconds:,.0f} replies per second")


def _line(name: str, counts: Counter[str], readable: int) -> None:
    n = sum(counts.values())
    unread = f"{100 * counts['unread'] / readable:.2f}" if readable else "–"
    print(f"| {name} | {n:,} | {unread} | {100 * counts['wrong'] / n:.3f} |")


if __name__ == "__main__":
    main()
