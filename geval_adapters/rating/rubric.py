"""A sample rated item by item: how likely the judge takes each item of a rubric to be true of it, and the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from ..criteria import Criterion, Form, Scale
from ..errors import InputError
from ..judge.base import Judge, Reply, Usage
from ..judge.loops import concurrently
from ..judge.sampling import Question, Sampled, Sampling, why_unread
from ..messages import common_prefix
from ..order import in_prefix_order
from ..prompts import surroundings
from ..reading.combined import Combined, combine
from ..reading.distribution import Reading
from ..reading.rationale import rationale
from ..reading.several import read_many
from ..reading.text import read_text
from ..reading.tokens import read_logprobs
from ..recipes import Recipe
from ..rubrics import MOST_MISSING, ItemRating, RubricItem, clipped, tally
from ..samples import Sample
from .rating import Rating
from .rubric_prompt import RubricPrompt, items_of
from .way import Way, merged

TRUE = Scale.of({"no": 0, "yes": 1})
"""Whether an item is true of a text: the mean on this scale is the probability that it is."""

Items = Mapping[str, RubricItem]


AGAIN = 1
"""How often items that a reply about several lacks, or answers twice, are asked about again, by themselves."""


class ByItems(Way):
    """Asks a judge about one item of a rubric at a time (HealthBench, Arora et al. 2025; CheckEval, 2403.18771).

    Each item has as many replies as a rating has otherwise. The first one of a sample goes ahead, so that the others
    find the beginning that they share with it in a cache. With `together`, one request is about all items, each of
    which has a line of its own in the reply; what is wrong with a line concerns its item alone.

    Raises:
        InputError: a setting for which a rubric has no place.
    """

    def __init__(self, criterion: Criterion, recipe: Recipe, judge: Judge, explain: bool) -> None:
        super().__init__(criterion, recipe, judge, (), explain)
        if recipe.steps not in ("none", "stored") or criterion.steps:
            raise InputError(f"criterion {criterion.name!r} is a rubric: its items take the place of evaluation steps")
        if recipe.together and (explain or recipe.adaptive or len(recipe.forms) > 1):
            raise InputError("items that are asked about together: leave out explain, adaptive, and several forms")
        self.wordings = [
            RubricPrompt(criterion, form, recipe.persona, recipe.control_tokens, recipe.together)
            for form in recipe.forms
        ]
        self.sampling = Sampling(
            judge, recipe.n, recipe.temperature, recipe.readout, recipe.sequential(TRUE), len(self.wordings)
        )

    async def rated(self, sample: Sample, shares: bool = False) -> Rating:
        """The rating of one sample."""
        try:
            items = items_of(self.criterion, sample)
            asked = self._each(sample, items)
        except InputError as error:
            return self.unrated(sample, str(error))
        found, sampled = await (self._together(sample, items) if self.recipe.together else self._apart(items, asked))
        return self._rating(sample, found, sampled)

    async def _apart(self, items: Items, asked: Sequence[list[Question]]) -> tuple[list[ItemRating], list[Sampled]]:
        """Each item by its own questions."""
        alone = 0 if self.judge.opening else 1  # what is answered together must all be asked first
        sampled = [await self.sampling.ask(questions) for questions in asked[:alone]]
        others = map(self.sampling.ask, asked[alone:])
        async with aclosing(concurrently(others, len(asked), ordered=True)) as more:
            sampled += [each async for each in more]
        return [
            self._item(item, each, each.combined) for item, each in zip(items.values(), sampled, strict=True)
        ], sampled

    async def _together(self, sample: Sample, items: Items) -> tuple[list[ItemRating], list[Sampled]]:
        """All items in one request, and those that it left unread in another one."""
        found: dict[str, ItemRating] = {}
        sampled: list[Sampled] = []
        left = items
        for turn in range(1 + AGAIN):
            [question] = self._questions(sample, left)
            each = await self.sampling.ask([replace(question, about=f"{sample.id} {turn}" if turn else sample.id)])
            sampled.append(each)
            read = [self._lines(sample, left, reply, each.method == "logprobs") for reply in each.replies]
            for label, item in left.items():
                found[label] = self._item(item, each, combine([readings[label] for readings in read]))
            left = {label: item for label, item in items.items() if found[label].p is None}
            if not left or all(reply.error for reply in each.replies):
                break
        return list(found.values()), sampled

    def questions(self, samples: Sequence[Sample]) -> list[Question]:
        """What is asked about some samples, item by item."""
        asked = (self._each(sample, items_of(self.criterion, sample)) for sample in samples)
        return [question for each in asked for questions in each for question in questions]

    def _each(self, sample: Sample, items: Items) -> list[list[Question]]:
        """What is asked about a sample; the questions of one list share the replies."""
        parts = [items] if self.recipe.together else [{label: item} for label, item in items.items()]
        return [self._questions(sample, part) for part in parts]

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
                read=self._reader(prompt, sample, items),
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

    def _reader(self, prompt: RubricPrompt, sample: Sample, items: Items) -> Callable[[Reply, bool], Reading]:
        if not self.recipe.together:
            return partial(self._reading, prompt, tuple(prompt.texts(sample, items).values()))

        def whole(reply: Reply, logprobs: bool) -> Reading:
            """The reply as one reading: it is read where every item is."""
            readings = list(self._lines(sample, items, reply, logprobs).values())
            return next((each for each in readings if each.score is None), readings[0])

        return whole

    def _reading(self, prompt: RubricPrompt, shown: Sequence[str], reply: Reply, logprobs: bool) -> Reading:
        form: Form = "analyze_rate" if prompt.form == "analyze_rate" else "rate_explain"
        if logprobs:
            return read_logprobs(reply.logprobs or (), TRUE, form, "answer", shown=shown, text=reply.text)
        return read_text(reply.text, TRUE, form, "answer", shown=shown)

    def _lines(self, sample: Sample, items: Items, reply: Reply, logprobs: bool) -> dict[str, Reading]:
        """What a reply about several items says of each, by its label."""
        shown = (
            *surroundings(self.criterion, sample).values(),
            sample.output,
            *(each.criterion for each in items.values()),
        )
        given = (reply.logprobs or ()) if logprobs else None
        found = read_many(reply.text, list(items), TRUE, shown=shown, logprobs=given, begun=True, once=True)
        why = {label: why_unread(reply, reading, logprobs) for label, reading in found.items()}
        return found | {label: replace(found[label], score=None, error=error) for label, error in why.items() if error}

    def _item(self, item: RubricItem, sampled: Sampled, found: Combined) -> ItemRating:
        said = rationale(sampled.text) if self.explain or not sampled.cut else ""
        return ItemRating(
            item.criterion, item.points, item.tags, found.score, found.coverage, found.bounds, found.std_error,
            sampled.method, found.n_valid, found.n_failed,
            None if self.recipe.together else said or sampled.reasoning or None, found.error,
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
    return replace(
        merged(least, sampled),
        usage=sum((each.usage for each in sampled), Usage()),
        unread=tuple(unread for each in sampled for unread in each.unread),
    )
