"""Each sample asked about on its own: its questions, how their replies are read, and the rating that comes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from .. import prompts
from ..criteria import Criterion, digest
from ..errors import InputError
from ..judge.base import Judge, Reply, Usage
from ..judge.sampling import Question, Sampled, Sampling
from ..reading.distribution import Reading
from ..reading.rationale import rationale
from ..reading.text import read_text
from ..reading.tokens import read_logprobs
from ..recipes import Recipe
from ..samples import Sample
from ..signature import Signature
from .rating import Rating


class Pointwise:
    """Asks a judge about one sample at a time (Liu et al. 2023).

    Attributes:
        prompts: what the judge is told, one for each form.
        sampling: how often it is asked, and what its replies come to.
        explain: whether the rationale is let run.
    """

    def __init__(
        self, criterion: Criterion, recipe: Recipe, judge: Judge, wordings: Sequence[prompts.Prompt], explain: bool
    ) -> None:
        self.criterion = criterion
        self.recipe = recipe
        self.judge = judge
        self.prompts = list(wordings)
        self.explain = explain
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

    def _questions(self, sample: Sample, shares: bool) -> list[Question]:
        return [
            Question(
                messages=prompt.messages(sample),
                read=partial(self._reading, prompt, prompt.texts(sample)),
                start=prompt.start,
                stop=prompt.stop(self.explain),
                room=prompt.room(self.explain),
                shared=prompt.shared(sample) if shares and self.judge.caches_what_is_marked else 0,
                about=sample.id,
                schema=prompt.schema(),
            )
            for prompt in self.prompts
        ]

    def _reading(self, prompt: prompts.Prompt, shown: Sequence[str], reply: Reply, logprobs: bool) -> Reading:
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

    def unrated(self, sample: Sample, error: str) -> Rating:
        """The rating of a sample that the judge was not asked about."""
        scale = self.criterion.scale
        return Rating(
            sample=sample, criterion=self.criterion.name, score=None, normalized=None, distribution={}, coverage=0.0,
            bounds=(scale.low, scale.high), std_error=None, method=None, n_valid=0, n_failed=0, rationale=None,
            human=sample.human_score(self.criterion), error=error, usage=Usage(),
            signature=Signature.of(**self.parts()),
        )  # fmt: skip

    def parts(self) -> dict[str, str]:
        """What a signature says of the settings, whatever comes out."""
        origin = self.recipe.steps if isinstance(self.recipe.steps, str) else "given"
        return {
            "model": self.judge.name,
            "criterion": self.criterion.key,
            "prompt": "+".join(prompt.hash for prompt in self.prompts),
            "form": self.recipe.form,
            "steps": f"{origin}@{digest(json.dumps(steps))}" if (steps := self.prompts[0].steps) else "none",
            "off_grid": self.recipe.off_grid,
            **({"control_tokens": "kept"} if self.recipe.control_tokens == "kept" else {}),
            **({"examples": shots.key} if (shots := self.prompts[0].examples) else {}),
        }
