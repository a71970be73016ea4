"""A sample rated item by item: how likely the judge takes each item of a rubric to be true of it, and the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from ..criteria import Criterion, Form, Scale
from ..errors import InputError
from ..judge.base import Judge, Reply, Usage
from ..judge.loops import concurrently
from ..judge.sampling import Question, Sampled, Sampling
from ..messages import common_prefix
from ..order import in_prefix_order
from ..reading.distribution import Reading
from ..reading.rationale import rationale
from ..reading.text import read_text
from ..reading.tokens import read_logprobs
from ..recipes import Recipe
from ..rubrics import MOST_MISSING, ItemRating, RubricItem, clipped, tally
from ..samples import Sample
from .rating import Rating
from .rubric_prompt import RubricPrompt, items_of
from .way import Way

TRUE = Scale.of({"no": 0, "yes": 1})
"""Whether an item is true of a text: the mean on this scale is the probability that it is."""

Items = Mapping[str, RubricItem]


class ByItems(Way):
    """Asks a judge about one item of a rubric at a time (HealthBench, Arora et al. 2025; CheckEval, 2403.18771).

    Each item has as many replies as a rating has otherwise. The first one of a sample goes ahead, so that the others
    find the beginning that they share with it in a cache.

    Raises:
        InputError: a setting for which a rubric has no place.
    """

    def __init__(self, criterion: Criterion, recipe: Recipe, judge: Judge, explain: bool) -> None:
        super().__init__(criterion, recipe, judge, (), explain)
        if recipe.steps not in ("none", "stored") or criterion.steps:
            raise InputError(f"criterion {criterion.name!r} is a rubric: its items take the place of evaluation steps")
        self.wordings = [
            RubricPrompt(criterion, form, recipe.persona, recipe.control_tokens) for form in self.recipe.forms
        ]
        self.sampling = Sampling(
            judge, recipe.n, recipe.temperature, recipe.readout, recipe.sequential(TRUE), len(self.wordings)
        )

    async def rated(self, sample: Sample, shares: bool = False) -> Rating:
        """The rating of one sample."""
        try:
            items = items_of(self.criterion, sample)
            asked = [self._questions(sample, {label: item}) for label, item in items.items()]
        except InputError as error:
            return self.unrated(sample, str(error))
        alone = 0 if self.judge.opening else 1  # what is answered together must all be asked first
        sampled = [await self.sampling.ask(questions) for questions in asked[:alone]]
        others = map(self.sampling.ask, asked[alone:])
        async with aclosing(concurrently(others, len(asked), ordered=True)) as more:
            sampled += [each async for each in more]
        return self._rating(sample, [self._item(*pair) for pair in zip(items.values(), sampled, strict=True)], sampled)

    def questions(self, samples: Sequence[Sample]) -> list[Question]:
        """What is asked about some samples, item by item."""
        return [
            question
            for sample in samples
            for label, item in items_of(self.criterion, sample).items()
            for question in self._questions(sample, {label: item})
        ]

    def requests(self, samples: Iterable[Sample], replies: int) -> Iterator[tuple[Question, int]]:
        """All that would be asked about samples in this order, each with how many of the replies it is to give."""
        forms = len(self.wordings)
        for _, sample, _ in in_prefix_order(samples, self.criterion):
            for place, question in enumerate(self.questions([sample])):
                yield question, replies // forms + (place % forms < replies % forms)

    def _questions(self, sample: Sample, items: Items) -> list[Question]:
        return [
            Question(
                messages=prompt.messages(sample, items),
                read=partial(self._reading, prompt, tuple(prompt.texts(sample, items).values())),
                start=prompt.start(items),
                stop=prompt.stop(self.explain),
                room=prompt.room(items, self.explain),
                shared=self._shared(prompt, sample, items),
                about=sample.id,
            )
            for prompt in self.wordings
        ]

    def _shared(self, prompt: RubricPrompt, sample: Sample, items: Items) -> int:
        """How many characters at the beginning stand before any item of this sample."""
        if not self.judge.caches_what_is_marked:
            return 0
        return common_prefix(prompt.text(sample, items), prompt.text(sample, {"": RubricItem("\0")}))

    def _reading(self, prompt: RubricPrompt, shown: Sequence[str], reply: Reply, logprobs: bool) -> Reading:
        form: Form = "analyze_rate" if prompt.form == "analyze_rate" else "rate_explain"
        if logprobs:
            return read_logprobs(reply.logprobs or (), TRUE, form, "answer", shown=shown, text=reply.text)
        return read_text(reply.text, TRUE, form, "answer", shown=shown)

    def _item(self, item: RubricItem, sampled: Sampled) -> ItemRating:
        found = sampled.combined
        said = rationale(sampled.text) if self.explain or not sampled.cut else ""
        return ItemRating(
            item.criterion, item.points, item.tags, found.score, found.coverage, found.bounds, found.std_error,
            sampled.method, found.n_valid, found.n_failed, said or sampled.reasoning or None, found.error,
        )  # fmt: skip

    def _rating(self, sample: Sample, items: Sequence[ItemRating], sampled: Sequence[Sampled]) -> Rating:
        found = tally(items)
        error = _why_none(items) if found.missing > MOST_MISSING else None
        whole = _whole(sampled)
        return Rating(
            sample=sample,
            criterion=self.criterion.name,
            score=None if error else found.score,
            normalized=None if error else clipped(found.score),
            distribution={},
            coverage=found.coverage,
            bounds=found.bounds,
            std_error=None if error else found.std_error,
            method=whole.method,
            n_valid=sum(each.n_valid for each in items),
            n_failed=sum(each.n_failed for each in items),
            rationale="\n".join(f"{each.criterion}: {each.rationale}" for each in items if each.rationale) or None,
            error=error,
            usage=whole.usage,
            signature=self.sampling.signature(self.parts(), whole),
            human=sample.human_score(self.criterion),
            unread=whole.unread,
            served=whole.served,
            items=tuple(items),
        )

    def parts(self) -> dict[str, str]:
        """What a signature says of the settings, whatever comes out."""
        return {
            "model": self.judge.name,
            "criterion": self.criterion.key,
            "prompt": "+".join(prompt.hash for prompt in self.wordings),
            "form": self.recipe.form,
            "items": "together" if self.recipe.together else "apart",
            **({"control_tokens": "kept"} if self.recipe.control_tokens == "kept" else {}),
        }

    def unrated(self, sample: Sample, error: str) -> Rating:
        """The rating of a sample that the judge was not asked about."""
        rubric = self.criterion.rubric or sample.rubric
        return replace(super().unrated(sample, error), bounds=(rubric.low if rubric else 0.0, 1.0))


def _why_none(items: Sequence[ItemRating]) -> str:
    """Why there is no score, and what is known of it."""
    found = tally(items)
    missing = [each for each in items if each.p is None]
    reason, _ = Counter(each.error for each in missing).most_common(1)[0]
    low, high = found.bounds
    return (
        f"{len(missing)} of {len(items)} items were not read, with {found.missing:.0%} of the points (up to"
        f" {MOST_MISSING:.0%} may be missing): {reason}; the score lies between {low:.3g} and {high:.3g}"
    )


def _whole(sampled: Sequence[Sampled]) -> Sampled:
    """What was asked about all items as one: how the least sure of those that were read was read, and what it cost."""
    methods = ("single", "samples", "logprobs")
    read = [each for each in sampled if each.combined.n_valid] or sampled
    least = min(read, key=lambda each: methods.index(each.method))
    models = {name for each in sampled if each.model for name in each.model.split("+")}
    return replace(
        least,
        usage=sum((each.usage for each in sampled), Usage()),
        model="+".join(sorted(models)) or None,
        without=frozenset().union(*(each.without for each in sampled)),
        unread=tuple(unread for each in sampled for unread in each.unread),
        served=tuple(sorted({name for each in sampled for name in each.served})),
    )
