"""How biased and how inconsistent a judge is, on given data.

The checks are made one after the other, the cheapest first, and a recipe for this judge is drawn from what they found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ..agreement.meta_eval import Item, JudgedFile
from ..criteria import Criterion
from ..errors import InputError
from ..judge.base import Judge, Usage
from ..runs.log import RunLog
from ..samples import Sample
from .asking import Inquiry, Tally, Unmeasurable
from .checks import CHECKS, STORED
from .checks.common import documents_of
from .recipe import _recipe
from .results import Audit, Check

BUDGET = 400
"""Calls that an audit makes for each criterion unless told."""


async def audit(
    source: str,
    samples: Sequence[Sample],
    criteria: Mapping[str, Criterion],
    judge: Judge,
    *,
    checks: Sequence[str] = tuple(CHECKS),
    budget: int | None = None,
    seed: int = 0,
    log: RunLog | None = None,
    watch: Callable[[int, Usage], None] = lambda failed, usage: None,
) -> Audit:
    """Audit a judge on samples.

    The calls are shared out among the checks, the cheapest first; what one leaves goes to those after it.

    Args:
        source: where the samples come from, for the command line of the recipe.
        samples: what is rated.
        criteria: by the name under which they were asked for.
        judge: who is asked.
        checks: keys of `CHECKS`.
        budget: calls in total; the default is `BUDGET` for each criterion.
        seed: decides which samples are drawn.
        log: answers are kept in it, and taken from it.
        watch: told with each new answer how many have no score, and what all of them cost.

    Raises:
        InputError: an unknown check.
        JudgeError: the judge cannot be asked at all.
    """
    chosen = known_checks(checks, CHECKS)
    budget = budget or BUDGET * len(criteria)
    inquiry = Inquiry(judge, samples, list(criteria.values()), budget=budget, seed=seed, log=log, watch=watch)
    plan = [
        (name, criterion)
        for name in chosen
        for criterion in (list(criteria.values())[:1] if name == "anchoring" else criteria.values())
    ]
    found = []
    # Of what is left a check gets a part in proportion to the root of its calls per sample: for a given budget that
    # makes the sum of the checks' variances the least (Neyman's allocation).
    weights = [CHECKS[name].calls ** 0.5 for name, _ in plan]
    for place, (name, criterion) in enumerate(plan):
        inquiry.begin(f"{name}: {criterion.name}", weights[place] / sum(weights[place:]))
        made = await _made(name, criterion, CHECKS[name].make(inquiry, criterion))
        tally = inquiry.tallies.get(inquiry.check, Tally())
        cut = inquiry.cut()
        found.append(
            replace(made, notes=(*made.notes, *cut), usage=tally.usage, asked=tally.asked, failed=tally.failed)
        )
    weighs = bool(inquiry.weighs)
    recipes = tuple(_recipe(found, criterion, spec, judge, weighs, source) for spec, criterion in criteria.items())
    documents = len({sample.doc_id or sample.id for sample in samples})
    return Audit(judge.name, source, len(samples), documents, budget, tuple(found), recipes)


class Stored:
    """Ratings that are there already."""

    def __init__(self, judged: JudgedFile) -> None:
        self.items = list(judged.items.values())

    async def base(self, criterion: Criterion) -> list[Item]:
        """The ratings."""
        return self.items


async def audit_ratings(judged: JudgedFile, criterion: Criterion, checks: Sequence[str] = tuple(STORED)) -> Audit:
    """Audit stored ratings of one criterion; nobody is asked.

    Raises:
        InputError: an unknown check, or one that needs a judge.
    """
    stored = Stored(judged)
    found = [await _made(name, criterion, STORED[name](stored, criterion)) for name in known_checks(checks, STORED)]
    documents = len(set(documents_of(stored.items)))
    notes = (f"{judged.unread} replies could not be read",) if judged.unread else ()
    return Audit("stored ratings", judged.file, len(stored.items), documents, None, tuple(found), notes=notes)


def known_checks(names: Sequence[str], allowed: Collection[str]) -> list[str]:
    """The checks of these names in the order in which they are made.

    Raises:
        InputError: one is not allowed.
    """
    if wrong := [name for name in names if name not in allowed]:
        why = "needs a judge: audit an INPUT" if wrong[0] in CHECKS else "is unknown"
        raise InputError(f"the check {wrong[0]!r} {why}; possible here: {', '.join(allowed)}")
    return [name for name in allowed if name in names]


async def _made(name: str, criterion: Criterion, doing: Awaitable[Check]) -> Check:
    try:
        check = await doing
    except Unmeasurable as error:
        return Check(name=name, criterion=criterion.name, reason=str(error))
    counted = [statistic for statistic in check.statistics if statistic.tolerated] or check.statistics
    silent = all(statistic.figure.value is None for statistic in counted)
    reason = "too few ratings could be read, or all of them are equal" if silent else ""
    return replace(check, name=name, criterion=check.criterion or criterion.name, reason=reason)
