"""Which of two is better? A judge's verdicts on pairs, and the ranking of many candidates from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .criteria import Criterion, find_criterion
from .errors import InputError
from .fence import ControlTokens
from .judge.base import Judge, Reply, Usage
from .judge.judges import judge_of
from .judge.loops import concurrently, run
from .judge.sampling import Method, Question, Readout, Sampling
from .judged import judged
from .prompts import ComparisonPrompt, Kind
from .reading.distribution import Reading
from .reading.verdict import read_verdict, read_verdict_logprobs
from .samples import Sample, SampleLike, to_sample
from .signature import Signature

if TYPE_CHECKING:
    from .ranking.outcomes import Outcome, Ranking


@dataclass(frozen=True)
class Verdict:
    """A judge's answer about two candidates, shown in one order.

    Attributes:
        first, second: the candidates, as they were shown.
        p_first: P(first is better) in [0, 1], .5 for a tie; None where there is no answer, and `error` says why.
        coverage: with log-probabilities the mass of the labels, with samples the share that could be read.
        bounds: what `p_first` could be at the least and the most if what was not covered were known.
        method: `logprobs`, `samples` or `single`.
        n_valid, n_failed: replies that were read, and those that were not.
        text: the first reply that was read.
        usage, signature, served: as in a `Rating`.
    """

    first: Sample
    second: Sample
    p_first: float | None
    coverage: float
    bounds: tuple[float, float]
    method: Method
    n_valid: int
    n_failed: int
    text: str
    error: str | None
    usage: Usage
    signature: Signature
    served: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """One row of a file of verdicts."""
        return {
            "doc_id": self.first.doc_id,
            "first": self.first.id,
            "second": self.second.id,
            "p_first": self.p_first,
            "coverage": self.coverage,
            "bounds": list(self.bounds),
            "method": self.method,
            "n_valid": self.n_valid,
            "n_failed": self.n_failed,
            "response": self.text,
            "error": self.error,
            "usage": vars(self.usage),
            "signature": str(self.signature),
            "served": list(self.served),
            "sample": f"{self.first.digest}-{self.second.digest}",
        }


@dataclass(frozen=True)
class Comparison:
    """Two candidates compared in both orders.

    Attributes:
        there: the verdict with the first candidate shown first.
        back: the verdict with the second candidate shown first.
    """

    there: Verdict
    back: Verdict

    @property
    def p_orders(self) -> tuple[float | None, float | None]:
        """P(first is better) where it was shown first, and where it was shown second."""
        return self.there.p_first, None if self.back.p_first is None else 1 - self.back.p_first

    @property
    def p_first(self) -> float | None:
        """P(first is better), the mean over both orders, which takes the position's pull out; None without both."""
        one, other = self.p_orders
        return None if one is None or other is None else (one + other) / 2

    @property
    def flipped(self) -> bool | None:
        """Whether the verdict changes with the order."""
        one, other = self.p_orders
        return None if one is None or other is None else _side(one) != _side(other)

    @property
    def error(self) -> str | None:
        """Why there is no answer."""
        return self.there.error or self.back.error

    @property
    def usage(self) -> Usage:
        """What both orders cost."""
        return self.there.usage + self.back.usage


def _side(p: float) -> int:
    return (p > 0.5 + 1e-9) - (p < 0.5 - 1e-9)


@dataclass(frozen=True)
class RankedDocument:
    """The candidates of one document, ranked.

    Attributes:
        samples: the candidates by id.
        verdicts: all that the judge was asked.
        ranking: scores, standard errors and notes, by candidate id.
    """

    samples: dict[str, Sample]
    verdicts: list[Verdict]
    ranking: Ranking

    @property
    def outcomes(self) -> list[Outcome]:
        """The verdicts as the pure functions of `ranking` take them."""
        return outcomes(self.verdicts)

    def rows(self, criterion: Criterion) -> Iterator[dict[str, Any]]:
        """One row per candidate, best first, in the manner of a ratings file.

        `calls` and `usage` are of the comparisons that the candidate took part in: each stands in two rows.
        """
        ranks = self.ranking.ranks()
        for name in sorted(self.samples, key=lambda name: ranks[name] or len(ranks) + 1):
            sample = self.samples[name]
            own = [verdict for verdict in self.verdicts if sample.id in (verdict.first.id, verdict.second.id)]
            usage = sum((verdict.usage for verdict in own), Usage())
            score = self.ranking.scores[name]
            yield {
                "id": sample.id,
                "doc_id": sample.doc_id,
                "system_id": sample.system_id,
                "criterion": criterion.name,
                "score": score,
                "rank": ranks[name],
                "std_error": self.ranking.std_errors[name],
                "calls": len(own),
                "method": self.ranking.method,
                "n_valid": sum(verdict.p_first is not None for verdict in own),
                "n_failed": sum(verdict.p_first is None for verdict in own),
                "error": None if score is not None else next((v.error for v in own if v.error), "never compared"),
                "usage": vars(usage),
                "signature": str(own[0].signature) if own else None,
                "human": sample.human_score(criterion),
            }


