"""How often `geval audit` accuses judges that are not at fault, and how often it finds faults that were planted.

Run `python benchmarks/audit.py [--audits 1000] [--only length]`. Each audit is of 20 documents × 5 systems with three
annotators. Nobody is asked: scores are drawn, and the figures and verdicts are those of the checks' own `conclude`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the arrays are small: more threads only wait for each other

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from geval_adapters import load_criteria
from geval_adapters.agreement.intervals import bootstrap
from geval_adapters.audit import ratings as own_ratings
from geval_adapters.audit.checks import (
    dress,
    empty,
    facts,
    inconsistency,
    labels,
    length,
    persona,
    reference,
    rubric,
    self_preference,
    source,
    steps,
    temperature,
)
from geval_adapters.audit.ratings import GAIN, RETEST, Ratings
from geval_adapters.audit.results import Check

Floats = npt.NDArray[np.float64]
DOCUMENTS, SYSTEMS, ANNOTATORS = 20, 5, 3
ITEMS = DOCUMENTS * SYSTEMS
CONSISTENCY = load_criteria()["summeval/consistency"]
FINE = ("ok", "unclear", "measured", "not measurable")


class World(NamedTuple):
    """Outputs whose quality is known, and what people say of them."""

    rng: np.random.Generator
    quality: Floats
    characters: Floats
    system: Floats
    people: Floats
    noise: Floats


@dataclass(frozen=True)
class Kind:
    """How a world is made.

    Attributes:
        reliability: of the mean of people's scores.
        r_length: between length and quality.
        spread: standard deviation of the systems' quality beside that of their outputs.
        one_score: the share of items that have the highest score.
        known: whether the annotators' single scores are there.
        stated: what is said of people's reliability where they are not.
    """

    reliability: float = 0.9
    r_length: float = 0.0
    spread: float = 0.3
    one_score: float = 0.0
    known: bool = True
    stated: tuple[float, float] | None = None


def world(rng: np.random.Generator, kind: Kind) -> World:
    """One draw: quality as a share of the scale, lengths, systems, and the mean and noise of three annotators."""
    system = np.tile(np.arange(SYSTEMS), DOCUMENTS).astype(float)
    document = np.repeat(np.arange(DOCUMENTS), SYSTEMS)
    levels = kind.spread * rng.permutation(np.linspace(-1.5, 1.5, SYSTEMS))
    raw = levels[system.astype(int)] + 0.4 * rng.normal(size=DOCUMENTS)[document] + 0.9 * rng.normal(size=ITEMS)
    z = raw / np.sqrt(kind.spread**2 * 1.25 + 0.97)
    length = kind.r_length * z + np.sqrt(1 - kind.r_length**2) * rng.normal(size=ITEMS)
    quality = 0.5 + 0.18 * z
    if kind.one_score:
        high = np.arange(ITEMS) < kind.one_score * ITEMS
        quality = np.where(rng.permutation(high), 1.0, rng.uniform(0, 0.75, ITEMS))
    error = 0.18 * np.sqrt(ANNOTATORS * (1 / kind.reliability - 1))
    annotators = quality + error * rng.normal(size=(ANNOTATORS, ITEMS))
    if kind.one_score:
        annotators = scale(annotators)
    noise = annotators.var(axis=0, ddof=1) / ANNOTATORS if kind.known else np.full(ITEMS, np.nan)
    return World(rng, quality, np.exp(6 + 0.4 * length), system, annotators.mean(axis=0), noise)


def scale(shares: Floats) -> Floats:
    """Shares as scores of a scale from 1 to 5, as shares again."""
    return np.asarray(np.clip(np.round(4 * shares), 0, 4) / 4)


def says(world: World, noise: float, quality: Floats | None = None) -> Floats:
    """A single reply to each item."""
    seen = world.quality if quality is None else quality
    return scale(seen + noise * world.rng.normal(size=ITEMS))


def ratings(world: World, kind: Kind, scores: Mapping[str, Floats], replies: Floats | None = None) -> Ratings:
    documents = np.repeat(np.arange(DOCUMENTS), SYSTEMS).tolist()
    made = Ratings(documents, scores, world.people, world.noise, reliability=kind.stated, span=4.0)
    return made if replies is None else replace(made, replies={"samples": replies})


# --- audits of one check; `fault` plants a bias of its stated size ----------------------------------------------------


def length_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    x = np.log(world.characters)
    liked = 0.25 * (x - x.mean()) / x.std() if fault else 0.0
    own = ratings(world, kind, {length.BASE: says(world, noise, world.quality + liked)})
    return length.conclude(own, world.characters)


def self_preference_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    liked = 0.5 * (world.system == 0) if fault else 0.0
    own = ratings(world, kind, {self_preference.BASE: says(world, noise, world.quality + liked)})
    return self_preference.conclude(own, world.system, [f"system {k}" for k in range(SYSTEMS)])


def source_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    lost = world.quality if fault else np.full(ITEMS, 0.5)
    wrong = world.quality if fault else np.full(ITEMS, 0.1)
    scores = {source.BASE: None, RETEST: None, source.WITHOUT: lost, source.ANOTHER: wrong}
    return source.conclude(
        ratings(world, kind, {name: says(world, noise, seen) for name, seen in scores.items()}), CONSISTENCY
    )


def settings_audit(
    base: str, names: list[str], conclude: Callable[[Ratings], Check], averaged: int = 1
) -> Callable[[World, Kind, float, bool], Check]:
    """Settings of which one moves ratings down by a third of the scale where a fault is planted."""

    def audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
        scores = {base: says(world, noise), RETEST: says(world, noise)}
        for place, name in enumerate(names):
            moved = world.quality - (0.33 if fault and place == 0 else 0.0)
            each = [says(world, noise, moved) for _ in range(averaged if "temperature" in name else 1)]
            scores[name] = np.mean(each, axis=0)
        return conclude(ratings(world, kind, scores))

    return audit


def inconsistency_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """Two neighbouring scores, and replies that agree in nine of ten pairs; a fault is every third reply at random."""
    base = np.where(world.quality == 1, 1.0, 0.75)
    replies = np.array([base] * inconsistency.REPLIES)
    other = world.rng.random(replies.shape) < (0.35 if fault else 0.05)
    replies = np.where(
        other, world.rng.integers(0, 5, replies.shape) / 4 if fault else np.where(replies == 1, 0.75, 1.0), replies
    )
    return inconsistency.conclude(ratings(world, kind, {"alone": base}, replies), CONSISTENCY)


def dress_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    names = ["model's name", "verified badge", "Markdown"]
    seen = {name: world.quality - (0.33 if fault and name == names[1] else 0.0) for name in names}
    scores = {dress.BARE: says(world, noise)} | {name: says(world, noise, each) for name, each in seen.items()}
    return dress.conclude(ratings(world, kind, scores), names)


def empty_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    names = ["empty", "constant", "colon", "opener", "promise"]
    seen = {name: np.full(ITEMS, 0.6 if fault and name == "opener" else 0.0) for name in names}
    scores = {empty.HONEST: says(world, noise)} | {name: says(world, noise, each) for name, each in seen.items()}
    return empty.conclude(ratings(world, kind, scores), names, CONSISTENCY)


def facts_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    wrong = world.quality if fault else np.minimum(world.quality, 0.1)
    scores = {facts.TRUE: None, RETEST: None, facts.WRONG: wrong}
    return facts.conclude(ratings(world, kind, {name: says(world, noise, seen) for name, seen in scores.items()}))


def recipe_audit(world: World, kind: Kind, noise: float, fault: bool) -> str:
    """Nine scales that are exchangeable; with a fault (here: a winner) one of them reads without noise."""
    names = {f"scale {k}": "" for k in range(9)}
    scores = {name: says(world, 0.0 if fault and name == "scale 0" else noise) for name in names}
    own = ratings(world, kind, {"default": says(world, noise)} | scores)
    gains = [each.figure.low or 0.0 for each in own.gains("default", names) if each.name == GAIN]
    return "winner" if max(gains) > 0 else "ok"


Audit = Callable[[World, Kind, float, bool], Check | str]
PERSONAS, PLANS = ["hhh", "human_annotator"], [steps.WRITTEN, steps.STORED_STEPS]
HEATS = [
    f"{form}, temperature {each}" for form in temperature.FORMS for each in ("0", "0.5", "1")
    if f"{form}, temperature {each}" != temperature.BASE
]  # fmt: skip
SETTINGS: dict[str, Audit] = {
    "steps": settings_audit(steps.BASE, PLANS, lambda each: steps.conclude(each, CONSISTENCY)),
    "persona": settings_audit(persona.BASE, PERSONAS, persona.conclude),
    "temperature": settings_audit(temperature.BASE, HEATS, temperature.conclude, averaged=4),
    "rubric": settings_audit(rubric.UPWARD, [rubric.DOWNWARD, rubric.SHUFFLED], rubric.conclude),
    "labels": settings_audit(labels.FIGURES, list(labels.LABELS), labels.conclude),
    "reference": settings_audit(reference.HIGH, [reference.LOW], reference.conclude),
}
CHECKS: dict[str, Audit] = {
    "source": source_audit,
    "self-preference": self_preference_audit,
    "length": length_audit,
    **SETTINGS,
    "inconsistency": inconsistency_audit,
    "recipe": recipe_audit,
    "dress": dress_audit,
    "empty": empty_audit,
    "facts": facts_audit,
}
PLAIN = Kind()
KINDS: dict[str, dict[str, Kind]] = {
    "self-preference": {
        "systems far apart, reliability .9": Kind(0.9, spread=1.2),
        "systems far apart, reliability .6": Kind(0.6, spread=1.2),
        "the same, annotators not given": Kind(0.6, spread=1.2, known=False),
        "the same, said to be .5 to .7": Kind(0.6, spread=1.2, known=False, stated=(0.5, 0.7)),
    },
    "length": {
        f"r(length, quality) {r}, {words}": Kind(0.6, r_length=r, **extra)  # type: ignore[arg-type]
        for r in (0.3, 0.5)
        for words, extra in (
            ("reliability .6", {}),
            ("annotators not given", {"known": False}),
            ("said to be .5 to .7", {"known": False, "stated": (0.5, 0.7)}),
        )
    },
    "inconsistency": {
        "half share one score": Kind(one_score=0.5),
        "95 % share one score": Kind(one_score=0.95),
    },
}
NOISES: dict[str, tuple[float, ...]] = {
    "inconsistency": (0.0,),
    "length": (0.1,),
    "self-preference": (0.1,),
    "source": (0.1, 0.2),
    "steps": (0.1, 0.2, 0.25),
    "recipe": (0.2,),
}


def cells(only: Collection[str]) -> Iterator[tuple[str, str, Kind, float]]:
    for name in CHECKS:
        if name in only:
            for words, kind in KINDS.get(name, {"": PLAIN}).items():
                for noise in NOISES.get(name, (0.25,)):
                    yield name, words, kind, noise
            if name in ("steps", "source", "facts"):
                yield name, "95 % share one score", Kind(one_score=0.95), 0.2


def verdict(name: str, kind: Kind, noise: float, fault: bool, seed: int) -> str:
    """What one audit comes to."""
    check = CHECKS[name](world(np.random.default_rng(seed), kind), kind, noise, fault)
    return check if isinstance(check, str) else check.verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(CHECKS))
    options = parser.parse_args()
    own_ratings.bootstrap = partial(bootstrap, resamples=options.resamples)  # type: ignore[attr-defined]
    print("| check | data | reply noise | accused (± 2 SE) | ok | unclear | planted fault found |")
    print("| --- | --- | --: | --: | --: | --: | --: |", flush=True)
    for name, words, kind, noise in cells(options.only):
        verdicts = [verdict(name, kind, noise, False, seed) for seed in range(options.audits)]
        planted = [verdict(name, kind, noise, True, seed) not in FINE for seed in range(options.planted)]
        accused = np.mean([each not in FINE for each in verdicts])
        error = 2 * np.sqrt(max(accused, 1 / options.audits) * (1 - accused) / options.audits)
        ok, unclear = (np.mean([each == word for each in verdicts]) for word in ("ok", "unclear"))
        print(
            f"| {name} | {words} | {noise:g} | {accused:.1%} ± {error:.1%} | {ok:.0%} | {unclear:.0%}"
            f" | {np.mean(planted):.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
