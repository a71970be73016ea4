"""A judge, a criterion and a sample: a rating."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from . import prompts
from .criteria import OFF_GRID, Criterion, ScaleLike, find_criterion
from .errors import InputError, JudgeError
from .judge.base import Judge, Reply, Usage
from .judge.client import judge_of
from .judge.loops import concurrently, run, stream
from .judge.sampling import Question, Sampled, Sampling, Sequential
from .reading.distribution import Reading
from .reading.text import read_text
from .reading.tokens import read_logprobs
from .samples import Sample
from .signature import Signature

STEPS = ("none", "stored", "auto")
AHEAD = 4096
"""How many samples are put into order at a time."""


@dataclass(frozen=True)
class Rating:
    """What a judge makes of one sample.

    Attributes:
        sample: what was rated.
        criterion: the criterion's name.
        score: the estimate on the criterion's scale, or None where there is none; `error` then says why.
        normalized: `(score − low) / (high − low)`.
        distribution: score to probability, summing to one.
        coverage: with log-probabilities the share of the mass that lies on the scale, with samples the share that
            could be read.
        bounds: the lowest and the highest score if what was not covered were known.
        std_error: `s / √n_valid` of the replies' scores; None for fewer than two.
        method: `logprobs`, `samples` or `single`: how the score was read.
        n_valid, n_failed: replies that were read, and those that were not.
        rationale: what the judge said about it, where the form lets it.
        error: why there is no score.
        usage: what it cost.
        signature: names all that could change the score; equal signatures mean comparable scores.
    """

    sample: Sample
    criterion: str
    score: float | None
    normalized: float | None
    distribution: Mapping[float, float] = field(hash=False)
    coverage: float
    bounds: tuple[float, float]
    std_error: float | None
    method: str
    n_valid: int
    n_failed: int
    rationale: str | None
    error: str | None
    usage: Usage
    signature: Signature
    human: float | None = None

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
            "usage": vars(self.usage),
            "signature": str(self.signature),
            "human": self.human,
            "output": self.sample.output,
            "sample": self.sample.digest,
        }


class GEval:
    """Rates texts by one criterion with one judge.

    Args:
        criterion: a registered name, a YAML file, free text ("Is the reply polite?"), or a `Criterion`.
        model: a LiteLLM model string, `local/…`, or a judge; the default is `$GEVAL_MODEL`, else the embedded judge.
        recipe: a published configuration (`prompts/recipes.yaml`) that the other arguments override.
        scale: another scale than the criterion's.
        form: how the judge answers, one of `readout.FORMS`; two of them joined by `+` are averaged.
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
        options: passed to `LiteLLMJudge`: api_base, api_key, concurrency, timeout, retries, direct, rpm, tpm, max_cost,
            max_requests, router.

    Raises:
        InputError: an unknown criterion, recipe, form or option value.
        JudgeError: no judge is there; from the methods, when it cannot be asked.

    >>> geval = GEval("coherence", model="openai/gpt-4o-mini", recipe="stureborg")
    >>> str(geval.criterion.scale), geval.forms, geval.steps
    ('1-10', ('rate_explain',), 'stored')
    """

    def __init__(
        self,
        criterion: str | Criterion,
        model: str | Judge | None = None,
        *,
        recipe: str | None = None,
        scale: ScaleLike | None = None,
        form: str | None = None,
        steps: str | Sequence[str] | None = None,
        n: int | None = None,
        temperature: float | None = None,
        readout: str | None = None,
        off_grid: str = "keep",
        adaptive: float | None = None,
        explain: bool = False,
        persona: str | None = None,
        prompt_file: str | Path | None = None,
        **options: Any,
    ) -> None:
        recipes = prompts.wording("recipes")
        if recipe is not None and recipe not in recipes:
            raise InputError(f"unknown recipe {recipe!r}; known: {', '.join(recipes)}")
        base = recipes[recipe] if recipe else {}
        self.criterion = find_criterion(criterion, scale if scale is not None else base.get("scale"))
        self.forms = tuple((form or base.get("form") or ("score_only" if prompt_file else "rate_explain")).split("+"))
        self.steps = "given" if steps and not isinstance(steps, str) else steps or base.get("steps", "none")
        self.off_grid = off_grid
        self.explain = explain
        for value, allowed, name in (
            (self.steps, (*STEPS, "given"), "steps"),
            (off_grid, OFF_GRID, "off_grid policy"),
        ):
            if value not in allowed:
                raise InputError(f"unknown {name} {value!r}; known: {', '.join(allowed)}")
        template = prompts.read_template(prompt_file) if prompt_file else None
        told_steps = self.criterion.steps if self.steps == "stored" else steps if not isinstance(steps, str) else ()
        self.prompts = [
            prompts.Prompt(self.criterion, form, tuple(told_steps or ()), persona, template) for form in self.forms
        ]
        self.judge = judge_of(model, options)
        self.sampling = Sampling(
            self.judge,
            n if n is not None else base.get("n"),
            temperature if temperature is not None else base.get("temperature"),
            readout or base.get("readout", "auto"),
            None if adaptive is None else self._sequential(adaptive),
            least=len(self.prompts),
        )
        self.steps_usage = Usage()
        self._preparing = asyncio.Lock()

    def _sequential(self, target: float) -> Sequential:
        if not 0 < target < 1:
            raise InputError(f"adaptive is a share of the scale's range, between 0 and 1, got {target:g}")
        span = self.criterion.scale.high - self.criterion.scale.low
        return Sequential(target * span, span)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process, without the event loop of this one, and (see `LiteLLMJudge`) without a key."""
        return self.__dict__ | {"_preparing": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._preparing = asyncio.Lock()

    # --- rating ------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Do now what is done once before the first rating: with `steps="auto"`, write the evaluation steps.

        Raises:
            JudgeError: as in `write_steps`.
        """
        run(self._prepare())

    def rate(self, output: str | Sample, **fields: str) -> Rating:
        """Rate one output; `source`, `reference` and `context` as keywords, or a whole `Sample`.

        Raises:
            InputError: the sample lacks a field that the criterion needs.
            JudgeError: the judge cannot be asked at all. Whatever else fails is told in the rating's `error`.
        """
        return run(self.arate(output, **fields))

    async def arate(self, output: str | Sample, **fields: str) -> Rating:
        """Rate one output; see `rate`."""
        sample = output if isinstance(output, Sample) else Sample(output, **fields)  # type: ignore[arg-type]
        await self._prepare()
        return await self._rated(sample, shares=False)

    async def _rated(self, sample: Sample, shares: bool) -> Rating:
        return self._rating(sample, await self.sampling.ask(self._questions(sample, shares)))

    def rate_many(self, samples: Iterable[str | Sample], *, ordered: bool = False) -> Iterator[Rating]:
        """Rate samples concurrently; ratings come as they finish, or in the samples' order.

        Unless they are to come in order, the judge is asked about samples of one source one after the other, so that
        the beginning which their prompts share can come from a cache; samples are read `AHEAD` at a time for that.
        In order, they are taken as they come, and only as fast as they are rated.

        Raises:
            InputError: a sample lacks a field that the criterion needs.
            JudgeError: the judge cannot be asked at all; a `StopError`, when its budget is spent.
        """
        return stream(self.arate_many(samples, ordered=ordered))

    async def arate_many(self, samples: Iterable[str | Sample], *, ordered: bool = False) -> AsyncGenerator[Rating]:
        """Rate samples concurrently; see `rate_many`."""
        await self._prepare()
        given = (each if isinstance(each, Sample) else Sample(each) for each in samples)
        at_once = self.judge.concurrency
        placed = ((each, False) for each in given) if ordered else in_prefix_order(given, self.criterion, at_once)
        jobs = (self._rated(sample, shares) for sample, shares in placed)
        async with aclosing(concurrently(jobs, self.sampling.width, ordered)) as ratings:
            async for rating in ratings:
                yield rating

    def _questions(self, sample: Sample, shares: bool) -> list[Question]:
        marks = shares and self.judge.caches_what_is_marked
        return [
            Question(
                messages=prompt.messages(sample),
                read=partial(self._reading, prompt, tuple(prompt.shown(sample).values())),
                start=prompt.start,
                stop=prompt.stop(self.explain),
                room=prompt.room(self.explain),
                shared=prompt.shared(sample) if marks else 0,
            )
            for prompt in self.prompts
        ]

    def _reading(self, prompt: prompts.Prompt, shown: Sequence[str], reply: Reply, logprobs: bool) -> Reading:
        scale, form, policy = self.criterion.scale, prompt.form, self.off_grid
        if logprobs:
            return read_logprobs(reply.logprobs or (), scale, form, self.criterion, off_grid=policy, shown=shown)
        return read_text(reply.text, scale, form, self.criterion, off_grid=policy, shown=shown)

    def _rating(self, sample: Sample, sampled: Sampled) -> Rating:
        score = sampled.combined.score
        return Rating(
            sample=sample,
            criterion=self.criterion.name,
            normalized=None if score is None else self.criterion.scale.normalize(score),
            method=sampled.method,
            rationale=self._rationale(sampled),
            usage=sampled.usage,
            signature=self.sampling.signature(self._parts(), sampled),
            human=sample.human_score(self.criterion),
            **vars(sampled.combined),
        )

    def _rationale(self, sampled: Sampled) -> str | None:
        stopped = sampled.cut and not self.explain  # what begins after the rating is then no whole sentence
        return (None if stopped else rationale(sampled.text)) or sampled.reasoning or None

    def _parts(self) -> dict[str, str]:
        steps = self.prompts[0].steps
        return {
            "model": self.judge.name,
            "criterion": f"{self.criterion.name}@{self.criterion.hash}",
            "prompt": "+".join(prompt.hash for prompt in self.prompts),
            "form": "+".join(self.forms),
            "steps": f"{self.steps}@{_digest(steps)}" if steps else "none",
            "off_grid": self.off_grid,
        }

    async def aexpected(self) -> dict[str, set[str]]:
        """The values that each part of this run's signatures can have, as far as that is known before any rating."""
        await self._prepare()
        return self.sampling.expected(self._parts())

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
        store = _cache_folder() / f"steps-{_digest([self.judge.name, self.criterion.hash])}.json"
        if store.is_file():
            return list(json.loads(store.read_text(encoding="utf-8"))["steps"])
        messages = prompts.steps_messages(self.criterion)
        answer = await self.judge.ask(messages, temperature=0.0, max_tokens=None if self.sampling.needs_room else 512)
        self.steps_usage += answer.usage
        reply = answer.replies[0]
        steps = list(prompts.numbered(reply.text))
        if not steps:
            said = reply.error or f"{reply.text[:80]!r} is no numbered list"
            raise JudgeError(f"{self.judge.name} wrote no evaluation steps for {self.criterion.name!r}: {said}")
        store.parent.mkdir(parents=True, exist_ok=True)
        written = {"model": self.judge.name, "criterion": self.criterion.name, "steps": steps}
        store.write_text(json.dumps(written, indent=2), encoding="utf-8")
        return steps

    async def _prepare(self) -> None:
        async with self._preparing:
            if self.steps == "auto" and not self.prompts[0].steps:
                steps = tuple(await self.awrite_steps())
                self.prompts = [replace(prompt, steps=steps) for prompt in self.prompts]


def in_prefix_order(samples: Iterable[Sample], criterion: Criterion, at_once: int = 1) -> Iterator[tuple[Sample, bool]]:
    """Samples of one source one after the other, each with whether there are more of its source.

    Where several requests are under way at once, the first of each source goes that many places early: its prompt is
    then in the cache when the others come.

    >>> from geval_adapters import load_criteria
    >>> samples = [Sample(output, source=source) for output, source in ("1a", "2b", "3a", "4b", "5c")]
    >>> [sample.output for sample, _ in in_prefix_order(samples, load_criteria()["relevance"])]
    ['1', '3', '2', '4', '5']
    >>> [sample.output for sample, _ in in_prefix_order(samples, load_criteria()["relevance"], at_once=2)]
    ['1', '2', '3', '5', '4']
    """
    left = iter(samples)
    while chunk := list(islice(left, AHEAD)):
        groups: dict[tuple[str, ...], list[Sample]] = {}
        for sample in chunk:
            groups.setdefault(tuple(prompts.surroundings(criterion, sample).values()), []).append(sample)
        placed: list[tuple[int, Sample, bool]] = []
        for group in groups.values():
            for index, sample in enumerate(group):
                early = at_once if at_once > 1 and index == 0 else 0
                placed.append((len(placed) - early, sample, len(group) > 1))
        for _, sample, shares in sorted(placed, key=lambda each: each[0]):
            yield sample, shares


def rationale(reply: str) -> str:
    r"""What a reply says beside its rating.

    >>> rationale("Rating: 4\nRationale: It holds together.")
    'It holds together.'
    """
    without = re.sub(r"^\W*(?:rating|score)\W*[\d.]*\W*$", "", reply, flags=re.IGNORECASE | re.MULTILINE)
    text = re.sub(r"^\W*(?:rationale|analysis)\W*", "", without.strip(), flags=re.IGNORECASE).strip()
    return text if re.search(r"[^\W\d]{2}", text) else ""


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]


def _cache_folder() -> Path:
    base = os.environ.get("GEVAL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "geval-adapters"
    return Path(base).expanduser()
