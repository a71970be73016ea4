"""A judge, a criterion and a sample: a rating."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from . import prompts
from .criteria import Criterion, OffGrid, ScaleLike, digest, find_criterion
from .errors import GEvalError, InputError
from .examples import Shots
from .fence import ControlTokens, sendable
from .judge.base import Judge, Reply, Usage
from .judge.judges import judge_of
from .judge.loops import PerLoop, concurrently, run, stream
from .judge.sampling import Method, Question, Readout, Sampled, Sampling
from .judge.steps import written_steps
from .order import InputOrder, Placed, in_prefix_order
from .reading.distribution import Reading
from .reading.rationale import rationale
from .reading.text import read_text
from .reading.tokens import read_logprobs
from .recipes import Persona, Recipe, StepsFrom
from .samples import Sample, SampleLike, to_sample
from .signature import Signature


@dataclass(frozen=True)
class Rating:
    """What a judge makes of one sample.

    Attributes:
        sample: what was rated.
        criterion: the criterion's name.
        score: the estimate on the criterion's scale, or None where there is none; `error` then says why.
        normalized: `(score − low) / (high − low)`.
        distribution: score to probability, summing to one.
        coverage: the share of the mass that lies on the scale; with samples, of the replies that could be read.
        bounds: the lowest and the highest score if what was not covered were known.
        std_error: `s / √n_valid` of the replies' scores, None for fewer than two; adaptively, see `judge.Sequential`.
        method: `logprobs`, `samples` or `single`: how the score was read; None where the judge was not asked.
        n_valid, n_failed: replies that were read, and those that were not.
        rationale: what the judge said about it, where the form lets it.
        error: why there is no score.
        unread: the replies that could not be read, each with the reason.
        usage: what it cost.
        signature: names all that could change the score; equal signatures mean comparable scores.
        served: the models that the provider says gave the replies, with their fingerprints; no part of the signature.
    """

    sample: Sample
    criterion: str
    score: float | None
    normalized: float | None
    distribution: Mapping[float, float] = field(hash=False)
    coverage: float
    bounds: tuple[float, float]
    std_error: float | None
    method: Method | None
    n_valid: int
    n_failed: int
    rationale: str | None
    error: str | None
    usage: Usage
    signature: Signature
    human: float | None = None
    unread: tuple[tuple[str, str], ...] = ()
    served: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line: which sample, by what, how much, and how sure that is."""
        name = f"{self.sample.id}: " if self.sample.id else ""
        if self.score is None:
            said = f"{name}{self.criterion} not rated: {self.error}"
        else:
            error = "" if self.std_error is None else f" ± {self.std_error:.2g}"
            bounds = "" if self.coverage > 0.995 else f", bounds {self.bounds[0]:.3g} to {self.bounds[1]:.3g}"
            how = f"{self.method}, n {self.n_valid + self.n_failed}, coverage {self.coverage:.2f}{bounds}"
            said = f"{name}{self.criterion} {self.score:.3g}{error} ({how})"
        return "".join(each if each.isprintable() else " " for each in said)

    def to_dict(self) -> dict[str, Any]:
        """One row of a ratings file."""
        return {
            "id": self.sample.id,
            "doc_id": self.sample.doc_id,
            "system_id": self.sample.system_id,
            "criterion": self.criterion,
            "score": self.score,
            "normalized": self.normalized,
            "distribution": {f"{score:g}": p for score, p in self.distribution.items()},
            "coverage": self.coverage,
            "bounds": list(self.bounds),
            "std_error": self.std_error,
            "method": self.method,
            "n_valid": self.n_valid,
            "n_failed": self.n_failed,
            "rationale": self.rationale,
            "error": self.error,
            "unread": [{"reply": sendable(reply), "reason": sendable(reason)} for reply, reason in self.unread],
            "usage": vars(self.usage),
            "signature": str(self.signature),
            "served": list(self.served),
            "human": self.human,
            "output": self.sample.output,
            "reference": self.sample.reference,
            "sample": self.sample.digest,
        }


