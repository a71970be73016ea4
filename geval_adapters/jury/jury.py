"""A jury as people use it in Python: several judges rate the same texts, and a panel is made of what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..criteria import Criterion
from ..errors import InputError, JudgeError
from ..judge.base import Usage
from ..judge.loops import run
from ..rating import GEval, Rating
from ..samples import Sample, SampleLike
from .jurors import Bench, bench_of
from .panel import Ballots, Panel, panel_of
from .rating import JuryRating, jury_signature, panel_rating


@dataclass(frozen=True)
class JuryRatings:
    """What a jury makes of many samples, in their order.

    Attributes:
        items: each sample's ratings and panel.
        made: how the panel was made.
        down: the judges that could not go on, and why.
        usage: what all judges cost.
    """

    items: tuple[JuryRating, ...]
    made: Panel
    down: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[JuryRating]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> JuryRating:
        return self.items[place]

    @cached_property
    def bench(self) -> Bench:
        """What is known of the judges: weights, agreement, who dissents, how many they are worth."""
        return bench_of(self.made)

    @property
    def usage(self) -> Usage:
        """What all judges cost."""
        return sum((rating.usage for each in self.items for rating in each.ratings.values()), Usage())


class Jury:
    """Several judges that rate the same texts by one criterion.

    Each judge's rating stays as it is; the panel's is their mean on a common scale (see `panel.panel_of`), weighted
    where samples carry people's scores (`human`). A judge that cannot be asked, or cannot go on, leaves a panel of the
    others: `down` says why, and each panel's rating how many judges it is of.

    Args:
        gevals: the judges, each with its own settings, all by the same criterion.

    Raises:
        InputError: fewer than two, or of different criteria.

    >>> Jury([GEval("coherence", "openai/gpt-4o-mini"), GEval("coherence", "openai/gpt-4.1")]).names
    ('openai/gpt-4o-mini', 'openai/gpt-4.1')
    """

    def __init__(self, gevals: Iterable[GEval]) -> None:
        self.gevals = tuple(gevals)
        if len(self.gevals) < 2:
            raise InputError(f"a jury has two judges or more, got {len(self.gevals)}")
        if len(keys := {geval.criterion.key for geval in self.gevals}) > 1:
            raise InputError(f"the judges of a jury rate by one criterion, got {', '.join(sorted(keys))}")
        self.names = told_apart([geval.judge.name for geval in self.gevals])

    @property
    def criterion(self) -> Criterion:
        """By which they rate."""
        return self.gevals[0].criterion

    def rate(self, output: SampleLike, **fields: str) -> JuryRating:
        """Rate one output: a single item has no common scale, so that the panel is the plain mean of the scores.

        Raises:
            InputError: the sample lacks a field that the criterion needs.
            JudgeError: no judge can be asked at all.
        """
        return run(self.arate(output, **fields))

    async def arate(self, output: SampleLike, **fields: str) -> JuryRating:
        """Rate one output; see `rate`."""
        given = await asyncio.gather(*(geval.arate(output, **fields) for geval in self.gevals), return_exceptions=True)
        rows = [[each] if isinstance(each, Rating) else [] for each in given]
        return (await self._together(rows, _down(self.names, given)))[0]

    def rate_many(self, samples: Iterable[SampleLike]) -> JuryRatings:
        """Rate samples, all judges at once, each at its own pace; the panel needs all ratings, and comes at the end.

        Raises:
            InputError: a single text was given instead of several.
            JudgeError: no judge can be asked at all.
        """
        return run(self.arate_many(samples))

    async def arate_many(self, samples: Iterable[SampleLike]) -> JuryRatings:
        """Rate samples; see `rate_many`."""
        if not isinstance(samples, (str, bytes, Sample, Mapping)):  # which each judge refuses in its own words
            samples = list(samples)
        rows: list[list[Rating]] = [[] for _ in self.gevals]

        async def ask(geval: GEval, own: list[Rating]) -> None:
            async for rating in geval.arate_many(samples):
                own.append(rating)

        ended = await asyncio.gather(*map(ask, self.gevals, rows), return_exceptions=True)
        return await self._together(rows, _down(self.names, ended))

    async def _together(self, rows: Sequence[Sequence[Rating]], down: Mapping[str, str]) -> JuryRatings:
        longest = max(rows, key=len)
        samples = [rating.sample for rating in longest]
        each = [
            {name: own[place] for name, own in zip(self.names, rows, strict=True) if place < len(own)}
            for place in range(len(samples))
        ]
        scores = [[_score(ratings.get(name)) for ratings in each] for name in self.names]
        made = panel_of(ballots(self.names, scores, samples, self.criterion))
        expected = {}
        for name, geval in zip(self.names, self.gevals, strict=True):
            expected[name] = geval.way.expected()
        signature = jury_signature(self.criterion, expected, made)
        items = []
        for place, (sample, ratings) in enumerate(zip(samples, each, strict=True)):
            why = {**down, **{name: rating.error for name, rating in ratings.items() if rating.error}}
            items.append(JuryRating(ratings, panel_rating(sample, self.criterion, made, place, signature, why)))
        return JuryRatings(tuple(items), made, down)


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names of judges, those that stand there again with a number.

    >>> told_apart(["a", "b", "a"])
    ('a', 'b', 'a (2)')
    """
    return tuple(
        name if name not in names[:place] else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    )


def ballots(
    judges: Sequence[str],
    scores: Any,
    samples: Iterable[Sample],
    criterion: Criterion,
    labels: Mapping[str, Sequence[float]] | None = None,
) -> Ballots:
    """What judges said of samples, with people's scores of them.

    Args:
        judges: their names.
        scores: judges by samples, NaN where there is none.
        samples: in the order of the scores.
        criterion: whose people's scores are taken.
        labels: people's scores by the sample's id, instead of those that came with the samples.
    """
    documents: list[Hashable] = []
    people, noise = [], []
    for place, sample in enumerate(samples):
        documents.append(("", place) if sample.doc_id is None else sample.doc_id)
        single: Sequence[float] = sample.annotators_of(criterion) if labels is None else labels.get(sample.id, ())
        told = sample.human_score(criterion) if labels is None else (float(np.mean(single)) if single else None)
        people.append(np.nan if told is None else told)
        noise.append(float(np.var(single, ddof=1)) / len(single) if len(single) > 1 else np.nan)
    given = np.asarray(scores, dtype=np.float64).reshape(len(judges), len(documents))
    ends = (criterion.scale.low, criterion.scale.high)
    return Ballots(tuple(judges), given, documents, np.array(people, dtype=float), np.array(noise, dtype=float), ends)


def _score(rating: Rating | None) -> float:
    return np.nan if rating is None or rating.score is None else rating.score


def _down(names: Sequence[str], ended: Sequence[object]) -> dict[str, str]:
    """The judges that could not go on, and why; where all are, the first one's error is raised, and any other error."""
    for each in ended:
        if isinstance(each, BaseException) and not isinstance(each, JudgeError):
            raise each
    down = {name: each for name, each in zip(names, ended, strict=True) if isinstance(each, JudgeError)}
    if len(down) == len(names):
        raise next(iter(down.values()))
    return {name: str(error).removeprefix(f"{name}: ") for name, error in down.items()}
