"""What batch rating does to agreement, for judges whose faults are planted: a simulation that needs no model.

    uv run python benchmarks/batch_rating.py

A hundred sources with 16 texts each; a text's quality is its source's part plus its own. A judge says quality plus
noise, in whole numbers where it rates one text, with one decimal where it rates ten. In a batch it may also be in a
mood (a shift of all its scores), rate against the batch's mean (contrast), and grow stricter from line to line (drift).
Printed: Pearson's r over all texts and the mean of Kendall's τ-b within sources, with the standard error over worlds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from geval_adapters.rating.batches import batches

SOURCES, EACH, SIZE, ROUNDS, WORLDS = 100, 16, 10, 5, 20
NOISE = 0.8
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Items = Sequence[int]


class Judge(NamedTuple):
    """How much of each fault a judge has, in points of a scale of 1–5."""

    mood: float = 0.0
    contrast: float = 0.0
    drift: float = 0.0


JUDGES = {
    "no fault": Judge(),
    "moods": Judge(mood=0.5),
    "contrast": Judge(contrast=0.5),
    "drift": Judge(drift=1.0),
    "all three": Judge(0.5, 0.5, 1.0),
}


def mixed(source: dict[int, int], scores: dict[int, float], rng: random.Random) -> list[list[int]]:
    """As the package has it."""
    return batches(range(len(source)), source, scores, SIZE, rng)


def one_source(source: dict[int, int], scores: dict[int, float], rng: random.Random) -> list[list[int]]:
    """Each batch of one source, the cheapest."""
    parts = [[item for item in source if source[item] == each] for each in range(SOURCES)]
    return [batch for part in parts for batch in batches(part, source, scores, SIZE, rng)]


def at_random(source: dict[int, int], scores: dict[int, float], rng: random.Random) -> list[list[int]]:
    """Any ten, whatever was said of them before."""
    items = rng.sample(range(len(source)), len(source))
    return [items[first : first + SIZE] for first in range(0, len(items), SIZE)]


def alike(source: dict[int, int], scores: dict[int, float], rng: random.Random) -> list[list[int]]:
    """Those of like scores together: the homogeneous batches of the paper."""
    items = rng.sample(range(len(source)), len(source))
    items.sort(key=lambda item: scores.get(item, 0.0))
    made = [items[first : first + SIZE] for first in range(0, len(items), SIZE)]
    return [rng.sample(batch, len(batch)) for batch in made]


def in_file_order(source: dict[int, int], scores: dict[int, float], rng: random.Random) -> list[list[int]]:
    """The same ten in the same order in every round."""
    items = sorted(source, key=lambda item: (item % EACH, item))
    return [items[first : first + SIZE] for first in range(0, len(items), SIZE)]


Forming = Callable[[dict[int, int], dict[int, float], random.Random], list[list[int]]]
WAYS: dict[str, tuple[Forming, int]] = {
    "batch, 1 round": (mixed, 1),
    f"batch, {ROUNDS} rounds": (mixed, ROUNDS),
    "… of one source each": (one_source, ROUNDS),
    "… at random": (at_random, ROUNDS),
    "… of like scores": (alike, ROUNDS),
    "… never put together anew": (in_file_order, ROUNDS),
}


def rated(judge: Judge, quality: Floats, source: dict[int, int], form: Forming, rounds: int, seed: int) -> Floats:
    """The mean of some rounds."""
    dice, rng = np.random.default_rng(seed), random.Random(seed)
    said = np.zeros((rounds, len(quality)))
    for turn in range(rounds):
        scores = dict(enumerate(said[:turn].mean(axis=0).tolist())) if turn else {}
        for batch in form(source, scores, rng):
            own = quality[batch]
            line = np.linspace(0.5, -0.5, len(batch)) if len(batch) > 1 else np.zeros(1)
            shift = dice.normal(0, judge.mood) - judge.contrast * (own.mean() - quality.mean()) + judge.drift * line
            said[turn, batch] = np.clip(own + shift + dice.normal(0, NOISE, len(batch)), 1, 5).round(1)
    return np.asarray(said.mean(axis=0))


def single(quality: Floats, replies: int, seed: int) -> Floats:
    """The mean of some replies about one text each, in whole numbers."""
    noise = np.random.default_rng(seed).normal(0, NOISE, (replies, len(quality)))
    return np.asarray(np.clip(quality + noise, 1, 5).round().mean(axis=0))


def agreement(scores: Floats, quality: Floats) -> tuple[float, float]:
    """Pearson's r over all, and Kendall's τ-b within sources."""
    one, other = signs(scores), signs(quality)
    ties = np.sqrt((one**2).sum(axis=(1, 2)) * (other**2).sum(axis=(1, 2)))
    within = (one * other).sum(axis=(1, 2)) / np.where(ties > 0, ties, np.nan)
    return float(np.corrcoef(scores, quality)[0, 1]), float(np.nanmean(within))


def signs(values: Floats) -> Floats:
    """For each source, which of two texts is the higher."""
    rows = values.reshape(SOURCES, EACH)
    return np.asarray(np.sign(rows[:, :, None] - rows[:, None, :]))


def shown(figures: list[tuple[float, float]]) -> str:
    """The means over worlds with their standard errors, without the leading zeros."""
    columns = np.array(figures)
    error = columns.std(axis=0, ddof=1) / len(columns) ** 0.5
    return "  ".join(f"{m:.3f} ± {e:.3f}".replace("0.", ".") for m, e in zip(columns.mean(axis=0), error, strict=True))


def main() -> None:
    source = {item: item // EACH for item in range(SOURCES * EACH)}
    worlds = []
    for world in range(WORLDS):
        dice = np.random.default_rng(world)
        worlds.append(
            np.clip(3 + np.repeat(dice.normal(0, 0.5, SOURCES), EACH) + dice.normal(0, 0.7, len(source)), 1, 5)
        )
    print(f"| {'judge':10} | {'way':26} | {'r over all':14} {'τ within sources':16} |\n| --- | --- | --- |")
    for replies in (1, 20):
        figures = [agreement(single(quality, replies, seed), quality) for seed, quality in enumerate(worlds)]
        print(f"| {'any':10} | {f'single, {replies} replies':26} | {shown(figures)} |")
    for name, judge in JUDGES.items():
        for way, (form, rounds) in WAYS.items():
            figures = [
                agreement(rated(judge, quality, source, form, rounds, seed), quality)
                for seed, quality in enumerate(worlds)
            ]
            print(f"| {name:10} | {way:26} | {shown(figures)} |", flush=True)


if __name__ == "__main__":
    main()
