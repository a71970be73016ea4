"""Successive halving over ways of rating, and the one that is left held against the default on documents of its own.

Jamieson & Talwalkar (2016, arXiv 1502.07943): all candidates rate a few labelled items, the better half goes on with
more, until one is left. Choosing among many on the same items flatters the one chosen; so documents that took no part
in the choice say how good it is, in a single comparison with the default.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import StatisticsError, correlation
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..agreement.intervals import FEWEST, Figure
from ..agreement.levels import agreement
from ..agreement.significance import resampling_test
from ..errors import InputError, JudgeError, StopError
from ..judge.base import Usage
from ..jury import Ballots, panel_of
from ..samples import Sample
from .candidates import Candidate

HELD_OUT = 1 / 3
"""Share of the documents, and of the budget, that is kept for the comparison with the default."""
AT_ONCE = 20
"""Items by which the candidates are measured in turn, in whole documents."""
FAILED = 0.1
"""Share of unrated items above which a candidate is out, however well the others agree."""
LEVEL = 0.05
"""How often a candidate that is no better than the default may be called so."""


@dataclass(frozen=True)
class Scored:
    """What one way of rating said of an item: the score, None where it has none, and what that costs alone."""

    score: float | None
    usage: Usage


Rate = Callable[[Candidate, Sequence[Sample]], Awaitable[Sequence[Scored]]]
"""Rates samples in one way; what it returns is in their order."""


@dataclass(frozen=True)
class Trial:
    """How far one candidate came.

    Attributes:
        rounds: in how many rounds it took part.
        items, failed: labelled items that it was asked about, and those without a score.
        r: Pearson r with people on them, all items together; None where undefined.
        usage: what rating an item takes on average: prompt and completion tokens and requests, as totals of `items`.
        down: why it could not go on, and is out; "" where it could.
    """

    candidate: Candidate
    rounds: int
    items: int
    failed: int
    r: float | None
    usage: Usage
    down: str = ""

    def per_1000(self) -> dict[str, float | None]:
        """Requests, tokens and dollars for 1,000 items."""
        items = max(1, self.items)
        tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        cost = None if self.usage.cost is None else 1000 * self.usage.cost / items
        return {"requests": 1000 * self.usage.requests / items, "tokens": 1000 * tokens / items, "cost": cost}


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    Attributes:
        criterion: what was rated.
        trials: every candidate, those that came farthest first, then by r.
        default: what all is held against.
        winner: who was left, None where the budget did not last for one.
        default_r, winner_r: Pearson r with people on the documents held out.
        gain: the winner's r less the default's there, with a 95 % interval over documents.
        better: whether the winner may be called better: p two-sided under `LEVEL`, one comparison.
        items, documents, held_out: labelled items, their documents, and those held out that were used.
        requests: what was really sent.
        stopped: what ended it early, "" if nothing did.
    """

    criterion: str
    trials: tuple[Trial, ...]
    default: Candidate
    winner: Candidate | None
    default_r: Figure | None = None
    winner_r: Figure | None = None
    gain: Figure | None = None
    p: float | None = None
    better: bool = False
    items: int = 0
    documents: int = 0
    held_out: int = 0
    requests: int = 0
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        trials = [
            {
                "candidate": each.candidate.name, "model": each.candidate.model, "rounds": each.rounds,
                "items": each.items, "failed": each.failed, "r": each.r, "per_1000": each.per_1000(),
                "down": each.down,
            }
            for each in self.trials
        ]  # fmt: skip
        given = {name: getattr(self, name) for name in ("default_r", "winner_r", "gain")}
        figures = {name: figure and asdict(figure) for name, figure in given.items()}
        winner = self.winner and {"candidate": self.winner.name, "model": self.winner.model}
        plain = ("criterion", "p", "better", "items", "documents", "held_out", "requests", "stopped")
        return {**{name: getattr(self, name) for name in plain}, "winner": winner, **figures, "trials": trials}


@dataclass(frozen=True)
class Split:
    """Labelled samples by document: those for the choice, and those held out.

    >>> split = Split.of([Sample(f"{d}, {i}", doc_id=str(d)) for d in range(12) for i in range(2)])
    >>> len(split.chosen_on), len(split.held_out)
    (6, 6)
    """

    chosen_on: Sequence[Sequence[Sample]]
    held_out: Sequence[Sequence[Sample]]

    @classmethod
    def of(cls, samples: Sequence[Sample], seed: int = 0) -> Split:
        """Hold out a third of the documents, drawn by a seed.

        Raises:
            InputError: too few documents to hold any out.
        """
        documents: dict[str, list[Sample]] = {}
        for sample in samples:
            documents.setdefault(document_of(sample), []).append(sample)
        if len(documents) < 2 * FEWEST:
            raise InputError(
                f"the labels are of {len(documents)} documents, and tuning needs {2 * FEWEST}, of which some are held"
                " out: label samples of others"
            )
        groups = list(documents.values())
        random.Random(seed).shuffle(groups)
        held = max(FEWEST, round(HELD_OUT * len(groups)))
        return cls(groups[held:], groups[:held])


