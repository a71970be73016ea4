"""How biased and how inconsistent a judge is, on given data.

The checks are made one after the other, the cheapest first, and a recipe for this judge is drawn from what they found.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..agreement.intervals import Figure
from ..criteria import Criterion
from ..judge.base import Judge
from .checks.common import GAIN, PREFERRED, STABLE, TEMPERATURES
from .results import Check, Choice, Recipe


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
