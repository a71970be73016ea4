"""How biased and how inconsistent a judge is, on given data.

The checks are made one after the other, the cheapest first, and a recipe for this judge is drawn from what they found.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace

from .bias import Figure
from .checks import CHECKS, GAIN, PREFERRED, STABLE, STORED, TEMPERATURES, documents_of
from .criteria import Criterion
from .errors import InputError
from .findings import Audit, Check, Choice, Recipe
from .inquiry import Inquiry, Tally, Unmeasurable
from .judge import Judge, Usage
from .metaeval import Item, JudgedFile
from .runlog import RunLog
from .samples import Sample

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


def _recipe(
    checks: Sequence[Check], criterion: Criterion, spec: str, judge: Judge, weighs: bool, source: str
) -> Recipe:
    """Stureborg et al.'s recipe (Table 6), changed where this judge's figures on these data leave no doubt."""
    own = {check.name: check for check in checks if check.criterion == criterion.name}

    def figures(check: str, name: str) -> dict[str, Figure]:
        statistics = own[check].statistics if check in own else ()
        return {each.subject: each.figure for each in statistics if each.name == name}

    def winner(check: str, subjects: Sequence[str]) -> str | None:
        """The subject with the largest gain in agreement, if its interval leaves no doubt that it is one."""
        gains = {name: gain for name, gain in figures(check, GAIN).items() if name in subjects and (gain.low or 0) > 0}
        return max(gains, key=lambda name: gains[name].value or 0.0, default=None)

    def because(subject: str, check: str, otherwise: str) -> str:
        gain = figures(check, GAIN).get(subject)
        return f"τ with people rises by {gain.value:.2f} [{gain.low:.2f}, {gain.high:.2f}]" if gain else otherwise

    choices = []
    plain_scales = ("1-5", "1-10", "1-100")
    best = winner("granularity", [f"{name}, {way}" for name in plain_scales for way in ("single", "averaged")])

    def measured(check: str) -> bool:
        return any(gain.low is not None for gain in figures(check, GAIN).values())

    if criterion.scale.words and not criterion.scale.worded:
        best, scale, why = None, str(criterion.scale), "the criterion's definition names the steps of this scale"
    else:
        scale = best.rpartition(", ")[0] if best else PREFERRED
        doubt = "no other scale clearly agrees better with people" if measured("granularity") else "not measured"
        why = because(best or "", "granularity", f"Table 6; {doubt} here")
    choices.append(Choice("scale", scale, why, measured("granularity")))

    analysis = winner("temperature", [f"analysis first, temperature {each:g}" for each in TEMPERATURES])
    steady = figures("inconsistency", "α").get("samples")
    wavers = steady is not None and steady.value is not None and steady.value < STABLE[0]
    averaged = bool(analysis and not analysis.endswith(" 0")) or bool(best and best.endswith("averaged")) or wavers
    form = "analyze_rate" if analysis else "rate_explain"
    why = because(analysis or "", "temperature", "no chain of thought (Table 6)")
    choices.append(Choice("form", form, why, measured("temperature")))
    if wavers and steady:
        why = f"α between samples is {steady.value:.2f}"
    else:
        why = "averages agree better" if averaged else "one reply at temperature 0 (Table 6)"
    if not averaged:
        n, heat, readout = 1, "0", "samples"
    elif weighs and not analysis:
        n, heat, readout = 1, "0", "logprobs"
    else:
        n, heat, readout = 20, analysis.rpartition(" ")[2] if analysis else "1", "samples"
    choices.append(Choice("replies", f"{n} at temperature {heat}, read by {readout}", why, steady is not None))

    own_scale = scale == str(criterion.scale)
    gained = winner("steps", ("written by the judge", "stored") if own_scale else ("written by the judge",))
    usual = "stored" if criterion.steps and own_scale else "none"  # stored steps name the criterion's own scale
    plan = {"written by the judge": "auto", "stored": "stored"}.get(gained or "", usual)
    why = because(
        gained or "", "steps", "no clear gain in agreement" if measured("steps") else "as the criterion has it"
    )
    choices.append(Choice("steps", plan, why, measured("steps")))
    command = [
        *("geval", "score", source, "--criterion", spec, "--model", judge.name),
        *(() if own_scale else ("--scale", scale)),
        *("--form", form, "--steps", plan, "--n", str(n), "--temperature", heat, "--readout", readout),
    ]
    return Recipe(criterion.name, tuple(choices), shlex.join(command))
