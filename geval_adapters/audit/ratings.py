"""Ratings of the same items in several settings, and the figures that checks take from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..agreement.coefficients import kendall, mean
from ..agreement.intervals import ANYWHERE, Figure, Floats, bootstrap
from ..agreement.judged import Item
from ..criteria import Scale
from . import measures
from .results import Statistic

MATTERS = 0.1
"""The size that matters: what moves ratings by less than a tenth of the scale does not count against a judge."""
SMALL = (-MATTERS, MATTERS)
TAU = "τ with people"
GAIN = "τ gained"
RETEST = "asked again"
MOVED = "moved beyond a retest"

UNKNOWN = (0.3, 1.0)
"""How reliable people's scores may be where nothing is known: single crowd workers come out at about .3."""

Reliability = tuple[float, float] | None


@dataclass(frozen=True)
class Ratings:
    """What a judge said of some items in some settings; all scores as shares of the scale, NaN where there is none.

    Attributes:
        documents: the document of each item.
        scores: one score an item, by setting.
        replies: replies × items, by setting, where several were averaged.
        people: people's mean scores.
        noise: `s² / k` of the scores of an item's k annotators; NaN where fewer than two are known.
        reliability: between which limits the reliability of `people` is said to lie; None where nothing is said.
        span: the length of the scale in points.
    """

    documents: Sequence[Hashable]
    scores: Mapping[str, Floats]
    people: Floats
    noise: Floats
    replies: Mapping[str, Floats] = field(default_factory=dict)
    reliability: Reliability = None
    span: float = 1.0

    @classmethod
    def of(cls, settings: Mapping[str, Sequence[Item]], scale: Scale, reliability: Reliability = None) -> Ratings:
        """From items in the same order under each setting."""
        items = next(iter(settings.values()))
        span = scale.high - scale.low

        def shares(scores: Sequence[float | None]) -> Floats:
            return np.array([np.nan if score is None else (score - scale.low) / span for score in scores])

        def table(items: Sequence[Item]) -> Floats:
            most = max((len(item.replies) for item in items), default=0)
            rows = [[*item.replies, *[None] * (most - len(item.replies))] for item in items]
            return np.array([shares(row) for row in rows]).reshape(len(items), most).T

        return cls(
            documents=documents_of(items),
            scores={name: shares([item.score for item in each]) for name, each in settings.items()},
            people=shares([item.human for item in items]),
            noise=np.array([_noise(item.annotators) / span**2 for item in items], dtype=np.float64),
            replies={name: table(each) for name, each in settings.items()},
            reliability=reliability,
            span=span,
        )

    def over(
        self,
        statistic: Callable[..., Floats],
        *columns: Floats,
        within: tuple[float, float] = ANYWHERE,
        confidence: float = 0.95,
    ) -> Figure:
        """A statistic of columns and rows of weights, over the items that have a value in all columns."""
        kept = np.flatnonzero(~np.isnan(np.array(columns)).any(axis=0)).tolist()
        table = [column[kept] for column in columns]
        return bootstrap(
            lambda weights: statistic(*table, weights),
            [self.documents[item] for item in kept],
            within=within,
            confidence=confidence,
        )

    def beside_people(
        self, statistic: Callable[..., Floats], scores: Floats, *columns: Floats, confidence: float = 0.95
    ) -> tuple[Figure, str]:
        """A statistic that people's noise distorts, and what was assumed of that noise.

        The statistic takes the judge's scores, people's, the columns, how much of the variance of people's scores is
        noise, and rows of weights. With several annotators for an item the noise is theirs, resampled with the items;
        else the interval holds those for all reliabilities within the limits.
        """
        known = ~np.isnan(self.noise)

        def at(reliability: float | None) -> Figure:
            noise = np.where(known, self.noise, np.inf)  # not NaN: an item is not left out for lack of it

            def value(judge: Floats, people: Floats, *others: Floats) -> Floats:
                *rest, variance, weights = others
                variance = np.where(np.isinf(variance), np.nan, variance)
                share = measures.noise_of_people(variance, people, reliability, weights)
                return statistic(judge, people, *rest, share, weights)

            return self.over(value, scores, self.people, *columns, noise, confidence=confidence)

        if self.reliability is None and known.sum() >= max(10, 0.2 * (~np.isnan(self.people)).sum()):
            return at(None), "the noise in people's scores is taken from their differences"
        least, most = self.reliability or UNKNOWN
        figures = [at(each) for each in np.linspace(least, most, 5 if most > least else 1)]
        middle = figures[len(figures) // 2]
        said = "said to be" if self.reliability else "not known, and taken to be anywhere in"
        given = f"{least:g} to {most:g}" if most > least else f"{least:g}"
        assumed = f"the reliability of people's scores is {said} {given}"
        if middle.low is None or middle.high is None:
            return middle, assumed
        lows = [each.low for each in figures if each.low is not None]
        highs = [each.high for each in figures if each.high is not None]
        if len(lows) < len(figures):
            why_not = "no interval: at the lower limit people's scores would be mostly noise"
            return replace(middle, low=None, high=None, method="", why_not=why_not), assumed
        return replace(middle, low=min(lows), high=max(highs)), assumed

    def changes(
        self, base: str, papers: Mapping[str, str], tolerated: tuple[float, float] | None = SMALL
    ) -> list[Statistic]:
        """How far some settings move ratings beside a base setting that was asked again.

        Each with a shift and what exceeds a retest. As many as there are would be found by chance, so each interval is
        wider (Bonferroni).

        Args:
            base: the setting that they are compared with.
            papers: what a paper found, by setting.
            tolerated: by how much a setting may move ratings; None where nothing counts.
        """
        before, again = self.scores[base], self.scores[RETEST]
        confidence = 1 - 0.05 / (2 * len(papers))
        made = []
        for name, paper in papers.items():
            shift = self.over(measures.shift, before, self.scores[name], confidence=confidence)
            moved = self.over(measures.moved, before, again, self.scores[name], confidence=confidence)
            most = (-1.0, tolerated[1]) if tolerated else None
            made += [Statistic(name, "shift", shift, tolerated, paper), Statistic(name, MOVED, moved, most)]
        retest = self.over(lambda a, b, weights: mean(np.abs(b - a), weights), before, again)
        return [*made, Statistic(RETEST, "mean difference", retest)]

    def gains(self, base: str, papers: Mapping[str, str]) -> list[Statistic]:
        """How well some settings agree with people beside a base setting, allowing for their number (Bonferroni)."""
        confidence = 1 - 0.05 / len(papers)
        made = [Statistic(base, TAU, self.over(kendall, self.scores[base], self.people, within=(-1, 1)))]
        for name, paper in papers.items():
            after = self.scores[name]
            made.append(Statistic(name, TAU, self.over(kendall, after, self.people, within=(-1, 1))))
            gained = self.over(measures.gain, self.people, after, self.scores[base], confidence=confidence)
            made.append(Statistic(name, GAIN, gained, None, paper))
        return made


def documents_of(items: Sequence[Item]) -> list[Hashable]:
    """The document of each item; an item without one stands for itself."""
    return [item.document or item.id for item in items]


def _noise(annotators: Sequence[float]) -> float:
    return float(np.var(annotators, ddof=1)) / len(annotators) if len(annotators) > 1 else float("nan")