class GEval:
    """Rates texts by one criterion with one judge.

    Args:
        criterion: a registered name, a YAML file, free text ("Is the reply polite?"), a `Criterion`, or a mapping of
            its fields.
        model: a LiteLLM model string, `local/…`, or a judge; the default is `$GEVAL_MODEL`, else the embedded judge.
        recipe: a published configuration (`prompts/recipes.yaml`) that the other arguments override.
        scale: another scale than the criterion's.
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
        **options: Any,
    ) -> None:
        if form is None and recipe is None and prompt_file:
            form = "score_only"  # what published prompt files ask for
        self.recipe = Recipe.of(
            recipe, scale=scale, form=form, steps=steps, n=n, temperature=temperature, readout=readout,
            off_grid=off_grid, adaptive=adaptive, persona=persona, control_tokens=control_tokens,
        )  # fmt: skip
        self.criterion = find_criterion(criterion, self.recipe.scale)
        self.explain = explain
        template = prompts.read_template(prompt_file) if prompt_file else None
        steps = self.criterion.steps if self.recipe.steps == "stored" else self.recipe.steps
        shown_steps = () if isinstance(steps, str) else tuple(steps)
        self.prompts = [
            prompts.Prompt(
                self.criterion, form, shown_steps, self.recipe.persona, template, examples, self.recipe.control_tokens
            )
            for form in self.recipe.forms
        ]
        self.judge = judge_of(model, options)
        n, temperature, readout = self.recipe.n, self.recipe.temperature, self.recipe.readout
        self.sampling = Sampling(
            self.judge, n, temperature, readout, self.recipe.sequential(self.criterion.scale), least=len(self.prompts)
        )
        self.steps_usage = Usage()
        self._preparing = PerLoop(asyncio.Lock)

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
        sample = to_sample(output, **fields)
        prompts.check(self.criterion, sample)
        await self._prepare()
        return await self._rated(sample)

    async def _rated(self, sample: Sample, shares: bool = False) -> Rating:
        try:
            questions = self._questions(sample, shares)
        except InputError as error:
            return self._unrated(sample, str(error))
        return self._rating(sample, await self.sampling.ask(questions))

    def rate_many(self, samples: Iterable[SampleLike], *, as_completed: bool = False) -> Iterator[Rating]:
        """Rate samples concurrently: texts, `Sample`s, or mappings such as `{"output": …, "source": …}`.

        Ratings come in the order of the samples, one for each, so that `zip(texts, geval.rate_many(texts))` pairs
        them; as they are completed, if so asked. The judge is asked in another order: about samples of one source one
        after the other, so that the beginning which their prompts share can come from a cache (`order.AHEAD` samples
        are read ahead for that). What cannot be rated, for want of a field too, is a rating with an `error`.

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
        if self.judge.opening:
            order.release()  # what is answered together must all be asked first
        unusable: dict[int, str] = {}

        def usable() -> Iterator[Sample]:
            for number, each in enumerate(samples):
                try:
                    sample = to_sample(each)
                except InputError as error:
                    sample, unusable[number] = Sample(""), str(error)
                if not as_completed:
                    order.expect(sample)
                yield sample

        async def rated(placed: Placed) -> tuple[int, Rating]:
            number, sample, shares = placed
            if not as_completed:
                await order.admit(number)
            if number in unusable:
                return number, self._unrated(sample, unusable.pop(number))
            try:
                return number, await self._rated(sample, shares)
            except Exception:
                order.release()
                raise

        jobs = map(rated, in_prefix_order(usable(), self.criterion, self.judge.concurrency))
        try:
            async with aclosing(concurrently(jobs, self.sampling.width, ordered=False)) as ratings:
                async for number, rating in ratings:
                    for each in [rating] if as_completed else order.put(number, rating):
                        yield each
        except GEvalError as error:
            for sample, early in order.rest():
                yield early or self._unrated(sample, str(error))
            raise

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

    def _unrated(self, sample: Sample, error: str) -> Rating:
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

    async def aexpected(self) -> dict[str, set[str]]:
        """The values that each part of this run's signatures can have, as far as that is known before any rating."""
        await self._prepare()
        return self.sampling.expected(self.parts())

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
        steps, usage = await written_steps(self.judge, self.criterion, None if self.sampling.needs_room else 512)
        self.steps_usage += usage
        return steps

    async def _prepare(self) -> None:
        async with self._preparing.here():
            if self.recipe.steps == "auto" and not self.prompts[0].steps:
                steps = tuple(await self.awrite_steps())
                if not self.prompts[0].steps:  # another event loop may have been faster
                    self.prompts = [replace(prompt, steps=steps) for prompt in self.prompts]
