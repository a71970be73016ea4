"""A way of asking about samples: what every one of them has, and what makes one differ from another."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from .. import prompts
from ..criteria import Criterion, digest
from ..judge.base import Judge, Usage, joined_models
from ..judge.loops import concurrently
from ..judge.sampling import Question, Sampled, Sampling
from ..order import InputOrder, Placed
from ..recipes import Recipe
from ..samples import Sample
from ..signature import Signature
from .rating import Rating


def merged(one: Sampled, several: Sequence[Sampled]) -> Sampled:
    """What was asked in several requests as one of them, with all models, and all that these did not take."""
    return replace(
        one,
        model=joined_models(each.model for each in several),
        without=frozenset().union(*(each.without for each in several)),
        served=tuple(sorted({name for each in several for name in each.served})),
    )


class Way(ABC):
    """How a judge is asked about samples, and how ratings come of its replies.

    Attributes:
        prompts: what the judge is told, one for each form.
        explain: whether the rationale is let run.
        sampling: how often the judge is asked, and what its replies come to.
        together: how many samples a request can be about.
        rounds: how often each of them is asked about then.
    """

    sampling: Sampling
    together: int = 1
    rounds: int = 1

    def __init__(
        self, criterion: Criterion, recipe: Recipe, judge: Judge, wordings: Sequence[prompts.Prompt], explain: bool
    ) -> None:
        self.criterion = criterion
        self.recipe = recipe
        self.judge = judge
        self.prompts = list(wordings)
        self.explain = explain

    async def prepare(self) -> None:  # noqa: B027 - most have nothing to settle
        """Settle what is to be known of the judge before it is asked anything."""

    @abstractmethod
    async def rated(self, sample: Sample, shares: bool = False) -> Rating:
        """The rating of one sample; `shares` says that others which are asked about near it have its source."""

    async def ratings(
        self, placed: Iterator[Placed], order: InputOrder[Sample, Rating]
    ) -> AsyncGenerator[tuple[int, Rating]]:
        """The ratings of many samples as they come, each with its place in the input.

        `order` says how far ahead of the first that is lacking others may be asked about (`InputOrder.admit`).
        """

        async def rated(each: Placed) -> tuple[int, Rating]:
            await order.admit(each.number)
            try:
                return each.number, await self.rated(each.sample, each.shares)
            except Exception:
                order.release()
                raise

        async with aclosing(concurrently(map(rated, placed), self.sampling.width, ordered=False)) as found:
            async for each in found:
                yield each

    @abstractmethod
    def questions(self, samples: Sequence[Sample]) -> list[Question]:
        """What is asked about some samples, at the most `together` of them.

        Raises:
            InputError: a sample lacks a field that the criterion needs.
        """

    @abstractmethod
    def requests(self, samples: Iterable[Sample], replies: int) -> Iterator[tuple[Question, int]]:
        """All that would be asked about samples in this order, each with how many of the replies it is to give."""

    def check_sight(self, samples: Iterable[Sample]) -> None:
        """Raise JudgeError where images of one of the samples would be shown to a judge that does not see."""
        for sample in samples if self.judge.sees() is False else ():
            for question in self.questions([sample]) if sample.images else ():
                self.judge.check_sight(question.messages)

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

    def expected(self) -> dict[str, set[str]]:
        """The values that each part of the ratings' signatures can have."""
        return self.sampling.expected(self.parts())

    def unrated(self, sample: Sample, error: str) -> Rating:
        """The rating of a sample that the judge was not asked about."""
        scale = self.criterion.scale
        return Rating(
            sample=sample, criterion=self.criterion.name, score=None, normalized=None, distribution={}, coverage=0.0,
            bounds=(scale.low, scale.high), std_error=None, method=None, n_valid=0, n_failed=0, rationale=None,
            human=sample.human_score(self.criterion), error=error, usage=Usage(),
            signature=Signature.of(**self.parts()),
        )  # fmt: skip