@dataclass
class Tuning:
    """Finds a way of rating that agrees better with people than the default.

    A way whose judge cannot go on is out, and the others go on; without the default there is nothing to go on for.

    Args:
        criterion: its name.
        scale: its lowest and highest score.
        candidates: the default first.
        split: the labelled samples, in those for the choice and those held out.
        people: the mean of people's scores, by the sample's id.
        rate: asks the judges.
        sent: requests sent so far.
        budget: requests in all.

    Raises:
        InputError: fewer than two candidates.
    """

    criterion: str
    scale: tuple[float, float]
    candidates: Sequence[Candidate]
    split: Split
    people: Mapping[str, float]
    rate: Rate
    sent: Callable[[], int]
    budget: int
    _scores: dict[Candidate, dict[str, Scored]] = field(default_factory=dict)
    _rounds: dict[Candidate, int] = field(default_factory=dict)
    _down: dict[Candidate, JudgeError] = field(default_factory=dict)
    _winner: Candidate | None = None

    def __post_init__(self) -> None:
        if len(self.candidates) < 2:
            raise InputError("there is nothing to try beside the default")
        groups = [*self.split.chosen_on, *self.split.held_out]
        self._documents = {each.id: document_of(each) for group in groups for each in group}

    async def run(self) -> Tuned:
        """Try them; what the budget allowed for, where it ended first.

        Raises:
            JudgeError: the default's judge cannot be asked at all.
        """
        try:
            self._winner = await self._halve(list(self.candidates))
        except StopError as error:
            return self.so_far(str(error))
        if self._winner == self.candidates[0]:
            return self.so_far("")
        used, stopped = await self._hold_against(self._winner)
        return self._compared(self._winner, used) if used else self.so_far(stopped)

    def so_far(self, stopped: str) -> Tuned:
        """What is known by now; `stopped` is what ended it before the winner was held against the default."""
        trials = sorted(map(self._trial, self.candidates), key=lambda each: (each.rounds, each.r or -1.0), reverse=True)
        groups = [*self.split.held_out, *self.split.chosen_on]
        items = sum(map(len, groups))
        return Tuned(
            self.criterion, tuple(trials), self.candidates[0], self._winner, items=items, documents=len(groups),
            requests=self.sent(), stopped=stopped,
        )  # fmt: skip

    async def _halve(self, left: list[Candidate]) -> Candidate:
        """Leave one of them: rounds of about equal cost, in which the documents double while the candidates halve."""
        rounds = math.ceil(math.log2(len(left)))
        done = 0
        for number in range(1, rounds + 1):
            wanted = len(self.split.chosen_on) / 2 ** (rounds - number)
            allowed = (1 - HELD_OUT) * self.budget * number / rounds
            while done < wanted:
                chunk, done = self._chunk(self.split.chosen_on, done, self._room(left, allowed))
                if not chunk:
                    break
                for each in left:
                    await self._measure(each, chunk)
                left = [each for each in left if not self._why_down(each)]
            self._rounds.update((each, number) for each in left)
            left = sorted(left, key=self._standing, reverse=True)[: math.ceil(len(left) / 2)]
        return left[0]

    async def _hold_against(self, winner: Candidate) -> tuple[list[Sample], str]:
        """Rate documents held out by the winner and by the default, as many as the budget allows."""
        done = 0
        used: list[Sample] = []
        while done < len(self.split.held_out):
            pair = (self.candidates[0], winner)
            chunk, done = self._chunk(self.split.held_out, done, self._room(pair, self.budget))
            if not chunk:
                return used, f"{self.sent():,} of {self.budget:,} requests were sent"
            try:
                for each in pair:
                    await self._measure(each, chunk)
            except StopError as error:
                return used, str(error)
            if why := self._why_down(winner):
                return used, f"{winner.name} could not go on: {why}"
            used += chunk
        return used, ""

    def _room(self, candidates: Sequence[Candidate], allowed: float) -> int:
        """How many items the candidates can rate before so many requests are sent, and `AT_ONCE` at the most."""
        trials = list(map(self._trial, candidates))
        if not all(each.items for each in trials):
            return AT_ONCE
        an_item = sum(each.usage.requests / each.items for each in trials)
        return min(AT_ONCE, max(0, int((allowed - self.sent()) / max(an_item, 1e-9))))

    @staticmethod
    def _chunk(groups: Sequence[Sequence[Sample]], done: int, room: int) -> tuple[list[Sample], int]:
        """The samples of the next documents that there is room for, and how many documents are through then."""
        taken: list[Sample] = []
        while done < len(groups) and (not taken or len(taken) + len(groups[done]) <= room) and room:
            taken += groups[done]
            done += 1
        return taken, done

    async def _measure(self, candidate: Candidate, samples: Sequence[Sample]) -> None:
        """Rate by a candidate what it has not rated. Raises StopError where there is nothing to go on for."""
        for each in candidate.members or (candidate,):
            known = self._scores.setdefault(each, {})
            missing = [sample for sample in samples if sample.id not in known and each not in self._down]
            if not missing:
                continue
            try:
                scored = await self.rate(each, missing)
            except StopError:
                raise
            except JudgeError as error:
                if each == self.candidates[0]:
                    if not any(self._scores.values()):
                        raise
                    raise StopError(f"the default could not go on: {error}") from None
                self._down[each] = error
            else:
                known.update((sample.id, one) for sample, one in zip(missing, scored, strict=True))

    def _why_down(self, candidate: Candidate) -> str:
        """Why a candidate could not go on, "" where it could; a jury cannot without one of its judges."""
        return next((str(self._down[each]) for each in candidate.members or (candidate,) if each in self._down), "")

    def _scored(self, candidate: Candidate) -> dict[str, Scored]:
        """What a candidate said of each item; of a jury, its panel's score."""
        if not candidate.members:
            return self._scores.get(candidate, {})
        known = [self._scores.get(member, {}) for member in candidate.members]
        shared = [key for key in known[0] if all(key in member for member in known)]
        scores = np.array([[member[key].score for key in shared] for member in known], dtype=float)
        nobody = np.full(len(shared), np.nan)  # weights fitted to the people who judge the candidates would flatter it
        names = tuple(member.model or "" for member in candidate.members)
        panel = panel_of(Ballots(names, scores, [self._documents[key] for key in shared], nobody, nobody, self.scale))
        return {
            key: Scored(None if np.isnan(score) else float(score), sum((each[key].usage for each in known), Usage()))
            for key, score in zip(shared, panel.score, strict=True)
        }

    def _r(self, candidate: Candidate, samples: Sequence[Sample]) -> Figure:
        """Pearson r with people on some samples."""
        scored = self._scored(candidate)
        kept = [sample for sample in samples if sample.id in scored]
        return agreement(
            [scored[each.id].score for each in kept],
            [self.people[each.id] for each in kept],
            [document_of(each) for each in kept],
        ).dataset.pearson

    def _standing(self, candidate: Candidate) -> tuple[bool, float]:
        """By what candidates are ranked: first whether they can be relied on, then how well they agree."""
        trial = self._trial(candidate)
        return trial.failed <= FAILED * trial.items, -1.0 if trial.r is None else trial.r

    def _trial(self, candidate: Candidate) -> Trial:
        chosen = [sample for group in self.split.chosen_on for sample in group]
        scored = self._scored(candidate)
        seen = [scored[each.id] for each in chosen if each.id in scored]
        scores = [scored[each.id].score if each.id in scored else None for each in chosen]
        return Trial(
            candidate,
            self._rounds.get(candidate, 0),
            len(seen),
            sum(each.score is None for each in seen),
            _pearson(scores, [self.people[each.id] for each in chosen]),
            sum((each.usage for each in seen), Usage()),
            self._why_down(candidate),
        )

    def _compared(self, winner: Candidate, used: Sequence[Sample]) -> Tuned:
        """The winner against the default on what was held out: one comparison, so nothing is to be adjusted."""
        found = self.so_far("")
        default, own = self._scored(self.candidates[0]), self._scored(winner)
        documents = [document_of(each) for each in used]
        pair = ([own[each.id].score for each in used], [default[each.id].score for each in used])
        people = [self.people[each.id] for each in used]
        found = replace(
            found,
            default_r=self._r(self.candidates[0], used),
            winner_r=self._r(winner, used),
            held_out=len(set(documents)),
        )
        try:
            test = resampling_test(*pair, people, documents)
        except ValueError as error:
            return replace(found, gain=Figure(None, None, None, 0, why_not=str(error)))
        reach = float(stdtrit(test.documents - 1, 0.975)) * test.std_error
        method = f"t({test.documents - 1}), bootstrap over {test.documents} documents"
        gain = Figure(test.statistic, test.statistic - reach, test.statistic + reach, test.documents, method)
        better = test.p_two_sided < LEVEL and test.statistic > 0
        return replace(found, gain=gain, p=test.p_two_sided, better=better)


def document_of(sample: Sample) -> str:
    """What a sample belongs to: its document, else its source, else itself."""
    return sample.doc_id or sample.source or sample.id or sample.output


def _pearson(scores: Sequence[float | None], people: Sequence[float]) -> float | None:
    """Pearson r of the items that have a score; None where it is undefined."""
    pairs = [(score, human) for score, human in zip(scores, people, strict=True) if score is not None]
    if len(pairs) < 3:
        return None
    try:
        return correlation(*zip(*pairs, strict=True))
    except StatisticsError:  # one side is constant
        return None
