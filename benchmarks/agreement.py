"""Time `agreement` against the plain loop over SciPy, and compare their numbers.

Run `python benchmarks/agreement.py`. The data are synthetic, in the shape of SummEval: 100 documents by 16
systems, human scores from 1 to 5 in thirds. The loop runs on fewer resamples; its time is scaled up.
"""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from geval_adapters.agreement.levels import Agreement, Level, agreement

Floats = npt.NDArray[np.float64]

DOCUMENTS, SYSTEMS, RESAMPLES, LOOP_RESAMPLES = 100, 16, 1000, 10
LEVELS = ("dataset", "document", "system")
CORRELATIONS: tuple[Callable[[Floats, Floats], Any], ...] = (
    lambda x, y: stats.pearsonr(x, y)[0],
    lambda x, y: stats.spearmanr(x, y)[0],
    lambda x, y: stats.kendalltau(x, y, variant="b")[0],
    lambda x, y: stats.kendalltau(x, y, variant="c")[0],
)


def synthetic(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Predictions (means of 20 samples) and human scores (means of three), documents by systems."""
    quality = rng.normal(3.2, 0.7, (DOCUMENTS, 1)) + rng.normal(0, 0.5, (1, SYSTEMS))
    experts = quality + rng.normal(0, 0.6, (3, DOCUMENTS, SYSTEMS))
    samples = quality + rng.normal(0, 0.8, (DOCUMENTS, SYSTEMS)) + rng.normal(0, 0.5, (20, DOCUMENTS, SYSTEMS))
    humans, judge = (np.clip(np.round(raw), 1, 5).sum(axis=0) / len(raw) for raw in (experts, samples))
    return judge, humans


def accuracy(x: Floats, y: Floats, threshold: float) -> float:
    i, j = np.triu_indices(x.size, 1)
    dx, dy = x[i] - x[j], y[i] - y[j]
    return float(np.mean(np.where(np.abs(dx) <= threshold, dy == 0, dx * dy > 0)))


def figures(x: Floats, y: Floats, threshold: float) -> list[float]:
    return [
        *(float(correlation(x, y)) for correlation in CORRELATIONS),
        accuracy(x, y, 0),
        accuracy(x, y, threshold),
    ]


def plain_loop(x: Floats, y: Floats, drawn: npt.NDArray[np.int64], thresholds: list[float]) -> Floats:
    """Levels by coefficients of the drawn documents."""
    x, y = x[drawn], y[drawn]
    each = np.array([figures(a, b, thresholds[1]) for a, b in zip(x, y, strict=True)])
    return np.array(
        [
            figures(x.ravel(), y.ravel(), thresholds[0]),
            np.nanmean(each, axis=0),
            # Rounded as in `agreement`, or else equal means differ in their last bits.
            figures(np.round(x.mean(axis=0), 12), np.round(y.mean(axis=0), 12), thresholds[2]),
        ]
    )


def numbers(result: Agreement, field: str) -> Floats:
    return np.array(
        [
            [getattr(getattr(getattr(result, level), name), field) for name in Level.__dataclass_fields__]
            for level in LEVELS
        ]
    )


def tie_thresholds(result: Agreement) -> list[float]:
    notes = [getattr(result, level).pairwise_accuracy_calibrated.note.split() for level in LEVELS]
    # Half a step above the printed threshold: the printed one is rounded to six digits.
    return [0.0 if note[0] == "only" else float(note[3]) * (1 + 1e-5) for note in notes]


def main() -> None:
    warnings.simplefilter("ignore", stats.ConstantInputWarning)
    judge, humans = synthetic(np.random.default_rng(0))
    documents, systems = (index.ravel().tolist() for index in np.indices(judge.shape))
    columns = (judge.ravel().tolist(), humans.ravel().tolist(), documents, systems)

    start = time.perf_counter()
    agreement(*columns, resamples=RESAMPLES)
    vectorised = time.perf_counter() - start

    few = agreement(*columns, resamples=LOOP_RESAMPLES, seed=0)
    counts = np.random.default_rng(0).multinomial(DOCUMENTS, [1 / DOCUMENTS] * DOCUMENTS, size=LOOP_RESAMPLES)
    thresholds = tie_thresholds(few)
    start = time.perf_counter()
    loop = np.array([plain_loop(judge, humans, np.repeat(np.arange(DOCUMENTS), row), thresholds) for row in counts])
    scaled = (time.perf_counter() - start) * RESAMPLES / LOOP_RESAMPLES
    low, high = np.quantile(loop, [0.025, 0.975], axis=0)
    value = plain_loop(judge, humans, np.arange(DOCUMENTS), thresholds)
    difference = max(
        np.abs(numbers(few, field) - expected).max()
        for field, expected in (("value", value), ("low", low), ("high", high))
    )
    print(f"{DOCUMENTS} documents x {SYSTEMS} systems, six coefficients at three levels, {RESAMPLES} resamples")
    print(f"agreement     {vectorised:8.2f} s")
    print(f"plain loop    {scaled:8.2f} s  ({LOOP_RESAMPLES} resamples, scaled to {RESAMPLES})")
    print(f"ratio         {scaled / vectorised:8.0f}")
    print(f"largest difference of any value or interval limit: {difference:.1e}")


if __name__ == "__main__":
    main()
