"""How many calls a good ranking takes: every selection scheme with every ranking method, on simulated judges.

    python benchmarks/ranking.py [--runs N]

16 candidates with true scores s ~ N(0, 1). The judge answers (i first, j second) with

    p = sigma(1.5 (s_i - s_j) + 1 + e_ij),    e_ij ~ N(0, 1.5) anew for each ordered pair.

With its position bias of 1 logit it prefers the first position in 65 % of a symmetric set; 36 % of its
verdicts flip with the order, and 77 % are right. The table is the mean Spearman correlation with the true
scores; candidates without a score count as middling. The judge is read in two ways: as the probability p
(label log-probabilities), and as the bare verdict, p > .5.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from geval_adapters.ranking.methods import METHODS
from geval_adapters.ranking.outcomes import Outcome
from geval_adapters.ranking.selection import next_comparisons, select

N, SLOPE, BIAS, NOISE = 16, 1.5, 1.0, 1.5
BUDGETS = (30, 45, 60, 90, 120, 180, 240)
SCHEMES = ("random", "no_repeat", "symmetric", "chain", "active")
BATCH = 5
Curves = dict[tuple[str, str], dict[int, float]]


def judge(rng: random.Random, truth: list[float], hard: bool) -> Callable[[tuple[int, int]], Outcome]:
    """A judge who answers the same question the same way each time."""
    answers: dict[tuple[int, int], Outcome] = {}

    def ask(pair: tuple[int, int]) -> Outcome:
        if pair not in answers:
            i, j = pair
            p = 1 / (1 + math.exp(-SLOPE * (truth[i] - truth[j]) - BIAS - rng.gauss(0, NOISE)))
            answers[pair] = Outcome(i, j, float(p > 0.5) if hard else p)
        return answers[pair]

    return ask


def run(seed: int, hard: bool) -> Curves:
    """Spearman against the truth by (scheme, method) and number of calls, for one set of candidates."""
    rng = random.Random(seed)
    truth = [rng.gauss(0, 1) for _ in range(N)]
    ask = judge(rng, truth, hard)
    curves: Curves = {(scheme, method): {} for scheme in SCHEMES for method in METHODS}
    for scheme in SCHEMES:
        if scheme == "active":
            outcomes: list[Outcome] = []
            while len(outcomes) < BUDGETS[-1]:
                pairs = next_comparisons(range(N), outcomes, count=BATCH, seed=seed)
                outcomes += [ask(pair) for pair in pairs]
        else:
            outcomes = [ask(pair) for pair in select(range(N), scheme, seed=seed)]
        for budget in (b for b in BUDGETS if b <= len(outcomes)):
            for method, rank in METHODS.items():
                scores = rank(outcomes[:budget], range(N)).scores
                known = [score for score in scores.values() if score is not None]
                middle = sum(known) / len(known)
                filled = [middle if (score := scores[i]) is None else score for i in range(N)]
                curves[scheme, method][budget] = spearman(filled, truth)
    return curves


def spearman(a: list[float], b: list[float]) -> float:
    """Rounded, so that equal scores tie; 0 when all are equal."""
    x, y = rankdata(np.round(a, 9)), rankdata(b)
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 else 0.0


def simulate(runs: int, hard: bool) -> Curves:
    every = [run(seed, hard) for seed in range(runs)]
    return {
        cell: {budget: sum(one[cell][budget] for one in every) / runs for budget in curve}
        for cell, curve in every[0].items()
    }


def show(name: str, curves: Curves) -> None:
    print(f"\n{name}: Spearman against the truth\n")
    print(f"{'selection':<11}{'method':<15}" + "".join(f"{budget:>7}" for budget in BUDGETS))
    for (scheme, method), curve in curves.items():
        cells = "".join(f"{curve[b]:7.3f}" if b in curve else f"{'-':>7}" for b in BUDGETS)
        print(f"{scheme:<11}{method:<15}{cells}")
    at_120 = {scheme: curve[120] for (scheme, m), curve in curves.items() if m == "win-ratio" and 120 in curve}
    best = max(at_120, key=at_120.__getitem__)
    print(f"\nWin ratio with 120 calls: {at_120[best]:.3f} at best ({best}). Soft Bradley-Terry reaches it with")
    for scheme in SCHEMES:
        enough = [budget for budget, value in curves[scheme, "bradley-terry"].items() if value >= at_120[best]]
        print(f"  {scheme:<10} {f'{enough[0]} calls' if enough else 'no number of calls in the table'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Spearman against the truth over the number of calls")
    parser.add_argument("--runs", type=int, default=100, help="simulated sets of candidates (100)")
    arguments = parser.parse_args()
    results = {"probabilities": simulate(arguments.runs, False), "verdicts": simulate(arguments.runs, True)}
    for name, curves in results.items():
        show(name, curves)


if __name__ == "__main__":
    main()
