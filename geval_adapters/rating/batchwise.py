"""Several samples in one request, in rounds: each round in other company, and the rounds' mean is the rating."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from statistics import fmean

from .. import prompts
from ..criteria import Criterion
from ..errors import InputError
from ..judge.base import Judge, Reply, Usage
from ..judge.loops import PerLoop, concurrently
from ..judge.sampling import Question, Sampled, Sampling, why_unread
from ..order import InputOrder, Placed, chunks, in_prefix_order
from ..reading.combined import combine
from ..reading.distribution import Reading
from ..reading.rationale import rationale
from ..reading.several import passages, read_many
from ..recipes import Recipe
from ..samples import Sample
from .batch_prompt import BatchPrompt
from .batches import batches, shared_out
from .gathering import Gathering
from .rating import Rating
from .way import Way, merged

FAILURES = 3
"""How often a sample is asked about in vain before it is given up."""

WINDOW = 64
"""Requests at the least that a round of a window takes: what is lost where a run is killed, and still mixes well."""


_BESIDE = re.compile(
    r"\A\W*[\d.]+[^\w\n]*(?:\n|\Z)|^\W*(?:rationale|ratings?|analysis)\W*$", re.IGNORECASE | re.MULTILINE
)
"""What stands behind a label and is no reason: the rating, and the heading of what comes next."""


class Batchwise(Way):
    """Asks a judge about several samples at a time, in rounds (BatchEval, Yuan et al. 2024).

    The samples of a window (`WINDOW` requests, or four for each that may be under way at once) are put into batches
    anew for every round: at random first, then so that each batch has high and low ones by the rounds before. A sample
    whose line is missing, rated twice or out of order is asked about again in a further round; no other is concerned.
    """

    def __init__(
        self, criterion: Criterion, recipe: Recipe, judge: Judge, wordings: Sequence[prompts.Prompt], explain: bool
    ) -> None:
        super().__init__(criterion, recipe, judge, wordings, explain)
        self.together = recipe.per_request
        self.rounds = recipe.rounds or 1
        temperature = float(self.rounds > 1) if recipe.temperature is None else recipe.temperature
        self.sampling = Sampling(judge, 1, temperature, recipe.readout)
        self._gathering = PerLoop(self._new_gathering)
        self._decimals = False
        self._prompt = BatchPrompt(self.prompts[0])

    def _new_gathering(self) -> Gathering[Placed, Rating]:
        return Gathering(self._together, self._window)

    async def prepare(self) -> None:
        """Settle whether decimals are asked for: where no log-probabilities tell what lies between two steps."""
        samples = self.recipe.readout == "samples" or not await self.judge.takes("logprobs")
        self._decimals = samples and self.recipe.off_grid == "keep" and not self.criterion.scale.worded

    @property
    def prompt(self) -> BatchPrompt:
        """What the judge is told of several samples."""
        if self._prompt.one is not self.prompts[0] or self._prompt.decimals != self._decimals:
            self._prompt = BatchPrompt(self.prompts[0], self._decimals)
        return self._prompt

    def parts(self) -> dict[str, str]:
        """What a signature says of the settings, whatever comes out."""
        how = {"prompt": self.prompt.hash, "per_request": str(self.together), "rounds": str(self.rounds)}
        return super().parts() | how

    # --- what is asked ------------------------------------------------------------------------------------------------

    def questions(self, samples: Sequence[Sample]) -> list[Question]:
        """What is asked about some samples together."""
        return [_Reader(self, samples).question(self.explain)]

    def requests(self, samples: Iterable[Sample], replies: int) -> Iterator[tuple[Question, int]]:
        """All that would be asked about samples in this order: in each round they are put together anew."""
        for number, window in enumerate(chunks(in_prefix_order(samples, self.criterion), self._window)):
            items = [self._item(each) for each in window]
            for turn in range(self.rounds):
                for batch in self._batches(items, number, turn):
                    yield self.questions([item.sample for item in batch])[0], 1

    @property
    def _window(self) -> int:
        """How many samples are put together at a time; with a judge that collects questions, as many as it takes."""
        at_once = self.judge.concurrency
        return at_once if self.judge.opening else max(WINDOW, 4 * at_once) * self.together

    def _item(self, placed: Placed) -> _Item:
        prompts.check(self.criterion, placed.sample)
        if self.prompts[0].images(placed.sample):
            raise InputError("images are judged in one sample at a time: leave per_request out")
        around = prompts.surroundings(self.criterion, placed.sample)
        return _Item(placed.number, placed.sample, tuple(around.items()) or placed.number)

    def _batches(self, items: Sequence[_Item], window: int, turn: int) -> list[list[_Item]]:
        scores = {item: item.mean for item in items if item.n_valid}
        source = {item: item.source for item in items}
        return batches(items, source, scores, self.together, Random(f"{window} {turn}"))

    # --- ratings ------------------------------------------------------------------------------------------------------

    async def rated(self, sample: Sample, shares: bool = False) -> Rating:
        """The rating of one sample, together with those that are asked for at the same time.

        Alone it is a batch of its own in every round.
        """
        return await self._gathering.here().result(Placed(0, sample, shares))

    async def _together(self, placed: Sequence[Placed]) -> AsyncGenerator[tuple[int, Rating]]:
        numbered = (each._replace(number=number) for number, each in enumerate(placed))
        async with aclosing(self._windows([list(numbered)])) as ratings:
            async for each in ratings:
                yield each

    async def ratings(
        self, placed: Iterator[Placed], order: InputOrder[Sample, Rating]
    ) -> AsyncGenerator[tuple[int, Rating]]:
        """The ratings of many samples, each as soon as its last round is read; see `Way.ratings`."""
        async with aclosing(self._windows(chunks(placed, self._window, least=self.together))) as ratings:
            async for each in ratings:
                yield each

    async def _windows(self, windows: Iterable[Sequence[Placed]]) -> AsyncGenerator[tuple[int, Rating]]:
        for number, window in enumerate(windows):
            items: list[_Item] = []
            for each in window:
                try:
                    items.append(self._item(each))
                except InputError as error:
                    yield each.number, self.unrated(each.sample, str(error))
            async with aclosing(self._rated(items, number)) as done:
                async for item in done:
                    yield item.number, self._rating(item)

    async def _rated(self, items: Sequence[_Item], window: int) -> AsyncGenerator[_Item]:
        """The items of a window as they are done."""
        for turn in count():
            due = [item for item in items if not self._is_done(item)]
            if not due:
                return
            jobs = map(self._ask, self._batches(due, window, turn))
            async with aclosing(concurrently(jobs, self.sampling.width, ordered=False)) as asked:
                async for batch in asked:
                    for item in filter(self._is_done, batch):
                        yield item
            if not any(item.answered for item in due):  # nobody is there: others need not wait three rounds to hear it
                for item in due:
                    if not self._is_done(item):
                        yield item
                return

    def _is_done(self, item: _Item) -> bool:
        return item.n_valid >= self.rounds or len(item.readings) - item.n_valid >= FAILURES

    async def _ask(self, batch: list[_Item]) -> list[_Item]:
        reader = _Reader(self, [item.sample for item in batch])
        sampled = await self.sampling.ask([reader.question(self.explain)])
        [reply] = sampled.replies
        readings = reader.readings(reply, sampled.method == "logprobs")
        told = reader.rationales(reply) if self.explain or self.prompt.stop(False) is None else [""] * len(batch)
        parts = zip(batch, readings, shared_out(sampled.usage, len(batch)), told, strict=True)
        for item, reading, usage, said in parts:
            item.take(reply, reading, sampled, usage, said)
        return batch

    def _rating(self, item: _Item) -> Rating:
        combined = combine(item.readings)
        by_text = any(each.method != "logprobs" for each in item.sampled)
        method = item.sampled[-1].method if not by_text else "samples" if self.rounds > 1 else "single"
        of_all = merged(replace(item.sampled[-1], method=method), item.sampled)
        return Rating(
            sample=item.sample,
            criterion=self.criterion.name,
            normalized=None if combined.score is None else self.criterion.scale.normalize(combined.score),
            method=method,
            rationale=item.said or None,
            usage=item.usage,
            unread=tuple(item.unread),
            signature=self.sampling.signature(self.parts(), of_all),
            human=item.sample.human_score(self.criterion),
            served=of_all.served,
            **vars(combined),
        )


@dataclass(eq=False)
class _Item:
    """A sample on its way through the rounds, and what was read of it so far."""

    number: int
    sample: Sample
    source: object
    readings: list[Reading] = field(default_factory=list)
    sampled: list[Sampled] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    said: str = ""
    answered: bool = False

    @property
    def scores(self) -> list[float]:
        """What was read."""
        return [reading.score for reading in self.readings if reading.score is not None]

    @property
    def n_valid(self) -> int:
        """In how many rounds it was read."""
        return len(self.scores)

    @property
    def mean(self) -> float:
        """The mean of the rounds so far."""
        return fmean(self.scores)

    def take(self, reply: Reply, reading: Reading, sampled: Sampled, usage: Usage, said: str) -> None:
        """Add a round."""
        self.readings.append(reading)
        self.sampled.append(sampled)
        self.usage += usage
        self.answered |= reply.error is None
        if reading.score is None:
            self.unread.append((reply.text, reading.error or ""))
        else:
            self.said = self.said or said or sampled.reasoning or ""


class _Reader:
    """A question about several samples, and what its replies say of each."""

    def __init__(self, way: Batchwise, samples: Sequence[Sample]) -> None:
        self._way = way
        self._prompt = way.prompt
        self._samples = samples
        self._labels = self._prompt.labels(len(samples))
        self._shown = self._prompt.texts(samples)
        self._read: tuple[Reply, bool, list[Reading]] | None = None

    def question(self, explain: bool) -> Question:
        size = len(self._samples)
        return Question(
            messages=self._prompt.messages(self._samples),
            read=self._whole,
            start=self._prompt.start(size),
            stop=self._prompt.stop(explain),
            room=self._prompt.room(size, explain),
            about=" ".join(sample.id for sample in self._samples),
        )

    def _whole(self, reply: Reply, logprobs: bool) -> Reading:
        """The reply as one reading: it is read where every sample's rating is."""
        readings = self.readings(reply, logprobs)
        return next((each for each in readings if each.score is None), readings[0])

    def readings(self, reply: Reply, logprobs: bool) -> list[Reading]:
        """The reading of each sample."""
        if self._read is None or self._read[0] is not reply or self._read[1] != logprobs:
            found = read_many(
                reply.text,
                self._labels,
                self._way.criterion.scale,
                self._way.criterion,
                off_grid=self._way.recipe.off_grid,
                shown=self._shown,
                logprobs=(reply.logprobs or ()) if logprobs else None,
                begun=self._prompt.begins_with_rating,
                once=True,
            )
            self._read = reply, logprobs, [self._told(reply, each, logprobs) for each in found.values()]
        return self._read[2]

    def _told(self, reply: Reply, reading: Reading, logprobs: bool) -> Reading:
        error = why_unread(reply, reading, logprobs)
        return replace(reading, score=None, error=error) if error else reading

    def rationales(self, reply: Reply) -> list[str]:
        """What the reply says of each sample beside its rating."""
        said: dict[str, list[str]] = {label: [] for label in self._labels}
        for label, start, end, _ in passages(reply.text, self._labels, self._prompt.begins_with_rating):
            said[label].append(rationale(_BESIDE.sub("", reply.text[start:end])).strip(" -–—\n"))
        return ["\n".join(filter(None, each)) for each in said.values()]
