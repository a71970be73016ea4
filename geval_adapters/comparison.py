"""Which of two is better? A judge's verdicts on pairs, and the ranking of many candidates from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from .criteria import Criterion, find_criterion
from .elicitation import Elicitation, Question, concurrently, run
from .errors import InputError
from .judge import Judge, Reply, Usage, judge_of
from .prompts import ComparisonPrompt, surroundings
from .rating import signature
from .readout import Reading, read_verdict, read_verdict_logprobs
from .samples import Sample

if TYPE_CHECKING:
    from .ranking import Outcome, Ranking


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
        usage, signature: as in a `Rating`.
    """

    first: Sample
    second: Sample
    p_first: float | None
    coverage: float
    bounds: tuple[float, float]
    method: str
    n_valid: int
    n_failed: int
    text: str
    error: str | None
    usage: Usage
    signature: str


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


class Comparer:
    """Compares texts pairwise by one criterion with one judge.

    Args:
        criterion: as for `GEval`; its scale plays no part.
        model: as for `GEval`.
        kind: the prompt: `bare`, the question alone, or `instructed` (Liusie et al. 2024, figure 2).
        ties: let the judge answer that both are equally good.
        n, temperature, readout: as for `GEval`.
        options: passed to `LiteLLMJudge`.

    Raises:
        InputError: an unknown criterion, kind or option value.
        JudgeError: no judge is there; from the methods, when it cannot be asked.
    """

    def __init__(
        self,
        criterion: str | Criterion,
        model: str | Judge | None = None,
        *,
        kind: str = "instructed",
        ties: bool = False,
        n: int | None = None,
        temperature: float | None = None,
        readout: str = "auto",
        **options: Any,
    ) -> None:
        self.criterion = find_criterion(criterion)
        self.prompt = ComparisonPrompt(self.criterion, kind, ties)
        self.judge = judge_of(model, options)
        self.elicitation = Elicitation(self.judge, n, temperature, readout)

    def compare(self, first: str | Sample, second: str | Sample, **fields: str) -> Comparison:
        """Compare two candidates in both orders; `source`, `reference` and `context` as keywords.

        Raises:
            InputError: a candidate lacks a field that the criterion needs.
            JudgeError: the judge cannot be asked at all. Whatever else fails is in `error`.
        """
        return run(self.acompare(first, second, **fields))

    async def acompare(self, first: str | Sample, second: str | Sample, **fields: str) -> Comparison:
        """Compare two candidates in both orders; see `compare`."""
        one, other = (
            each if isinstance(each, Sample) else Sample(each, **fields)  # type: ignore[arg-type]
            for each in (first, second)
        )
        verdicts = [verdict async for verdict in self.averdicts([(one, other), (other, one)])]
        return Comparison(*verdicts)

    async def averdict(self, first: Sample, second: Sample) -> Verdict:
        """The judge's answer about two candidates, shown in this order."""
        shown = (*surroundings(self.criterion, first).values(), first.output, second.output)
        question = Question(
            messages=self.prompt.messages(first, second),
            read=partial(_read, shown),
            start=self.prompt.start,
            stop=None,
            room=8,
        )
        elicited = await self.elicitation.ask([question])
        combined = elicited.combined
        return Verdict(
            first=first,
            second=second,
            p_first=combined.score,
            coverage=combined.coverage,
            bounds=combined.bounds,
            method=elicited.method,
            n_valid=combined.n_valid,
            n_failed=combined.n_failed,
            text=elicited.text,
            error=combined.error,
            usage=elicited.usage,
            signature=signature(
                model=self.judge.name,
                criterion=f"{self.criterion.name}@{self.criterion.hash}",
                prompt=self.prompt.hash,
                form=f"compare_{self.prompt.kind}" + ("_ties" if self.prompt.ties else ""),
                **self.elicitation.signature(elicited),
            ),
        )

    async def averdicts(self, pairs: Sequence[tuple[Sample, Sample]]) -> AsyncGenerator[Verdict]:
        """The answers about many pairs, asked concurrently, in the pairs' order."""
        jobs = (self.averdict(first, second) for first, second in pairs)
        async with aclosing(concurrently(jobs, self.elicitation.width, ordered=True)) as verdicts:
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
    ) -> RankedDocument:
        """Rank the candidates of one document from pairwise comparisons.

        Args:
            samples: the candidates, told apart by their `id`.
            select: which pairs are compared: a scheme of `ranking.select`, or `active`, which asks next what would
                teach the most under the model fitted so far.
            budget: calls at most; the default is all that the scheme allows, for `active` half of all ordered pairs.
            method: a key of `ranking.METHODS`.
            seed: decides all that is random in the selection.

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
        if select == "active":
            limit = budget if budget is not None else len(names) * (len(names) - 1) // 2
            while len(verdicts) < limit:
                count = min(self.elicitation.width, limit - len(verdicts), max(1, len(names) // 2))
                pairs = ranking.next_comparisons(names, outcomes(verdicts), count, seed)
                if not pairs:
                    break
                verdicts += [verdict async for verdict in self.averdicts([(by_id[a], by_id[b]) for a, b in pairs])]
        else:
            try:
                pairs = ranking.select(names, select, budget, seed)
            except ValueError as error:
                raise InputError(str(error)) from None
            verdicts = [verdict async for verdict in self.averdicts([(by_id[a], by_id[b]) for a, b in pairs])]
        return RankedDocument(by_id, verdicts, ranking.METHODS[method](outcomes(verdicts), names))


def outcomes(verdicts: Sequence[Verdict]) -> list[Outcome]:
    """Verdicts as outcomes between candidate ids."""
    from .ranking import Outcome

    return [Outcome(verdict.first.id, verdict.second.id, verdict.p_first) for verdict in verdicts]


def by_document(samples: Sequence[Sample]) -> dict[Hashable, list[Sample]]:
    """Samples by the document that they belong to: equal `doc_id`, or equal source."""
    groups: dict[Hashable, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.doc_id, []).append(sample)
    return groups


def _read(shown: Sequence[str], reply: Reply, logprobs: bool) -> Reading:
    if logprobs:
        return read_verdict_logprobs(reply.logprobs or (), shown=shown)
    return read_verdict(reply.text, shown=shown)
