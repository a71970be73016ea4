"""Outputs whose quality is known, people who see it with noise, and judges that do: what `audit.py` draws from."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from geval_adapters.audit.ratings import Ratings

Floats = npt.NDArray[np.float64]
DOCUMENTS, SYSTEMS, ANNOTATORS = 20, 5, 3
ITEMS = DOCUMENTS * SYSTEMS
DOCUMENT_OF = [place // SYSTEMS for place in range(ITEMS)]
FIRST, SECOND = np.array(
    [(SYSTEMS * d + a, SYSTEMS * d + b) for d in range(DOCUMENTS) for a, b in combinations(range(SYSTEMS), 2)]
).T
"""All pairs of outputs of one document."""


class World(NamedTuple):
    """Outputs whose quality is known, and what people say of them."""

    rng: np.random.Generator
    quality: Floats
    characters: Floats
    system: Floats
    annotators: Floats
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
    return World(rng, quality, np.exp(6 + 0.4 * length), system, annotators, annotators.mean(axis=0), noise)


def scale(shares: Floats) -> Floats:
    """Shares as scores of a scale from 1 to 5, as shares again."""
    return np.asarray(np.clip(np.round(4 * shares), 0, 4) / 4)


def says(world: World, noise: float, quality: Floats | None = None) -> Floats:
    """A single reply to each item."""
    seen = world.quality if quality is None else quality
    return scale(seen + noise * world.rng.normal(size=ITEMS))


def ratings(world: World, kind: Kind, scores: Mapping[str, Floats], replies: Floats | None = None) -> Ratings:
    made = Ratings(DOCUMENT_OF, scores, world.people, world.noise, reliability=kind.stated, span=4.0)
    return made if replies is None else replace(made, replies={"samples": replies})


def prefers(world: World, noise: float, quality: Floats, first: Floats, second: Floats, pull: float = 0.0) -> Floats:
    """One verdict on each pair: 1 where the first wins; `pull` is the share of pairs where it does so unread."""
    seen = [quality[side] + noise * world.rng.normal(size=len(side)) for side in (first, second)]
    return np.asarray(((seen[0] > seen[1]) | (world.rng.random(len(first)) < pull)).astype(float))


def unseen(world: World) -> World:
    """The same without people's scores, for verdicts that do not hang on them: agreement with people takes the time."""
    return world._replace(people=np.full(ITEMS, np.nan))
