"""How often `geval audit` accuses judges that are not at fault, and how often it finds faults that were planted.

Run `python benchmarks/audit.py [--audits 1000] [--seed 1000000] [--only length]`. Each audit is of 20 documents × 5
systems with three annotators. Nobody is asked: scores and verdicts are drawn (`audit_worlds.py`, `audit_judges.py`),
and the figures and verdicts are those of the checks' own `conclude`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterator
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the arrays are small: more threads only wait for each other

import numpy as np
from audit_judges import (
    CONSISTENCY,
    anchoring_audit,
    attack_audit,
    contradiction_audit,
    dress_audit,
    empty_audit,
    facts_audit,
    familiarity_audit,
    fluency_audit,
    granularity_audit,
    inconsistency_audit,
    length_audit,
    length_control_audit,
    order_audit,
    recipe_audit,
    scales_audit,
    self_preference_audit,
    settings_audit,
    source_audit,
)
from audit_worlds import (
    Kind,
    World,
    world,
)

from geval_adapters.agreement.intervals import bootstrap
from geval_adapters.audit import ratings as own_ratings
from geval_adapters.audit.checks import (
    contradiction,
    labels,
    persona,
    position,
    reference,
    rubric,
    steps,
    temperature,
)
from geval_adapters.audit.results import Check

FINE = ("ok", "unclear", "measured", "not measurable")


Audit = Callable[[World, Kind, float, bool], Check | str]
PERSONAS, PLANS = ["hhh", "human_annotator"], [steps.WRITTEN, steps.STORED_STEPS]
HEATS = [
    f"{form}, temperature {each}" for form in temperature.FORMS for each in ("0", "0.5", "1")
    if f"{form}, temperature {each}" != temperature.BASE
]  # fmt: skip
SETTINGS: dict[str, Audit] = {
    "steps": settings_audit(steps.BASE, PLANS, lambda each: steps.conclude(each, CONSISTENCY)),
    "persona": settings_audit(persona.BASE, PERSONAS, persona.conclude),
    "temperature": settings_audit(temperature.BASE, HEATS, temperature.conclude, averaged=4),
    "rubric": settings_audit(rubric.UPWARD, [rubric.DOWNWARD, rubric.SHUFFLED], rubric.conclude),
    "labels": settings_audit(labels.FIGURES, list(labels.LABELS), labels.conclude),
    "reference": settings_audit(reference.HIGH, [reference.LOW], reference.conclude),
}
CHECKS: dict[str, Audit] = {
    "source": source_audit,
    "self-preference": self_preference_audit,
    "length": length_audit,
    "length, equally good pairs": length_control_audit,
    "familiarity": familiarity_audit,
    **SETTINGS,
    "inconsistency": inconsistency_audit,
    "recipe": recipe_audit,
    "dress": dress_audit,
    "empty": empty_audit,
    "facts": facts_audit,
    "position": order_audit,
    "contradiction": contradiction_audit("contrary"),
    "contradiction, circles": contradiction_audit("circle"),
    "contradiction, a judge that repeats itself": contradiction_audit("repeats itself"),
    "attack": attack_audit,
    "anchoring": anchoring_audit,
    "granularity": granularity_audit,
    "source, of fluency": fluency_audit,
    "inconsistency, scales": scales_audit,
}
PLAIN = Kind()
KINDS: dict[str, dict[str, Kind]] = {
    "self-preference": {
        "systems far apart, reliability .9": Kind(0.9, spread=1.2),
        "systems far apart, reliability .6": Kind(0.6, spread=1.2),
        "the same, annotators not given": Kind(0.6, spread=1.2, known=False),
        "the same, said to be .5 to .7": Kind(0.6, spread=1.2, known=False, stated=(0.5, 0.7)),
    },
    "length": {
        f"r(length, quality) {r}, {words}": Kind(0.6, r_length=r, **extra)  # type: ignore[arg-type]
        for r in (0.3, 0.5)
        for words, extra in (
            ("reliability .6", {}),
            ("annotators not given", {"known": False}),
            ("said to be .5 to .7", {"known": False, "stated": (0.5, 0.7)}),
        )
    },
    "length, equally good pairs": {
        "r(length, quality) 0.5, reliability .6": Kind(0.6, r_length=0.5),
        "the same, said to be .5 to .7": Kind(0.6, r_length=0.5, known=False, stated=(0.5, 0.7)),
    },
    "familiarity": {
        "r(perplexity, quality) 0.3, reliability .6": Kind(0.6, r_length=0.3),
        "the same, reliability .9": Kind(0.9, r_length=0.3),
    },
    "inconsistency": {
        "half share one score": Kind(one_score=0.5),
        "95 % share one score": Kind(one_score=0.95),
    },
}
NOISES: dict[str, tuple[float, ...]] = {
    "inconsistency": (0.0,),
    "length, equally good pairs": (0.1,),
    "familiarity": (0.1,),
    "contradiction": (0.1, 0.25),
    "inconsistency, scales": (0.1, 0.2),
    "length": (0.1,),
    "self-preference": (0.1,),
    "source": (0.1, 0.2),
    "steps": (0.1, 0.2, 0.25),
    "recipe": (0.2,),
}


def cells(only: Collection[str]) -> Iterator[tuple[str, str, Kind, float]]:
    for name in CHECKS:
        if name in only:
            for words, kind in KINDS.get(name, {"": PLAIN}).items():
                for noise in NOISES.get(name, (0.25,)):
                    yield name, words, kind, noise
            if name not in KINDS and name not in ("recipe", "empty"):
                yield name, "95 % share one score", Kind(one_score=0.95), 0.2


def verdict(name: str, kind: Kind, noise: float, fault: bool, seed: int) -> str:
    """What one audit comes to."""
    check = CHECKS[name](world(np.random.default_rng(seed), kind), kind, noise, fault)
    return check if isinstance(check, str) else check.verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the first audit; bars were settled on 0 to 999")
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(CHECKS))
    options = parser.parse_args()
    for module in (own_ratings, position, contradiction):
        module.bootstrap = partial(bootstrap, resamples=options.resamples)  # type: ignore[attr-defined]
    seeds, fewer = (range(options.seed, options.seed + many) for many in (options.audits, options.planted))
    print("| check | data | reply noise | accused (± 2 SE) | ok | unclear | planted fault found |")
    print("| --- | --- | --: | --: | --: | --: | --: |", flush=True)
    for name, words, kind, noise in cells(options.only):
        verdicts = [verdict(name, kind, noise, False, seed) for seed in seeds]
        planted = [verdict(name, kind, noise, True, seed) not in FINE for seed in fewer]
        accused = np.mean([each not in FINE for each in verdicts])
        error = 2 * np.sqrt(max(accused, 1 / options.audits) * (1 - accused) / options.audits)
        ok, unclear = (np.mean([each == word for each in verdicts]) for word in ("ok", "unclear"))
        print(
            f"| {name} | {words} | {noise:g} | {accused:.1%} ± {error:.1%} | {ok:.0%} | {unclear:.0%}"
            f" | {np.mean(planted):.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
