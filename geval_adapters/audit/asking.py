"""What an audit asks of a judge: questions that name themselves, so that equal ones are asked once, within a budget."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Protocol

from ..agreement.judged import Item, replies_of
from ..comparison import Comparer
from ..criteria import Criterion
from ..errors import InputError, JudgeError
from ..judge import local
from ..judge.base import Judge, Usage
from ..judge.sampling import Readout
from ..prompts import SeveralPrompt
from ..rating import FAILURES, GEval
from ..reading.text import read_text
from ..samples import Sample
from ..signature import Signature
from .ratings import Reliability
from .results import Check

Row = dict[str, Any]

REPLIES = 4
"""Replies that are averaged, or compared with each other, where a check samples."""
SAMPLED = {"n": REPLIES, "temperature": 1.0}
LEAST = 3
"""Samples below which a check comes to nothing."""


class Unmeasurable(Exception):  # noqa: N818
    """Why a check cannot be made on this judge and these data."""


class Log(Protocol):
    """Where answers are kept for the next run."""

    def resume(self, take: Callable[[Row], None]) -> None:
        """Hand over each row that is there."""
        ...

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        ...


@dataclass(frozen=True)
class Question:
    """Something that a judge can be asked.

    Attributes:
        asked: names all that could change the answer; equal questions are asked once. A retest is another draw.
        calls: how many calls it takes at the most.
        ask: asks it.
        document: the document that it is about; "" for none.
        begins: how its prompt begins: one after the other, questions with the same beginning are cheaper.
    """

    asked: str
    calls: int
    ask: Callable[[], Awaitable[Row]] = field(compare=False, repr=False)
    document: str = field(default="", compare=False, repr=False)
    begins: tuple[str, ...] = field(default=(), compare=False, repr=False)


Step = Mapping[str, Question]
Answered = Sequence[tuple[int, Mapping[str, Row]]]
"""The steps of a plan that have all their answers: which one it is, and the answers by the names of its questions."""


@dataclass(frozen=True)
class Plan:
    """What a check asks, one step for each sample or pair, and what it makes of the answers to some of the steps."""

    steps: Sequence[Step]
    conclude: Callable[[Answered], Check]

    @property
    def calls(self) -> int:
        """The calls that one step takes."""
        return max((sum(question.calls for question in step.values()) for step in self.steps[:1]), default=0)


@dataclass
class Tally:
    """What a check has cost, and how much of it came to no score."""

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    failed: int = 0


class Asking:
    """Makes questions about samples, asks a judge, and remembers the answers.

    Args:
        judge: who is asked.
        samples: what it is asked about.
        criteria: what it is asked to rate.
        seed: decides in which order samples are drawn.
        reliability: between which limits people's reliability is said to lie.
        log: where answers are kept; those that it holds already are not asked for again, but count as
            calls once they are used: a resumed run comes to the same as one that was not interrupted.

    Attributes:
        samples: in the order in which they are drawn: a document's first candidate, the next document's, and so on.
        answers: by what was asked.
        tallies: what each check has cost.
        calls: made so far.
        weighs: whether the judge gives log-probabilities; None until it was asked.
        preparing: the check that is being planned, and pays for what is asked for that.
        watch: told with each new answer how many have no score, and what all of them cost.
    """

    def __init__(
        self,
        judge: Judge,
        samples: Sequence[Sample],
        criteria: Sequence[Criterion],
        *,
        seed: int = 0,
        reliability: Reliability = None,
        log: Log | None = None,
    ) -> None:
        self.judge = judge
        self.samples = list(_drawn(samples, random.Random(seed)))
        self.criteria = list(criteria)
        self.seed = seed
        self.reliability = reliability
        self.answers: dict[str, Row] = {}
        self.tallies: dict[str, Tally] = {}
        self.calls = 0
        self.weighs: bool | None = None
        self.preparing = ""
        self._log = log
        self.watch: Callable[[int, Usage], None] = lambda failed, usage: None
        self._before: dict[str, Row] = {}
        if log:
            log.resume(self._take)

    # --- ratings -----------------------------------------------------------------------------------------------------

    async def readout(self, criterion: Criterion) -> Readout:
        """How a single rating is read: `auto` from a judge with log-probabilities, else `samples`; one call tells."""
        if self.weighs is None and self.samples:
            geval = self.geval(criterion, readout="auto")
            row = await self.answer(self.rating(geval, self.samples[0]), self.preparing)
            self.weighs = row["method"] == "logprobs"
        return "auto" if self.weighs else "samples"

    async def plain(self, criterion: Criterion, **options: Any) -> GEval:
        """One rating at temperature 0: the expected value where the judge has log-probabilities."""
        return self.geval(criterion, **({"readout": await self.readout(criterion)} | options))

    async def averaged(self, criterion: Criterion) -> dict[str, Any]:
        """Settings that average: by log-probabilities where the judge has them, else several samples."""
        return {"readout": "auto"} if await self.readout(criterion) == "auto" else SAMPLED

    def geval(self, criterion: Criterion, **options: Any) -> GEval:
        """A `GEval` that takes one reply at temperature 0, read as text, unless told."""
        single: dict[str, Any] = {"n": 1, "temperature": 0.0, "readout": "samples"}
        return GEval(criterion, self.judge, **(single | options))

    def rating(self, geval: GEval, sample: Sample, draw: int = 0) -> Question:
        """A rating of a sample; another draw is a question of its own."""
        how = geval.way.sampling
        configuration = {
            "asked": "rating",
            "criterion": geval.criterion.key,
            "prompt": geval.way.parts()["prompt"],
            "form": geval.recipe.form,
            "n": str(how.n),
            "temperature": f"{how.temperature:g}",
            "readout": how.readout,
            **({"draw": str(draw)} if draw else {}),
        }

        async def ask() -> Row:
            return (await geval.arate(sample)).to_dict()

        rubric = geval.criterion.rubric or sample.rubric if geval.criterion.by_items else None
        return self._question(configuration, [sample], (how.n or 1) * len(rubric or "1"), ask)

    def beside(self, geval: GEval, sample: Sample, others: Sequence[Sample]) -> Question:
        """A rating of a sample that shares its request with others, by a `GEval` that puts several in one."""
        how = geval.way.sampling
        configuration = {
            "asked": "beside",
            "criterion": geval.criterion.key,
            "prompt": geval.way.parts()["prompt"],
            "readout": how.readout,
        }

        async def ask() -> Row:
            ratings = [each async for each in geval.arate_many([sample, *others])]
            return ratings[0].to_dict() | {"usage": vars(sum((each.usage for each in ratings), Usage()))}

        return self._question(configuration, [sample, *others], FAILURES, ask)

    def several(self, sample: Sample, criteria: Sequence[Criterion]) -> Question:
        """Scores by criterion, given in one answer at temperature 0, in this order."""
        prompt = SeveralPrompt(tuple(criteria))

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

        return self._question({"asked": "several", "prompt": prompt.hash}, [sample], 1, ask)

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

        question = self._question({"asked": "steps", "criterion": criterion.key}, [], 1, ask)
        row = await self.answer(question, self.preparing)
        if not row["steps"]:
            raise Unmeasurable(str(row["error"]))
        return list(row["steps"])

    # --- comparisons and perplexity ----------------------------------------------------------------------------------

    async def comparer(self, criterion: Criterion) -> Comparer:
        """Compares two candidates by one verdict."""
        return Comparer(criterion, self.judge, n=1, readout=await self.readout(criterion))

    def verdict(self, comparer: Comparer, first: Sample, second: Sample) -> Question:
        """Which of two candidates of a document is better; `score` is the probability that the first is."""
        criterion = comparer.criterion

        async def ask() -> Row:
            verdict = await comparer.averdict(first, second)
            return {
                "doc_id": first.doc_id,
                "first": first.id,
                "second": second.id,
                "score": verdict.p_first,
                "error": verdict.error,
                "usage": vars(verdict.usage),
            }

        configuration = {"asked": "verdict", "criterion": criterion.key, "prompt": comparer.prompt.hash}
        return self._question(configuration, [first, second], 1, ask)

    def perplexity(self, sample: Sample, text: str) -> Question:
        """The perplexity of a sample's text under the judge's own model where that is embedded, else the default.

        Raises:
            Unmeasurable: no embedded model is installed.
        """
        provider, _, model = self.judge.name.partition("/")
        model = model if provider == "local" else local.SMOLLM2
        if not local.is_installed():
            raise Unmeasurable(
                "needs log-probabilities of a given text, which chat providers do not give, and no embedded model is"
                f" installed: {local.how_to_install()}"
            )

        async def ask() -> Row:
            value = await asyncio.to_thread(local.perplexity, text, model) if text else None
            return {"score": value, "error": None, "usage": vars(Usage())}

        return self._question(
            {"asked": "perplexity", "by": str(model)}, [Sample(text, doc_id=sample.doc_id or sample.id)], 0, ask
        )

    # --- once ---------------------------------------------------------------------------------------------------------

    def _question(
        self, configuration: dict[str, str], samples: Sequence[Sample], calls: int, ask: Callable[[], Awaitable[Row]]
    ) -> Question:
        digests = "-".join(each.digest for each in samples)
        asked = Signature.of(model=self.judge.name, **configuration, sample=digests)
        around = [text or "" for each in samples[:1] for text in (each.source, each.context, each.reference)]
        document = next((each.doc_id or each.id for each in samples), "")
        return Question(str(asked), calls, ask, document, (configuration.get("prompt", ""), *around))

    async def answer(self, question: Question, check: str) -> Row:
        """The answer, from memory or from the judge; what it costs is the check's."""
        if question.asked in self.answers:
            return self.answers[question.asked]
        row = self._before.pop(question.asked, None)
        if row is None:
            row = await question.ask() | {"asked": question.asked, "signature": question.asked, "check": check}
            if self._log:
                self._log.write(row)
        usage = Usage(**row["usage"])
        tally = self.tallies.setdefault(check, Tally())
        tally.usage += usage
        tally.asked += 1
        tally.failed += row["error"] is not None
        self.calls += usage.requests
        self.answers[question.asked] = row
        self.watch(
            sum(each.failed for each in self.tallies.values()),
            sum((each.usage for each in self.tallies.values()), Usage()),
        )
        return row

    def _take(self, row: Row) -> None:
        if "asked" not in row:
            raise InputError("is no answer of an audit; name another --output")
        if row["error"] is None:  # the others are asked for again
            self._before[row["asked"]] = row


def item_of(sample: Sample, criterion: Criterion, row: Row) -> Item:
    """An answer as an item of a meta-evaluation."""
    return Item(
        sample.id,
        sample.doc_id,
        sample.system_id,
        row["score"],
        sample.human_score(criterion),
        replies_of(row),
        sample.output,
        sample.reference,
        sample.annotators_of(criterion),
    )


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
