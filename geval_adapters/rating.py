"""A judge, a criterion and a sample: a rating."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from . import prompts
from .criteria import OFF_GRID, Criterion, ScaleLike, find_criterion
from .errors import InputError, JudgeError
from .judge import Answer, Judge, LiteLLMJudge, Reply, Usage, log
from .readout import Reading, read_logprobs, read_text
from .samples import Sample

T = TypeVar("T")

READOUTS = ("auto", "logprobs", "samples")
STEPS = ("none", "stored", "auto")
SAMPLES = 20
"""Replies that stand in for a distribution where there are no log-probabilities (Liu et al. 2023, §3)."""


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
    signature: str
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
            "signature": self.signature,
            "human": self.human,
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
        explain: let the judge write its rationale out, where the form puts it after the rating.
        persona: `hhh` or `human_annotator` (Chiang & Lee 2023, §3.4.2).
        prompt_file: a published prompt file that replaces the wording.
        options: passed to `LiteLLMJudge`: api_base, api_key, concurrency, timeout, retries, direct.

    Raises:
        InputError: an unknown criterion, recipe, form or option value.
        JudgeError: no judge is there; from the methods, when it cannot be asked.

    >>> geval = GEval("coherence", model="openai/gpt-4o-mini", recipe="stureborg")
    >>> str(geval.criterion.scale), geval.n, geval.temperature
    ('1-10', 1, 0.0)
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
        self.n = n if n is not None else base.get("n")
        told = temperature if temperature is not None else base.get("temperature")
        self.temperature = None if told is None else float(told)
        self.readout = readout or base.get("readout", "auto")
        self.off_grid = off_grid
        self.explain = explain
        for value, allowed, name in (
            (self.readout, READOUTS, "readout"),
            (self.steps, (*STEPS, "given"), "steps"),
            (off_grid, OFF_GRID, "off_grid policy"),
        ):
            if value not in allowed:
                raise InputError(f"unknown {name} {value!r}; known: {', '.join(allowed)}")
        if self.n is not None and self.n < 1:
            raise InputError(f"n must be at least 1, got {self.n}")
        template = prompts.read_template(prompt_file) if prompt_file else None
        told_steps = self.criterion.steps if self.steps == "stored" else steps if not isinstance(steps, str) else ()
        self.prompts = [
            prompts.Prompt(self.criterion, form, tuple(told_steps or ()), persona, template) for form in self.forms
        ]
        self.judge: Judge = LiteLLMJudge(model, **options) if model is None or isinstance(model, str) else model
        self.steps_usage = Usage()
        self._reads_logprobs = self.readout != "samples"
        self._needs_room = False
        self._preparing = asyncio.Lock()

    # --- rating ------------------------------------------------------------------------------------------------------

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
        spent = Usage()
        if self._reads_logprobs:
            n = self.n or 1
            replies, readings, spent = await self._read(sample, n, logprobs=True)
            if self.readout == "logprobs" or any(reply.logprobs or reply.error for reply in replies):
                return self._rating(sample, replies, readings, spent, n, "logprobs")
            if self._reads_logprobs:
                log.warning("%s gives no log-probabilities: rated by samples instead", self.judge.name)
                self._reads_logprobs = False
        n = self.n or SAMPLES
        replies, readings, usage = await self._read(sample, n, logprobs=False)
        return self._rating(sample, replies, readings, spent + usage, n, "samples" if n > 1 else "single")

    def rate_many(self, samples: Iterable[str | Sample], *, ordered: bool = False) -> Iterator[Rating]:
        """Rate samples concurrently; ratings come as they finish, or in the samples' order."""
        ratings = self.arate_many(samples, ordered=ordered)
        try:
            while (rating := run(_next(ratings))) is not None:
                yield rating
        finally:
            run(ratings.aclose())

    async def arate_many(self, samples: Iterable[str | Sample], *, ordered: bool = False) -> AsyncGenerator[Rating]:
        """Rate samples concurrently; see `rate_many`. Samples are taken only as fast as they are rated."""
        await self._prepare()
        width = 2 * getattr(self.judge, "concurrency", 16)
        async with aclosing(concurrently((self.arate(sample) for sample in samples), width, ordered)) as ratings:
            async for rating in ratings:
                yield rating

    async def _read(self, sample: Sample, n: int, logprobs: bool) -> tuple[list[Reply], list[Reading], Usage]:
        """Ask each form's prompt for its share of the `n` replies, and read them."""
        replies: list[Reply] = []
        readings: list[Reading] = []
        usage = Usage()
        for index, prompt in enumerate(self.prompts):
            share = n // len(self.prompts) + (index < n % len(self.prompts))
            answer, read = await self._ask(prompt, sample, share, logprobs)
            if any(reply.cut and reading.score is None for reply, reading in zip(answer.replies, read, strict=True)):
                if not self._needs_room:
                    log.warning("%s needs more room before its rating: asked without a limit", self.judge.name)
                    self._needs_room = True
                usage += answer.usage
                answer, read = await self._ask(prompt, sample, share, logprobs)
            replies += answer.replies
            readings += read
            usage += answer.usage
        return replies, readings, usage

    async def _ask(
        self, prompt: prompts.Prompt, sample: Sample, n: int, logprobs: bool
    ) -> tuple[Answer, list[Reading]]:
        answer = await self.judge.ask(
            prompt.messages(sample),
            n=n,
            temperature=self._temperature(self.n or (1 if logprobs else SAMPLES)),
            max_tokens=None if self._needs_room else prompt.room(self.explain),
            logprobs=logprobs,
            stop=prompt.stop(self.explain),
            start=prompt.start,
        )
        shown = tuple(prompt.shown(sample).values())
        return answer, [self._reading(prompt, reply, shown, logprobs) for reply in answer.replies]

    def _reading(self, prompt: prompts.Prompt, reply: Reply, shown: Sequence[str], logprobs: bool) -> Reading:
        scale, error = self.criterion.scale, reply.error
        if logprobs and reply.logprobs:
            return read_logprobs(
                reply.logprobs, scale, prompt.form, self.criterion, off_grid=self.off_grid, shown=shown
            )
        if logprobs and not error:
            error = "the reply has no log-probabilities (readout auto or samples does without)"
        if error:
            return Reading(None, {}, 0.0, (scale.low, scale.high), error)
        return read_text(reply.text, scale, prompt.form, self.criterion, off_grid=self.off_grid, shown=shown)

    def _rating(
        self, sample: Sample, replies: list[Reply], readings: list[Reading], usage: Usage, n: int, method: str
    ) -> Rating:
        combined = combine(readings)
        scale = self.criterion.scale
        spoken = next((rationale(reply.text) for reply, r in zip(replies, readings, strict=True) if not r.error), None)
        return Rating(
            sample=sample,
            criterion=self.criterion.name,
            normalized=None if combined.score is None else scale.normalize(combined.score),
            method=method,
            rationale=spoken or None,
            usage=usage,
            signature=self.signature(n, method),
            human=sample.human_score(self.criterion),
            **vars(combined),
        )

    def _temperature(self, n: int) -> float:
        return self.temperature if self.temperature is not None else float(n > 1)

    def signature(self, n: int, method: str) -> str:
        """One line that names everything which could change the score, in the manner of sacreBLEU."""
        refused = getattr(self.judge, "without", ())
        steps = self.prompts[0].steps
        parts = {
            "model": self.judge.name,
            "criterion": f"{self.criterion.name}@{self.criterion.hash}",
            "prompt": "+".join(prompt.hash for prompt in self.prompts),
            "form": "+".join(self.forms),
            "steps": f"{self.steps}@{_digest(steps)}" if steps else "none",
            "n": n,
            "temperature": "default" if "temperature" in refused else f"{self._temperature(n):g}",
            "readout": method,
            "off_grid": self.off_grid,
            "version": version("geval-adapters"),
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

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
        answer = await self.judge.ask(messages, temperature=0.0, max_tokens=None if self._needs_room else 512)
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


@dataclass(frozen=True)
class Combined:
    """Several readings of one sample as one: the fields of a `Rating` that they decide."""

    score: float | None
    distribution: Mapping[float, float]
    coverage: float
    bounds: tuple[float, float]
    std_error: float | None
    n_valid: int
    n_failed: int
    error: str | None


def combine(readings: Sequence[Reading]) -> Combined:
    """The mean of the readings that have a score; the others are missing, neither 0 nor clipped.

    Coverage and bounds are means over all readings, so that an unread reply lowers the one and widens the other.
    `std_error = s / √n_valid`.

    >>> from geval_adapters import read_text
    >>> combined = combine([read_text(reply, "1-5") for reply in ("4", "5", "what?")])
    >>> combined.score, combined.n_failed, round(combined.coverage, 2), combined.std_error
    (4.5, 1, 0.67, 0.5)
    """
    valid = [reading for reading in readings if reading.score is not None]
    distribution: dict[float, float] = {}
    described = valid or [reading for reading in readings if reading.distribution]
    for reading in described:
        for score, p in reading.distribution.items():
            distribution[score] = distribution.get(score, 0.0) + p / len(described)
    scores = [reading.score for reading in valid if reading.score is not None]
    reasons = Counter(reading.error for reading in readings if reading.error)
    return Combined(
        score=fmean(scores) if scores else None,
        distribution=dict(sorted(distribution.items())),
        coverage=fmean(reading.coverage for reading in readings),
        bounds=(fmean(reading.bounds[0] for reading in readings), fmean(reading.bounds[1] for reading in readings)),
        std_error=stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else None,
        n_valid=len(valid),
        n_failed=len(readings) - len(valid),
        error=None if scores else reasons.most_common(1)[0][0],
    )


def rationale(reply: str) -> str:
    r"""What a reply says beside its rating.

    >>> rationale("Rating: 4\nRationale: It holds together.")
    'It holds together.'
    """
    without = re.sub(r"^\W*(?:rating|score)\W*[\d.]*\W*$", "", reply, flags=re.IGNORECASE | re.MULTILINE)
    text = re.sub(r"^\W*(?:rationale|analysis)\W*", "", without.strip(), flags=re.IGNORECASE).strip()
    return text if re.search(r"[^\W\d]{2}", text) else ""


async def concurrently(jobs: Iterator[Coroutine[Any, Any, T]], width: int, ordered: bool) -> AsyncGenerator[T]:
    """Run jobs, `width` at a time, and yield their results as they come or in order; the first error ends all."""
    running: dict[asyncio.Task[T], None] = {}
    finished: asyncio.Queue[asyncio.Task[T]] = asyncio.Queue()

    def start() -> None:
        if (job := next(jobs, None)) is not None:
            task = asyncio.ensure_future(job)
            running[task] = None
            task.add_done_callback(finished.put_nowait)

    try:
        for _ in range(width):
            start()
        while running:
            task = next(iter(running)) if ordered else await finished.get()
            result = await task
            del running[task]
            start()
            yield result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _next(results: AsyncGenerator[T]) -> T | None:
    return await anext(results, None)


def run(job: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, also inside a running event loop (a notebook): it runs in a loop of its own thread."""
    future = asyncio.run_coroutine_threadsafe(job, _own_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="geval-adapters", daemon=True).start()
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result(timeout=5))
    return loop


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]


def _cache_folder() -> Path:
    base = os.environ.get("GEVAL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "geval-adapters"
    return Path(base).expanduser()
