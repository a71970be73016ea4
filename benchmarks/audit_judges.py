"""Judges that are audited by one check each; `fault` plants a bias of its stated size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from audit_worlds import (
    DOCUMENT_OF,
    FIRST,
    ITEMS,
    SECOND,
    SYSTEMS,
    Floats,
    Kind,
    World,
    prefers,
    ratings,
    says,
    unseen,
)

from geval_adapters import Scale, load_criteria
from geval_adapters.agreement.judged import Item
from geval_adapters.audit.checks import (
    anchoring,
    attack,
    common,
    contradiction,
    dress,
    empty,
    facts,
    familiarity,
    favour,
    granularity,
    inconsistency,
    length,
    position,
    self_preference,
    source,
)
from geval_adapters.audit.ratings import GAIN, RETEST, Ratings
from geval_adapters.audit.results import Check
from geval_adapters.ranking.outcomes import Outcome

CONSISTENCY = load_criteria()["summeval/consistency"]
FLUENCY = load_criteria()["summeval/fluency"]


def length_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    x = np.log(world.characters)
    liked = 0.25 * (x - x.mean()) / x.std() if fault else 0.0
    own = ratings(world, kind, {length.BASE: says(world, noise, world.quality + liked)})
    return length.conclude(own, world.characters)


def length_control_audit(world: World, kind: Kind, noise: float, fault: bool) -> str:
    """The verdict that the control of the check would give, did it count."""
    [control] = [each for each in length_audit(world, kind, noise, fault).statistics if each.name == length.CONTROL]
    return {"within": "ok", "beyond": "biased"}.get(replace(control, tolerated=favour.SLIGHT).verdict, "unclear")


def self_preference_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    liked = 0.5 * (world.system == 0) if fault else 0.0
    own = ratings(world, kind, {self_preference.BASE: says(world, noise, world.quality + liked)})
    return self_preference.conclude(own, world.system, [f"system {k}" for k in range(SYSTEMS)])


def source_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    lost = world.quality if fault else np.full(ITEMS, 0.5)
    wrong = world.quality if fault else np.full(ITEMS, 0.1)
    scores = {source.BASE: None, RETEST: None, source.WITHOUT: lost, source.ANOTHER: wrong}
    return source.conclude(
        ratings(unseen(world), kind, {name: says(world, noise, seen) for name, seen in scores.items()}), CONSISTENCY
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
        return conclude(ratings(unseen(world), kind, scores))

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


def order_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """A fault is a judge that takes the first unread in two pairs of five."""
    pull = 0.4 if fault else 0.0
    sides = ((FIRST, SECOND), (SECOND, FIRST))
    asked = [
        Outcome(one, other, won)
        for first, second in sides
        for one, other, won in zip(
            first.tolist(), second.tolist(), prefers(world, noise, world.quality, first, second, pull).tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return position.conclude(asked, [str(DOCUMENT_OF[place]) for place in FIRST] * 2, [], CONSISTENCY)


def contradiction_audit(what: str) -> Callable[[World, Kind, float, bool], Check]:
    """Faults: verdicts that prefer what is rated lower, or go by a circle of the systems in seven pairs of ten; or a
    judge at temperature 0, which errs as much but says the same each time (without a fault)."""

    def audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
        seen = 1 - world.quality if fault and what == "contrary" else world.quality
        forth = prefers(world, noise, seen, FIRST, SECOND)
        back = prefers(world, noise, seen, SECOND, FIRST)
        rated = [says(world, noise), says(world, noise)]
        if what == "circle" and fault:
            follows = world.rng.random(len(FIRST)) < 0.7
            round_ = (SECOND - FIRST) % SYSTEMS <= 2
            forth, back = np.where(follows, round_, forth), np.where(follows, ~round_, back)
        if what == "repeats itself":
            rated[1] = rated[0]
        scores = np.array([rated[draw][side] for draw in (0, 1) for side in (FIRST, SECOND)]).T.tolist()
        outcomes = [
            (Outcome(one, other, float(p)), Outcome(other, one, float(q)))
            for one, other, p, q in zip(FIRST.tolist(), SECOND.tolist(), forth, back, strict=True)
        ]
        return contradiction.conclude([DOCUMENT_OF[place] for place in FIRST], outcomes, scores)

    return audit


def attack_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    names = ["order", "claim", "tags", "rating", "authority", "repeat"]
    seen = {name: world.quality + (0.25 if fault and name == "order" else 0.0) for name in names}
    scores = {attack.HONEST: says(world, noise)} | {name: says(world, noise, each) for name, each in seen.items()}
    return attack.conclude(ratings(world, kind, scores), names, CONSISTENCY)


def anchoring_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """Two criteria with r .4; a fault is a second score in an answer that repeats the first in nine of ten."""
    other = 0.5 + 0.4 * (world.quality - 0.5) + 0.18 * np.sqrt(1 - 0.16) * world.rng.normal(size=ITEMS)
    if kind.one_score:
        other = world.rng.permutation(world.quality)
    single, multi = ([says(world, noise), says(world, noise, other)] for _ in range(2))
    if fault:
        multi[1] = np.where(world.rng.random(ITEMS) < 0.9, multi[0], multi[1])
    own = ratings(world, kind, {"alone": single[0]})
    return anchoring.conclude(own, ["one", "other"], single, multi, [world.people, other], np.arange(ITEMS) % 2.0)


def granularity_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """All scales; with a fault every second score is rounded to a round one."""

    def given(scale: Scale, replies: int) -> Floats:
        values = np.array(scale.values)
        seen = np.mean([world.quality + noise * world.rng.normal(size=ITEMS) for _ in range(replies)], axis=0)
        shares = (values - values[0]) / (values[-1] - values[0])
        scores = values[np.abs(shares - seen[:, None]).argmin(axis=1)]
        round_ = values[values % (5 if len(values) > 20 else 1) == 0]
        near = round_[np.abs(round_ - scores[:, None]).argmin(axis=1)]
        return np.where(fault & (world.rng.random(ITEMS) < 0.5), near, scores)

    items = {
        f"{name}, {way}": _items(unseen(world), given(scale, 1 if way == "single" else 4))
        for name, scale in common.SCALES.items()
        for way in granularity.WAYS
    }
    return granularity.conclude(common.Rated([], items, kind.stated), CONSISTENCY, "")


def familiarity_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """On the 40 outputs whose perplexity is taken at most, two of each document."""
    kept = [place for place in range(ITEMS) if place % SYSTEMS < familiarity.FAMILIAR * SYSTEMS // ITEMS]
    x = np.log(world.characters)  # stands for perplexity: it goes with quality as far as the kind says
    liked = -0.25 * (x - x.mean()) / x.std() if fault else 0.0
    rated = _items(world, 1 + 4 * says(world, noise, world.quality + liked))
    sources = np.repeat(np.exp(3 + 0.3 * world.rng.normal(size=ITEMS // SYSTEMS)), SYSTEMS)
    columns = {
        familiarity.BASE: rated, "output": _items(world, world.characters), "source": _items(world, sources)
    }  # fmt: skip
    own = {name: [items[place] for place in kept] for name, items in columns.items()}
    return familiarity.conclude(common.Rated([], own, kind.stated), CONSISTENCY)


def _items(world: World, scores: Floats) -> list[Item]:
    people, annotators = 1 + 4 * world.people, 1 + 4 * world.annotators
    known = not np.isnan(world.noise).all()
    return [
        Item(str(place), str(DOCUMENT_OF[place]), None, float(scores[place]), float(people[place]), (), "", "",
             tuple(annotators[:, place].tolist()) if known else ())
        for place in range(ITEMS)
    ]  # fmt: skip


def fluency_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """A criterion that is not about the source: without it ratings fall by a third of the scale where a fault is."""
    seen = {source.BASE: None, RETEST: None, source.WITHOUT: world.quality - (0.33 if fault else 0.0)}
    return source.conclude(
        ratings(unseen(world), kind, {name: says(world, noise, each) for name, each in seen.items()}), FLUENCY
    )


def scales_audit(world: World, kind: Kind, noise: float, fault: bool) -> Check:
    """Single ratings on two other scales, in fifths; with a fault the wider one is read as if it ended at ten."""
    binned = {"1-5": None, RETEST: None, "1-10": None, "1-100": world.quality / 10 if fault else None}
    replies = np.array([world.quality] * inconsistency.REPLIES)
    own = ratings(world, kind, {"alone": world.quality}, replies)
    scores = {name: says(world, noise, seen) for name, seen in binned.items()}
    return inconsistency.conclude(own, CONSISTENCY, ratings(world, kind, scores))
