"""Each sample asked about on its own: its questions, how their replies are read, and the rating that comes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from .. import prompts
from ..criteria import Criterion
from ..errors import InputError
from ..judge.base import Judge, Reply
from ..judge.sampling import Question, Sampled, Sampling
from ..order import in_prefix_order
from ..reading.distribution import Reading
from ..reading.rationale import rationale
from ..reading.text import read_text
from ..reading.tokens import read_logprobs
from ..recipes import Recipe
from ..samples import Sample
from .rating import Rating
from .way import Way


class Pointwise(Way):
    """Asks a judge about one sample at a time (Liu et al. 2023); several forms share the replies."""

    def __init__(
        self, criterion: Criterion, recipe: Recipe, judge: Judge, wordings: Sequence[prompts.Prompt], explain: bool
    ) -> None:
        super().__init__(criterion, recipe, judge, wordings, explain)
        self.sampling = Sampling(
            judge, recipe.n, recipe.temperature, recipe.readout, recipe.sequential(criterion.scale), len(self.prompts)
        )

    async def rated(self, sample: Sample, shares: bool = False) -> Rating:
        """The rating of one sample; `shares` says that others which are asked about near it have its source."""
        try:
            questions = self._questions(sample, shares)
        except InputError as error:
            return self.unrated(sample, str(error))
        return self._rating(sample, await self.sampling.ask(questions))

    def questions(self, samples: Sequence[Sample]) -> list[Question]:
        """What is asked about some samples, in each form."""
        return [question for sample in samples for question in self._questions(sample, shares=False)]

    def requests(self, samples: Iterable[Sample], replies: int) -> Iterator[tuple[Question, int]]:
        """All that would be asked about samples in this order, each with how many of the replies it is to give."""
        for _, sample, _ in in_prefix_order(samples, self.criterion):
            for index, question in enumerate(self._questions(sample, shares=False)):
                yield question, replies // len(self.prompts) + (index < replies % len(self.prompts))

    def _questions(self, sample: Sample, shares: bool) -> list[Question]:
        return [
            Question(
                messages=prompt.messages(sample),
                read=partial(self._reading, prompt, sample),
                start=prompt.start,
                stop=prompt.stop(self.explain),
                room=prompt.room(self.explain),
                shared=prompt.shared(sample) if shares and self.judge.caches_what_is_marked else 0,
                about=sample.id,
                schema=prompt.schema(),
            )
            for prompt in self.prompts
        ]

    def _reading(self, prompt: prompts.Prompt, sample: Sample, reply: Reply, logprobs: bool) -> Reading:
        shown = prompt.texts(sample)  # which most replies are too short to repeat
        asked = (self.criterion.scale, prompt.form, self.criterion)
        policy = self.recipe.off_grid
        if logprobs:
            return read_logprobs(reply.logprobs or (), *asked, off_grid=policy, shown=shown, text=reply.text)
        return read_text(reply.text, *asked, off_grid=policy, shown=shown)

    def _rating(self, sample: Sample, sampled: Sampled) -> Rating:
        score = sampled.combined.score
        return Rating(
            sample=sample,
            criterion=self.criterion.name,
            normalized=None if score is None else self.criterion.scale.normalize(score),
            method=sampled.method,
            rationale=self._rationale(sampled),
            usage=sampled.usage,
            unread=sampled.unread,
            signature=self.sampling.signature(self.parts(), sampled),
            human=sample.human_score(self.criterion),
            served=sampled.served,
            **vars(sampled.combined),
        )

    def _rationale(self, sampled: Sampled) -> str | None:
        stopped = sampled.cut and not self.explain  # what begins after the rating is then no whole sentence
        return (None if stopped else rationale(sampled.text)) or sampled.reasoning or None
