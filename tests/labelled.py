"""Ratings and labels of a world whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SIGNATURE = "model:openai/gpt-4o-mini|criterion:coherence@{}|n:1"


def world(documents: int = 100, systems: int = 3, every: int = 5, liked: float = 0.0, seed: int = 0):
    """Ratings and labels, and each system's true mean: a judge that is a point too low, and likes system 0."""
    rng = np.random.default_rng(seed)
    ratings, labels, truth = [], [], [[] for _ in range(systems)]
    for document in range(documents):
        hard = rng.normal(0, 0.5)
        for system in range(systems):
            people = float(np.clip(round(3.5 - 0.5 * system + hard + rng.normal(0, 0.8)), 1, 5))
            score = float(np.clip(people - 1 + liked * (system == 0) + rng.normal(0, 0.4), 1, 5))
            truth[system].append(people)
            identity = f"{document}/{system}"
            ratings.append(rating(identity, score, doc_id=str(document), system_id=f"s{system}"))
            if rng.random() < 1 / every:
                labels.append(label(identity, people, probability=1 / every))
    return ratings, labels, [float(np.mean(scores)) for scores in truth]


def rating(identity: str, score: float | None, **more: object) -> dict:
    row = {"id": identity, "criterion": "coherence", "score": score, "distribution": {}, "error": None}
    return row | {"signature": SIGNATURE.format("abc"), "output": f"text {identity}", "n_failed": 0} | more


def label(identity: str, score: float | None, **more: object) -> dict:
    row = {"id": identity, "criterion": "coherence", "score": score, "annotator": "ann", "criterion_hash": "abc"}
    return row | {"skipped": "" if score is not None else "cannot tell"} | more


def write(name: str, rows: list[dict]) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name
