"""G-Eval as people use it: what is settled before the first rating, and one or many samples rated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import prompts
from ..criteria import Criterion, OffGrid, ScaleLike, find_criterion
from ..errors import GEvalError, InputError
from ..examples import Shots
from ..fence import ControlTokens
from ..judge.base import Judge, Usage
from ..judge.judges import judge_of
from ..judge.loops import PerLoop, run, stream
from ..judge.sampling import Readout
from ..judge.steps import written_steps
from ..judged import judged
from ..order import InputOrder, Placed, in_prefix_order
from ..recipes import Persona, Recipe, StepsFrom
from ..samples import Sample, SampleLike, to_sample
from .batchwise import Batchwise
from .pointwise import Pointwise
from .rating import Rating
from .rubric import ByItems
from .way import Way


class GEval:
    """Rates texts by one criterion with one judge.

    Args:
        criterion: a registered name, a YAML file, free text ("Is the reply polite?"), a `Criterion`, or a mapping of
            its fields.
        model: a LiteLLM model string, `local/…`, or a judge; the default is `$GEVAL_MODEL`, else the embedded judge.
        recipe: a published configuration (`prompts/recipes.yaml`) that the other arguments override.
        scale: another scale than the criterion's.
        cut_at: another number of characters after which a conversation is cut, at turns, than the criterion's.
        form: how the judge answers, one of `criteria.FORMS`; two of them joined by `+` are averaged.
        steps: evaluation steps: `none`, those `stored` with the criterion, `auto` (written by the judge, once), or a
            list of them.
        n: replies per sample; the default is 1 where log-probabilities are read, else 20.
        temperature: the default is 0 for a single reply and 1 for several.
        readout: `logprobs`, `samples`, or `auto`: the former where the judge has them.
        off_grid: what to do with a value between two steps of the scale: `keep`, `floor` or `reject`.
        adaptive: stop sampling an item as soon as the standard error of its score falls under this share of the scale's
            range, after three replies at the least (`judge.Sequential`); `n` is then the most.
        explain: let the judge write its rationale out, where the form puts it after the rating.
        persona: `hhh` or `human_annotator` (Chiang & Lee 2023, §3.4.2).
        prompt_file: a published prompt file that replaces the wording.
        examples: texts that people rated, to be shown first; the criterion's own by default.
        control_tokens: control tokens of chat templates (`<|im_end|>`, `[INST]`) in a sample are made `inert`, or
            `kept`, as rating texts about them needs it.
        together: by a rubric: ask about all of its items in one request, instead of one request for each.
        per_request: how many samples share a request, each rated on a line of its own; 1 by default.
        rounds: how often each is rated, in other company every time; the mean is its rating.
        options: passed to `LiteLLMJudge`: api_base, api_key, concurrency, timeout, retries, direct, rpm, tpm, max_cost,
            max_requests, router.

    Raises:
        InputError: an unknown criterion, recipe, form or option value.
        JudgeError: no judge is there; from the methods, when it cannot be asked.

    >>> geval = GEval("coherence", model="openai/gpt-4o-mini", recipe="stureborg")
    >>> str(geval.criterion.scale), geval.recipe.forms, geval.recipe.steps
    ('1-10', ('rate_explain',), 'stored')
    """

    def __init__(
        self,
        criterion: str | Criterion | Mapping[str, Any],
        model: str | Judge | None = None,
        *,
        recipe: str | None = None,
        scale: ScaleLike | None = None,
        cut_at: int | None = None,
        form: str | None = None,
        steps: StepsFrom | Sequence[str] | None = None,
        n: int | None = None,
        temperature: float | None = None,
        readout: Readout | None = None,
        off_grid: OffGrid | None = None,
        adaptive: float | None = None,
        explain: bool = False,
        persona: Persona | None = None,
        prompt_file: str | Path | None = None,
        examples: Shots | None = None,
        control_tokens: ControlTokens | None = None,
        together: bool = False,
        per_request: int | None = None,
        rounds: int | None = None,
        **options: Any,
    ) -> None:
        if form is None and recipe is None and prompt_file:
            form = "score_only"  # what published prompt files ask for
        self.recipe = Recipe.of(
            recipe, scale=scale, form=form, steps=steps, n=n, temperature=temperature, readout=readout,
            off_grid=off_grid, adaptive=adaptive, persona=persona, control_tokens=control_tokens,
            together=together or None,
            per_request=per_request, rounds=rounds,
        )  # fmt: skip
        self.criterion = find_criterion(criterion, self.recipe.scale)
        if cut_at is not None:
            self.criterion = replace(self.criterion, cut_at=cut_at)
        self.judge = judge_of(model, options)
        self.way = self._way(explain, prompt_file, examples)
        self.steps_usage = Usage()
        self._preparing = PerLoop(asyncio.Lock)

    def _way(self, explain: bool, prompt_file: str | Path | None, examples: Shots | None) -> Way:
        criterion, recipe = self.criterion, self.recipe
        if criterion.by_items:
            if prompt_file or examples:
                raise InputError(f"criterion {criterion.name!r} is a rubric: leave out prompt file and examples")
            if recipe.batched:
                raise InputError(
                    f"criterion {criterion.name!r} is a rubric: no samples share a request, by per_request or a recipe"
                )
            return ByItems(criterion, recipe, self.judge, explain)
        if recipe.together:
            raise InputError(f"together asks about all items of a rubric, which criterion {criterion.name!r} is not")
        template = prompts.read_template(prompt_file) if prompt_file else None
        steps = criterion.steps if recipe.steps == "stored" else recipe.steps
        shown_steps = () if isinstance(steps, str) else tuple(steps)
        wordings = [
            prompts.Prompt(criterion, form, shown_steps, recipe.persona, template, examples, recipe.control_tokens)
            for form in recipe.forms
        ]
        way = Batchwise if recipe.batched else Pointwise
        return way(criterion, recipe, self.judge, wordings, explain)

    # --- rating ------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Do now what is done once before the first rating: with `steps="auto"`, write the evaluation steps.

        Raises:
            JudgeError: as in `write_steps`.
        """
        run(self._prepare())

    def rate(self, output: SampleLike, **fields: str) -> Rating:
        """Rate one output; `source`, `reference` and `context` as keywords, or with it in a `Sample` or a mapping.

        Raises:
            InputError: the sample lacks a field that the criterion needs.
            JudgeError: the judge cannot be asked at all. Whatever else fails is told in the rating's `error`.
        """
        return run(self.arate(output, **fields))

    async def arate(self, output: SampleLike, **fields: str) -> Rating:
        """Rate one output; see `rate`."""
        sample, *others = judged(to_sample(output, **fields), self.criterion)
        if others:
            several = f"{len(others) + 1} ratings"
            raise InputError(f"criterion {self.criterion.name!r} makes {several} of this sample: use rate_many([…])")
        prompts.check(self.criterion, sample)
        await self._prepare()
        return await self.way.rated(sample)

    def rate_many(self, samples: Iterable[SampleLike], *, as_completed: bool = False) -> Iterator[Rating]:
        """Rate samples concurrently: texts, `Sample`s, or mappings such as `{"output": …, "source": …}`.

        Ratings come in the order of the samples, one for each, so that `zip(texts, geval.rate_many(texts))` pairs
        them; as they are completed, if so asked. Where the criterion judges each turn or each context, there is one
        for each of these (`judged.judged`). The judge is asked in another order: about samples of one source one after
        the other, so that the beginning which their prompts share can come from a cache (`order.AHEAD` samples are read
        ahead for that). What cannot be rated, for want of a field too, is a rating with an `error`.

        Raises:
            InputError: a single text, sample or mapping was given instead of several.
            JudgeError: the judge cannot be asked at all; a `StopError`, when its budget is spent. All that was rated
                comes before that; in order, with an `error` for those between that were not.

        >>> GEval("fluency", "openai/gpt-4o-mini").rate_many("One text.")
        Traceback (most recent call last):
        geval_adapters.errors.InputError: rate_many takes several samples, got one str: use rate, or put it in a list
        """
        return stream(self.arate_many(samples, as_completed=as_completed))

    def arate_many(self, samples: Iterable[SampleLike], *, as_completed: bool = False) -> AsyncGenerator[Rating]:
        """Rate samples concurrently; see `rate_many`."""
        if isinstance(samples, (str, bytes, Sample, Mapping)):
            one = type(samples).__name__
            raise InputError(f"rate_many takes several samples, got one {one}: use rate, or put it in a list")
        return self._each_rated(samples, as_completed)

    async def _each_rated(self, samples: Iterable[SampleLike], as_completed: bool) -> AsyncGenerator[Rating]:
        await self._prepare()
        order: InputOrder[Sample, Rating] = InputOrder()
        if as_completed or self.judge.opening:
            order.release()  # nobody waits for another; what is answered together must all be asked first
        unusable: dict[int, str] = {}
        aside: list[tuple[int, Rating]] = []

        def usable() -> Iterator[Sample]:
            number = 0
            for each in samples:
                try:
                    parts = judged(to_sample(each), self.criterion)
                except InputError as error:
                    parts = [each if isinstance(each, Sample) else Sample("")]
                    unusable[number] = str(error)
                for part in parts:
                    number += 1
                    if not as_completed:
                        order.expect(part)
                    yield part

        def placed() -> Iterator[Placed]:
            for each in in_prefix_order(usable(), self.criterion, self.judge.concurrency):
                if each.number in unusable:
                    aside.append((each.number, self.way.unrated(each.sample, unusable.pop(each.number))))
                else:
                    yield each

        def come(found: list[tuple[int, Rating]]) -> Iterator[Rating]:
            for number, rating in found:
                yield from [rating] if as_completed else order.put(number, rating)

        try:
            async with aclosing(self.way.ratings(placed(), order)) as ratings:
                async for each in ratings:
                    found, aside[:] = [each, *aside], []
                    for rating in come(found):
                        yield rating
            for rating in come(aside):
                yield rating
        except GEvalError as error:
            for rating in come(aside):
                yield rating
            for sample, early in order.rest():
                yield early or self.way.unrated(sample, str(error))
            raise

    async def aexpected(self) -> dict[str, set[str]]:
        """The values that each part of this run's signatures can have, as far as that is known before any rating."""
        await self._prepare()
        return self.way.expected()

    # --- evaluation steps --------------------------------------------------------------------------------------------

    def write_steps(self) -> list[str]:
        """The evaluation steps that the judge writes for the criterion: auto chain of thought (Liu et al. 2023, §2).

        Written once per criterion and model, and kept in the user's cache folder (`$GEVAL_CACHE` moves it).

        Raises:
            JudgeError: the judge cannot be asked, or its reply is no numbered list.
        """
        return run(self.awrite_steps())

    async def awrite_steps(self) -> list[str]:
        """Write the evaluation steps; see `write_steps`."""
        steps, usage = await written_steps(self.judge, self.criterion, None if self.way.sampling.needs_room else 512)
        self.steps_usage += usage
        return steps

    async def _prepare(self) -> None:
        async with self._preparing.here():
            if self.recipe.steps == "auto" and not self.way.prompts[0].steps:
                steps = tuple(await self.awrite_steps())
                if not self.way.prompts[0].steps:  # another event loop may have been faster
                    self.way.prompts = [replace(prompt, steps=steps) for prompt in self.way.prompts]
            await self.way.prepare()
