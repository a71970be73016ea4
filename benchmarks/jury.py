"""Does what a jury says of itself tell the truth? Simulated judges whose errors are known to go together.

    python benchmarks/jury.py

Each judge sees an item's quality plus an error; a share ρ of the errors' variance is common to all judges of the item.
Judges have scales of their own (leniency, spread). Printed for k judges and ρ: how often `panel ± t(k − 1)·SE` holds
what the judges would say without errors, SE being the standard error between judges, and the same with the factor that
the errors' correlation tells (`Bench.understated`); the estimate of ρ and of the effective number of judges beside the
truth; and r with quality of one judge, of the panel, and of a panel weighted by people's scores (people see quality
with a noise of their own).
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from geval_adapters.agreement.together import effective_number
from geval_adapters.jury import Ballots, bench_of, panel_of

ITEMS, DRAWS, NOISE = 300, 20, 0.3


def draw(rng: np.random.Generator, k: int, rho: float) -> tuple[Ballots, np.ndarray, np.ndarray]:
    """Judges' ballots, the quality, and what each judge would have said without errors."""
    quality = rng.normal(0, 1, ITEMS)
    size = np.linspace(0.5, 1.1, k)[:, None]  # judges are unequally good
    errors = size * (np.sqrt(rho) * rng.normal(0, 1, ITEMS) + np.sqrt(1 - rho) * rng.normal(0, 1, (k, ITEMS)))
    spread, mean = rng.uniform(0.15, 0.35, (k, 1)), rng.uniform(2.7, 3.3, (k, 1))
    annotators = quality + rng.normal(0, NOISE * np.sqrt(3), (3, ITEMS))
    people, noise = annotators.mean(axis=0), annotators.var(axis=0, ddof=1) / 3
    names = tuple(f"judge {number}" for number in range(k))
    scores = mean + spread * (quality + errors)
    return (
        Ballots(names, scores, [i // 5 for i in range(ITEMS)], people, noise, (1, 5)),
        quality,
        mean + spread * quality,
    )


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print("k  rho  held   held, corrected  rho estimated   judges worth (true)  r: one   panel  weighted")
    for k in (3, 5):
        for rho in (0.0, 0.3, 0.6):
            held, corrected, found, worth, r = [], [], [], [], []
            for _ in range(DRAWS):
                given, quality, errorless = draw(rng, k, rho)
                unlabelled = Ballots(
                    given.judges, given.scores, given.documents, np.full(ITEMS, np.nan), given.noise, given.scale
                )
                equal, weighted = panel_of(unlabelled), panel_of(given)
                m, d = equal.common.means[:, None], equal.common.spreads[:, None]
                truth = (m.mean() + d.mean() * (errorless - m) / d).mean(axis=0)
                off = np.abs(equal.score - truth) / equal.std_error / stdtrit(k - 1, 0.975)
                bench = bench_of(weighted)
                held.append((off < 1).mean())
                corrected.append((off < (bench.understated or np.nan)).mean())
                found.append(bench.errors.value)
                worth.append(bench.effective.value)
                panels = (given.scores[k // 2], equal.score, weighted.score)
                r.append([np.corrcoef(each, quality)[0, 1] for each in panels])
            one, plain, weighed = np.mean(r, axis=0)
            true = effective_number(k, rho)
            print(
                f"{k}  {rho:.1f}  {np.mean(held):.3f}  {np.mean(corrected):.3f}"
                f"            {np.mean(found):+.3f} ± {np.std(found):.3f}  {np.mean(worth):.2f} ({true:.2f})"
                f"          {one:.3f}    {plain:.3f}  {weighed:.3f}"
            )


if __name__ == "__main__":
    main()
