"""Ranking a file: what was compared before, the verdicts as they come, and what they come to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import report
from ..comparison import Comparer, RankedDocument, Verdict
from ..errors import InputError, checked
from ..judge.base import Usage
from ..judge.loops import concurrently
from ..judge.sampling import Method
from ..samples import Sample, by_document
from ..signature import Signature
from .breaker import Breaker
from .input import Input
from .log import RunLog
from .progress import progress_bar

if TYPE_CHECKING:
    from ..ranking.documents import Ranked


@dataclass(frozen=True)
class VerdictRow:
    """What a row of a file of verdicts must hold for a run to go on from it."""

    first: str
    second: str
    p_first: float | None
    coverage: float
    bounds: tuple[float, float]
    method: Method
    n_valid: int
    n_failed: int
    response: str
    error: str | None
    usage: Usage
    signature: str
    sample: str
    served: tuple[str, ...] = ()

    def verdict(self, first: Sample, second: Sample) -> Verdict:
        """The verdict, given the samples that the row names."""
        return Verdict(
            first, second, self.p_first, self.coverage, self.bounds, self.method, self.n_valid, self.n_failed,
            self.response, self.error, self.usage, Signature.parse(self.signature), self.served,
        )  # fmt: skip


Groups = Mapping[str | None, Sequence[Sample]]
"""The candidates of each document."""

Known = Mapping[tuple[str, str], Verdict]
"""Verdicts by the candidates' ids, in the order shown."""

Rank = Callable[..., AsyncGenerator[tuple[str | None, RankedDocument]]]
"""What ranks documents, called as `rank_here` is: each document with its name, as they come."""


async def rank_here(
    comparer: Comparer, groups: Groups, known: Known, keep: Callable[[Verdict], None], **options: Any
) -> AsyncGenerator[tuple[str | None, RankedDocument]]:
    """Rank in this process; `known`, `keep` and the options are those of `Comparer.arank`."""

    async def ranked(name: str | None, samples: Sequence[Sample]) -> tuple[str | None, RankedDocument]:
        return name, await comparer.arank(samples, known=known, keep=keep, **options)

    jobs = (ranked(name, samples) for name, samples in groups.items())
    async with aclosing(concurrently(jobs, abreast(comparer, groups), ordered=False)) as documents:
        async for document in documents:
            yield document


def abreast(comparer: Comparer, groups: Groups) -> int:
    """How many documents to rank at once so that they keep the judge busy."""
    return max(1, comparer.sampling.width // min(map(len, groups.values())))


class RankRun:
    """`geval rank`: verdicts to the log as they come; rankings come from the verdicts.

    Raises:
        InputError: the log holds other things than verdicts of this judge on these samples.
    """

    def __init__(
        self, comparer: Comparer, data: Input, log: RunLog | None, max_failures: float, rank: Rank = rank_here
    ) -> None:
        self.comparer = comparer
        self.groups = by_document(data)
        self._ranked: dict[str | None, RankedDocument] = {}
        self._log = log
        self._rank = rank
        self._breaker = Breaker(max_failures)
        self._answered: dict[tuple[str, str], Verdict] = {}
        self._failed = 0
        self._usage = Usage()

    async def rank(self, **options: Any) -> None:
        """Rank each document's candidates."""
        if self._log:
            self._resume(self._log)
        with progress_bar(len(self.groups), 0) as tick:
            ranked = self._rank(self.comparer, self.groups, self._answered, self._keep, **options)
            async with aclosing(ranked) as documents:
                async for name, document in documents:
                    self._ranked[name] = document
                    tick(self._failed, report.cost(self._usage))
        self.comparer.judge.finish()

    def _resume(self, log: RunLog) -> None:
        expected = self.comparer.expected()
        samples = {sample.id: sample for group in self.groups.values() for sample in group}

        def take(row: dict[str, Any]) -> None:
            answered = checked(VerdictRow, row)
            first, second = samples.get(answered.first), samples.get(answered.second)
            if first is None or second is None or answered.error is not None:
                return
            verdict = answered.verdict(first, second)
            check_kind("verdicts", verdict.signature, expected)
            if answered.sample != f"{first.digest}-{second.digest}":
                raise InputError(f"{first.id!r} or {second.id!r} has another text there; name another --output")
            if (first.id, second.id) in self._answered:
                raise InputError(f"{first.id!r} and {second.id!r} have a verdict already; remove one of both")
            if answered.p_first is None or not 0 <= answered.p_first <= 1:
                raise InputError(f"p_first is {answered.p_first}, and no probability; remove the line")
            self._answered[first.id, second.id] = verdict
            self._usage += verdict.usage

        log.resume(take)

    def _keep(self, verdict: Verdict) -> None:
        if self._log:
            self._log.write(verdict.to_dict())
        self._usage += verdict.usage
        self._failed += verdict.p_first is None
        self._breaker.count(verdict.error)

    @property
    def documents(self) -> dict[str | None, RankedDocument]:
        """The documents that are ranked, in the order of the input."""
        return {name: self._ranked[name] for name in self.groups if name in self._ranked}

    def verdicts(self) -> Iterator[Verdict]:
        """All verdicts on the documents that are ranked."""
        for document in self.documents.values():
            yield from document.verdicts

    def result(self, method: str) -> Ranked:
        """What the verdicts on the documents that are ranked come to."""
        from ..ranking.documents import ranked

        criterion = self.comparer.criterion
        human: dict[tuple[str | None, Hashable], float] = {
            (name, sample.id): score
            for name, document in self.documents.items()
            for sample in document.samples.values()
            if (score := sample.human_score(criterion)) is not None
        }
        judged = {name: document.outcomes for name, document in self.documents.items()}
        return ranked(criterion.name, method, judged, human, systems=False)

    def texts(self) -> dict[tuple[str | None, str], str]:
        """The candidates' texts, by document and id."""
        return {
            (name, sample.id): sample.output
            for name, document in self.documents.items()
            for sample in document.samples.values()
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per candidate of the documents that are ranked."""
        for document in self.documents.values():
            yield from document.rows(self.comparer.criterion)


def check_kind(what: str, signature: Signature, expected: Mapping[str, Collection[str]]) -> None:
    """Raise InputError where a row is of another kind than this run's rows will be."""
    if wrong := signature.differences(expected):
        raise InputError(
            f"holds {what} that this run's cannot stand beside: {'; '.join(wrong)}."
            " Name another --output, or run as before"
        )
