"""One way of rating, shared by the tests of a process."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from geval_adapters import GEval, InputError, Judge, LiteLLMJudge, Rating, Sample, Usage
from geval_adapters.judge import ReplyCache, concurrently, run

log = logging.getLogger("geval_adapters")

JUDGE_OPTIONS = frozenset(inspect.signature(LiteLLMJudge).parameters) - {"model", "cache"}
"""Settings that say how the judge is asked; all others are keywords of `GEval`."""


class Judging:
    """Rates samples by one criterion in one way, each of them once.

    Args:
        settings: keywords of `GEval`, `criterion` and `model` among them.
        cache: a folder in which the judge's replies are kept for later runs.
        offline: whether only those are taken.

    Raises:
        InputError: no criterion or no judge is named, or a setting cannot be used.
    """

    def __init__(self, settings: Mapping[str, Any], cache: Path | None, offline: bool) -> None:
        options = {name: value for name, value in settings.items() if name in JUDGE_OPTIONS}
        own = {name: value for name, value in settings.items() if name not in JUDGE_OPTIONS}
        criterion, model = own.pop("criterion", None), own.pop("model", None)
        if criterion is None:
            raise InputError('no criterion: say by what, as in criterion="coherence", or in geval_settings')
        if not model:
            raise InputError(
                "no judge: name one with --geval-model, with geval_model in the ini file, or in $GEVAL_MODEL"
            )
        if unknown := set(own) - set(inspect.signature(GEval).parameters):
            raise InputError(f"unknown setting {', '.join(sorted(unknown))}: neither a field of a sample nor of GEval")
        if isinstance(model, Judge):
            if offline:
                raise InputError("--geval-offline needs a model string: a judge that is built has no kept replies")
            judge = model
        elif offline and not cache:
            raise InputError("--geval-offline needs a --geval-cache: pytest's own cache is switched off")
        else:
            judge = LiteLLMJudge(model, cache=ReplyCache(cache, only=offline) if cache else None, **options)
        self._judge = judge
        self._new: Callable[[], GEval] = partial(GEval, criterion, judge, **own)
        first = self._new()
        self.criterion = first.criterion
        self._share_requests = first.recipe.batched
        self._known: dict[str, Rating] = {}
        self._said: set[str] = set()

    def rate(self, samples: Sequence[Sample]) -> tuple[list[Rating], Usage]:
        """A rating for each, and what those cost that were not known; one without a score is asked for again next time.

        Raises:
            InputError: a sample lacks a field that the criterion needs.
            JudgeError: the judge cannot be asked at all; offline, a reply is not there.
        """
        if self._share_requests:  # then a rating depends on what is asked about beside it
            ratings = list(self._new().rate_many(samples))
            return ratings, sum((rating.usage for rating in ratings), Usage())
        missing = {each.digest: each for each in samples if each.digest not in self._known}
        log.addFilter(self._once)
        try:
            new = run(self._ask(list(missing.values())))
        finally:
            log.removeFilter(self._once)
        known = self._known | new
        self._known |= {digest: rating for digest, rating in new.items() if rating.score is not None}
        spent = sum((rating.usage for rating in new.values()), Usage())
        return [replace(known[each.digest], sample=each) for each in samples], spent

    def _once(self, record: logging.LogRecord) -> bool:
        """Whether a warning is new: what the judge lacks holds for all samples."""
        new = record.getMessage() not in self._said
        self._said.add(record.getMessage())
        return new

    async def _ask(self, samples: Sequence[Sample]) -> dict[str, Rating]:
        # A `GEval` learns from replies how to ask for the next. Here each sample has its own, so that what is asked,
        # and with it what the kept replies answer, does not depend on which tests ran before.
        jobs = (self._new().arate(sample) for sample in samples)
        async with aclosing(concurrently(jobs, self._judge.concurrency, ordered=True)) as ratings:
            return {rating.sample.digest: rating async for rating in ratings}
