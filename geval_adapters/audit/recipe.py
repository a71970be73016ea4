"""How to run this judge on these data: Stureborg et al.'s recipe (2024, Table 6), where the audit says no other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..agreement.intervals import Figure
from ..criteria import Criterion
from .checks.common import PREFERRED, TEMPERATURES
from .checks.granularity import WAYS
from .checks.inconsistency import APART, REPEATABLE
from .checks.steps import STORED_STEPS, WRITTEN
from .ratings import GAIN
from .results import Check, Choice, Recipe


def recipe(
    checks: Sequence[Check],
    criterion: Criterion,
    spec: str,
    model: str,
    weighs: bool,
    source: str,
    command: Sequence[str] = (),
) -> Recipe:
    """The recipe that this judge's figures on these data give.

    A setting takes the place of the default only where it agrees better with people and the whole interval of that
    gain, which allows for the number of settings tried, lies above zero: where all are equally good, one is chosen for
    its gain in less than one audit in twenty.

    Args:
        checks: what the audit came to.
        criterion: what is rated.
        spec: how it was named on the command line.
        model: how the command line names the judge; empty where its other options do.
        weighs: whether it gives log-probabilities.
        source: the samples' file.
        command: more options of the audit's command line, which `geval score` needs as well.
    """
    own = {check.name: check for check in checks if check.criterion == criterion.name}

    def figures(check: str, name: str) -> dict[str, Figure]:
        statistics = own[check].statistics if check in own else ()
        return {each.subject: each.figure for each in statistics if each.name == name}

    def winner(check: str, subjects: Sequence[str]) -> str | None:
        """The subject with the largest gain in agreement, if its interval leaves no doubt that it is one."""
        gains = {name: gain for name, gain in figures(check, GAIN).items() if name in subjects and (gain.low or 0) > 0}
        return max(gains, key=lambda name: gains[name].value or 0.0, default=None)

    def because(subject: str | None, check: str, otherwise: str) -> str:
        gain = figures(check, GAIN).get(subject or "")
        return f"τ with people rises by {gain.value:.2f} [{gain.low:.2f}, {gain.high:.2f}]" if gain else otherwise

    def measured(check: str) -> bool:
        return any(gain.low is not None for gain in figures(check, GAIN).values())

    choices = []
    best = winner("granularity", [f"{name}, {way}" for name in ("1-5", "1-10", "1-100") for way in WAYS])
    if criterion.scale.words and not criterion.scale.worded:
        best, scale, why = None, str(criterion.scale), "the criterion's definition names the steps of this scale"
    else:
        scale = best.rpartition(", ")[0] if best else PREFERRED
        tried = "no setting was better than the default" if measured("granularity") else "not measured here"
        why = because(best, "granularity", f"{tried}: the cheapest is {PREFERRED}, one reply (Table 6)")
    choices.append(Choice("scale", scale, why, measured("granularity")))

    analysis = winner("temperature", [f"analysis first, temperature {each:g}" for each in TEMPERATURES])
    steady = figures("inconsistency", APART).get("samples")
    wavers = steady is not None and steady.low is not None and steady.low > REPEATABLE
    averaged = bool(analysis and not analysis.endswith(" 0")) or bool(best and best.endswith("averaged")) or wavers
    form = "analyze_rate" if analysis else "rate_explain"
    tried = "no analysis was better than none" if measured("temperature") else "not measured here"
    why = because(analysis, "temperature", f"{tried}: the cheapest is no chain of thought (Table 6)")
    choices.append(Choice("form", form, why, measured("temperature")))
    if wavers and steady:
        why = f"two replies lie {steady.value:.2f} of the scale apart"
    else:
        why = "averages agree better" if averaged else "the cheapest is one reply at temperature 0 (Table 6)"
    if not averaged:
        n, heat, readout = 1, "0", "samples"
    elif weighs and not analysis:
        n, heat, readout = 1, "0", "logprobs"
    else:
        n, heat, readout = 20, analysis.rpartition(" ")[2] if analysis else "1", "samples"
    choices.append(Choice("replies", f"{n} at temperature {heat}, read by {readout}", why, steady is not None))

    gained = winner("steps", (WRITTEN, STORED_STEPS))
    usual = "stored" if criterion.steps else "none"
    plan = {WRITTEN: "auto", STORED_STEPS: "stored"}.get(gained or "", usual)
    tried = "no steps were better than none" if measured("steps") else "as the criterion has it"
    choices.append(Choice("steps", plan, because(gained, "steps", tried), measured("steps")))
    words = [
        *("geval", "score", source, "--criterion", spec, *(("--model", model) if model else ()), *command),
        *(() if scale == str(criterion.scale) else ("--scale", scale)),
        *("--form", form, "--steps", plan, "--n", str(n), "--temperature", heat, "--readout", readout),
    ]
    return Recipe(criterion.name, tuple(choices), shlex.join(words))
