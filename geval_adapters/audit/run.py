"""An audit: a request, its run, and at any time what the answers so far come to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from ..agreement.judged import JudgedFile
from ..criteria import Criterion
from ..errors import InputError
from ..judge.base import Judge, Usage
from ..judge.loops import concurrently
from ..order import beside_each_other
from ..samples import Sample
from .asking import LEAST, Asking, Log, Plan, Question, Row, Tally, Unmeasurable
from .checks import CHECKS, STORED
from .ratings import Reliability, documents_of
from .recipe import recipe
from .results import Audit, Check

BUDGET = 1000
"""Calls that an audit makes for each criterion unless told."""


@dataclass(frozen=True)
class Request:
    """What is to be audited.

    Attributes:
        source: where the samples come from.
        samples: what is rated.
        criteria: by the name under which they were asked for.
        judge: who is asked.
        checks: keys of `CHECKS`.
        budget: calls in total; the default is `BUDGET` for each criterion.
        seed: decides in which order samples are drawn.
        reliability: between which limits the reliability of people's scores is said to lie.
        model: how the recipe's command line names the judge, empty where `command` does; the default is its own name.
        command: the beginning of the recipe's command line, for what the audit was given and `geval score` needs, too.

    Raises:
        InputError: an unknown check.
    """

    source: str
    samples: Sequence[Sample]
    criteria: Mapping[str, Criterion]
    judge: Judge
    checks: Sequence[str] = tuple(CHECKS)
    budget: int | None = None
    seed: int = 0
    reliability: Reliability = None
    model: str | None = None
    command: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "checks", known_checks(self.checks, CHECKS))

    @property
    def calls(self) -> int:
        """How many calls may be made."""
        return self.budget or BUDGET * len(self.criteria)


@dataclass
class _Part:
    """A check of one criterion in a run."""

    name: str
    criterion: Criterion
    plan: Plan | None = None
    reason: str = "nothing was asked before the audit was stopped"
    begun: int = 0

    @property
    def label(self) -> str:
        return f"{self.name}: {self.criterion.name}"

    @property
    def next(self) -> float:
        """What share of its turn the check has had: those that have had the least come next.

        Of the calls a check gets a part in proportion to the root of its calls per step: for a given budget that makes
        the sum of the checks' variances the least (Neyman's allocation). No check is much behind the others, so that
        an audit that is stopped leaves all of them partly measured.
        """
        assert self.plan is not None
        return float(self.begun * self.plan.calls**0.5)


@dataclass
class AuditRun:
    """An audit under way.

    Attributes:
        request: what was asked for.
        log: answers are kept in it, and taken from it.
        stopped: whether it has not come to its end.
    """

    request: Request
    log: Log | None = None
    stopped: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        request = self.request
        self.asking = Asking(
            request.judge, request.samples, list(request.criteria.values()), seed=request.seed,
            reliability=request.reliability, log=self.log,
        )  # fmt: skip
        first = list(request.criteria.values())[:1]
        self._parts = [
            _Part(name, criterion)
            for name in request.checks
            for criterion in (first if name == "anchoring" else request.criteria.values())
        ]

    def watch(self, told: Callable[[int, Usage], None]) -> None:
        """From now on tell with each new answer how many have no score, and what all of them cost."""
        self.asking.watch = told

    async def ask(self) -> None:
        """Ask until the budget is spent or nothing is left to be asked.

        Raises:
            JudgeError: the judge cannot be asked at all; a `StopError`, when its own budget is spent.
        """
        for part in self._parts:
            self.asking.preparing = part.label
            try:
                part.plan = await CHECKS[part.name](self.asking, part.criterion)
            except (Unmeasurable, InputError) as error:  # the criterion or the data have no place for what it changes
                part.reason = str(error)
        width = 2 * self.request.judge.concurrency
        while turn := list(self._round()):
            # Document by document, and what begins alike together: a cache serves it, and checks go on side by side.
            place = {document: place for place, document in enumerate(dict.fromkeys(job[0].document for job in turn))}
            turn.sort(key=lambda job: (place[job[0].document], job[0].begins))
            keyed = (((job[0].document, job[0].begins), job) for job in turn)
            jobs = (self._answer(*job) for job, _ in beside_each_other(keyed, self.request.judge.concurrency))
            async with aclosing(concurrently(jobs, width, ordered=True)) as rows:
                async for _ in rows:
                    pass
        self.stopped = False

    def _answer(self, question: Question, part: _Part) -> Coroutine[Any, Any, Row]:
        return self.asking.answer(question, part.label)

    def _round(self) -> Iterator[tuple[Question, _Part]]:
        """The next questions that the budget surely allows: a call may turn out to be cheaper than planned.

        In the first round these are the few that each check needs to come to something; after it, all others.
        """
        left = self.request.calls - self.asking.calls
        asked = set(self.asking.answers)
        open_ = [part for part in self._parts if part.plan is not None]
        few = not any(part.begun for part in open_)
        while open_:
            part = min(open_, key=lambda each: each.begun if few else each.next)
            if few and part.begun >= LEAST:
                return
            assert part.plan is not None
            if part.begun >= len(part.plan.steps):
                open_.remove(part)
                continue
            new = {each.asked: each for each in part.plan.steps[part.begun].values() if each.asked not in asked}
            calls = sum(each.calls for each in new.values())
            if calls > left:
                open_.remove(part)  # for this round: others may be cheaper, or share its questions
                continue
            part.begun += 1
            left -= calls
            asked |= new.keys()
            yield from ((each, part) for each in new.values())

    def result(self) -> Audit:
        """What the answers so far come to."""
        request, asking = self.request, self.asking
        checks = tuple(self._concluded(part) for part in self._parts)
        model = request.judge.name if request.model is None else request.model
        recipes = tuple(
            recipe(checks, criterion, spec, model, bool(asking.weighs), request.source, request.command)
            for spec, criterion in request.criteria.items()
        )
        notes = ("stopped before its end: what was answered until then is shown",) if self.stopped else ()
        documents = len({sample.doc_id or sample.id for sample in request.samples})
        return Audit(
            request.judge.name, request.source, len(request.samples), documents, request.calls, checks, recipes, notes
        )

    def _concluded(self, part: _Part) -> Check:
        tally = self.asking.tallies.get(part.label, Tally())
        return replace(self._made(part), usage=tally.usage, asked=tally.asked, failed=tally.failed)

    def _made(self, part: _Part) -> Check:
        plan = part.plan
        if plan is None:
            return Check(name=part.name, criterion=part.criterion.name, reason=part.reason)
        answers = self.asking.answers
        answered = [
            (place, {name: answers[question.asked] for name, question in step.items()})
            for place, step in enumerate(plan.steps)
            if all(question.asked in answers for question in step.values())
        ]
        done, wanted = len(answered), len(plan.steps)
        if done < LEAST:
            why = f"only {done} of {wanted} were asked about, {plan.calls} calls each: raise --budget"
            check = Check(name=part.name, criterion=part.criterion.name, reason=why)
        else:
            check = concluded(part.name, part.criterion, lambda: plan.conclude(answered))
            cut = (f"{done} of {wanted} were asked about: the budget is spent",) if done < wanted else ()
            check = replace(check, notes=(*check.notes, *cut))
        return replace(check, calls=plan.calls, steps=done, planned=wanted)


async def audit(request: Request, log: Log | None = None) -> Audit:
    """Audit a judge on samples.

    Raises:
        JudgeError: the judge cannot be asked at all.
    """
    run = AuditRun(request, log)
    await run.ask()
    return run.result()


def audit_ratings(
    judged: JudgedFile, criterion: Criterion, checks: Sequence[str] = tuple(STORED), reliability: Reliability = None
) -> Audit:
    """Audit stored ratings of one criterion; nobody is asked.

    Raises:
        InputError: an unknown check, or one that needs a judge.
    """
    items = list(judged.items.values())
    made = [
        concluded(name, criterion, lambda check=STORED[name]: check(items, criterion, reliability))  # type: ignore[misc]
        for name in known_checks(checks, STORED)
    ]
    notes = (f"{judged.unread} replies could not be read",) if judged.unread else ()
    documents = len(set(documents_of(items)))
    return Audit("stored ratings", judged.file, len(items), documents, None, tuple(made), notes=notes)


def known_checks(names: Sequence[str], allowed: Collection[str]) -> list[str]:
    """The checks of these names in the order in which they are shown.

    Raises:
        InputError: one is not allowed.
    """
    if wrong := [name for name in names if name not in allowed]:
        why = "needs a judge: audit an INPUT" if wrong[0] in CHECKS else "is unknown"
        raise InputError(f"the check {wrong[0]!r} {why}; possible here: {', '.join(allowed)}")
    return [name for name in allowed if name in names]


def concluded(name: str, criterion: Criterion, make: Callable[[], Check]) -> Check:
    """A check with its name, or the reason why it came to nothing."""
    try:
        check = make()
    except Unmeasurable as error:
        return Check(name=name, criterion=criterion.name, reason=str(error))
    counted = [statistic for statistic in check.statistics if statistic.tolerated] or check.statistics
    silent = all(statistic.figure.value is None for statistic in counted)
    reason = "too few ratings could be read, or all of them are equal" if silent else ""
    return replace(check, name=name, criterion=check.criterion or criterion.name, reason=reason)