class Comparer:
    """Compares texts pairwise by one criterion with one judge.

    Args:
        criterion: as for `GEval`; its scale plays no part.
        model: as for `GEval`.
        kind: the prompt: `bare`, the question alone, or `instructed` (Liusie et al. 2024, figure 2).
        ties: let the judge answer that both are equally good.
        control_tokens: as for `GEval`.
        n, temperature, readout: as for `GEval`.
        options: passed to `LiteLLMJudge`.

    Raises:
        InputError: an unknown criterion, kind or option value; or the criterion is a rubric.
        JudgeError: no judge is there; from the methods, when it cannot be asked.
    """

    def __init__(
        self,
        criterion: str | Criterion,
        model: str | Judge | None = None,
        *,
        kind: Kind = "instructed",
        ties: bool = False,
        control_tokens: ControlTokens = "inert",
        n: int | None = None,
        temperature: float | None = None,
        readout: Readout = "auto",
        **options: Any,
    ) -> None:
        self.criterion = find_criterion(criterion)
        if self.criterion.by_items:
            raise InputError(f"criterion {self.criterion.name!r} is a rubric, by which a text is rated, not compared")
        self.prompt = ComparisonPrompt(self.criterion, kind, ties, control_tokens)
        self.judge = judge_of(model, options)
        self.sampling = Sampling(self.judge, n, temperature, readout)

    def compare(self, first: SampleLike, second: SampleLike, **fields: str) -> Comparison:
        """Compare two candidates in both orders; `source`, `reference` and `context` as keywords.

        Raises:
            InputError: a candidate lacks a field that the criterion needs.
            JudgeError: the judge cannot be asked at all. Whatever else fails is in `error`.
        """
        return run(self.acompare(first, second, **fields))

    async def acompare(self, first: SampleLike, second: SampleLike, **fields: str) -> Comparison:
        """Compare two candidates in both orders; see `compare`."""
        one, other = (self._sample(each, fields) for each in (first, second))
        verdicts = [verdict async for verdict in self.averdicts([(one, other), (other, one)])]
        return Comparison(*verdicts)

    def _sample(self, given: SampleLike, fields: Mapping[str, str]) -> Sample:
        """What is compared of a candidate: one text, or one conversation as a whole."""
        sample, *others = judged(given if isinstance(given, Sample) else to_sample(given, **fields), self.criterion)
        if others:
            raise InputError(f"criterion {self.criterion.name!r} judges each part of a sample: no two can be compared")
        return sample

    async def averdict(self, first: Sample, second: Sample) -> Verdict:
        """The judge's answer about two candidates, shown in this order."""
        shown = tuple(self.prompt.shown(first, second).values())
        question = Question(
            messages=self.prompt.messages(first, second),
            read=partial(_read, shown),
            start=self.prompt.start,
            stop=None,
            room=8,
            about=f"{first.id}, {second.id}",
        )
        sampled = await self.sampling.ask([question])
        combined = sampled.combined
        return Verdict(
            first=first,
            second=second,
            p_first=combined.score,
            coverage=combined.coverage,
            bounds=combined.bounds,
            method=sampled.method,
            n_valid=combined.n_valid,
            n_failed=combined.n_failed,
            text=sampled.text,
            error=combined.error,
            usage=sampled.usage,
            signature=self.sampling.signature(self.parts(), sampled),
            served=sampled.served,
        )

    def parts(self) -> dict[str, str]:
        """What a signature says of the settings, whatever comes out."""
        return {
            "model": self.judge.name,
            "criterion": f"{self.criterion.name}@{self.criterion.hash}",
            "prompt": self.prompt.hash,
            "form": f"compare_{self.prompt.kind}" + ("_ties" if self.prompt.ties else ""),
            **({"control_tokens": "kept"} if self.prompt.control_tokens == "kept" else {}),
        }

    def expected(self) -> dict[str, set[str]]:
        """The values that each part of this judge's signatures can have, as far as that is known before any verdict."""
        return self.sampling.expected(self.parts())

    async def averdicts(self, pairs: Sequence[tuple[Sample, Sample]]) -> AsyncGenerator[Verdict]:
        """The answers about many pairs, asked concurrently, in the pairs' order."""
        jobs = (self.averdict(first, second) for first, second in pairs)
        async with aclosing(concurrently(jobs, self.sampling.width, ordered=True)) as verdicts:
            async for verdict in verdicts:
                yield verdict

    def rank(self, samples: Sequence[Sample], **options: Any) -> RankedDocument:
        """Rank the candidates of one document; see `arank`."""
        return run(self.arank(samples, **options))

    async def arank(
        self,
        samples: Sequence[Sample],
        *,
        select: str = "symmetric",
        budget: int | None = None,
        method: str = "bradley-terry",
        seed: int = 0,
        known: Mapping[tuple[str, str], Verdict] = MappingProxyType({}),
        keep: Callable[[Verdict], None] = lambda verdict: None,
    ) -> RankedDocument:
        """Rank the candidates of one document from pairwise comparisons.

        Args:
            samples: the candidates, told apart by their `id`.
            select: which pairs are compared: a scheme of `ranking.select`, or `active`, which asks next what would
                teach the most under the model fitted so far.
            budget: calls at most; the default is all that the scheme allows, for `active` half of all ordered pairs.
            method: a key of `ranking.METHODS`.
            seed: decides all that is random in the selection.
            known: verdicts that are there already, by the ids in the order shown; they are not asked for again.
            keep: is handed each new verdict at once.

        Raises:
            InputError: two candidates have the same id, or an unknown scheme or method.
        """
        from . import ranking

        if method not in ranking.METHODS:
            raise InputError(f"unknown ranking method {method!r}; known: {', '.join(ranking.METHODS)}")
        by_id = {sample.id: sample for sample in samples}
        if len(by_id) < len(samples):
            raise InputError("the candidates of one document must have different ids")
        verdicts: list[Verdict] = []
        names = list(by_id)

        async def ask(pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
            new = [pair for pair in pairs if pair not in known]
            answers = {}
            async with aclosing(self.averdicts([(by_id[a], by_id[b]) for a, b in new])) as asked:
                async for verdict in asked:
                    keep(verdict)
                    answers[verdict.first.id, verdict.second.id] = verdict
            return [known.get(pair) or answers[pair] for pair in pairs]

        if select == "active":
            limit = budget if budget is not None else len(names) * (len(names) - 1) // 2
            while len(verdicts) < limit:
                count = min(limit - len(verdicts), max(1, len(names) // 2))
                pairs = ranking.next_comparisons(names, outcomes(verdicts), count, seed)
                if not pairs:
                    break
                verdicts += await ask(pairs)
        else:
            try:
                pairs = ranking.select(names, select, budget, seed)
            except ValueError as error:
                raise InputError(str(error)) from None
            verdicts = await ask(pairs)
        return RankedDocument(by_id, verdicts, ranking.METHODS[method](outcomes(verdicts), names))


def outcomes(verdicts: Sequence[Verdict]) -> list[Outcome]:
    """Verdicts as outcomes between candidate ids."""
    from .ranking.outcomes import Outcome

    return [Outcome(verdict.first.id, verdict.second.id, verdict.p_first) for verdict in verdicts]


def _read(shown: Sequence[str], reply: Reply, logprobs: bool) -> Reading:
    if logprobs:
        return read_verdict_logprobs(reply.logprobs or (), shown=shown, text=reply.text)
    return read_verdict(reply.text, shown=shown)
