"""Time `agreement` against the plain loop over SciPy, and count how often its intervals hold the truth.

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

from geval_adapters.agreement.intervals import Resampled, interval, resample
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
    value = plain_loop(judge, humans, np.arange(DOCUMENTS), thresholds)
    reach = stats.t.ppf(0.975, DOCUMENTS - 1) * np.sqrt(DOCUMENTS / (DOCUMENTS - 1)) * loop.std(axis=0)
    difference = max(
        np.abs(numbers(few, field) - np.clip(expected, -1, 1)).max()
        for field, expected in (("value", value), ("low", value - reach), ("high", value + reach))
    )
    print(f"{DOCUMENTS} documents x {SYSTEMS} systems, six coefficients at three levels, {RESAMPLES} resamples")
    print(f"agreement     {vectorised:8.2f} s")
    print(f"plain loop    {scaled:8.2f} s  ({LOOP_RESAMPLES} resamples, scaled to {RESAMPLES})")
    print(f"ratio         {scaled / vectorised:8.0f}")
    print(f"largest difference of any value or interval limit: {difference:.1e}")
    coverage()


# --- how often the intervals hold the truth --------------------------------------------------------------------------

TRIALS, ITEMS = 600, 5
STATISTICS = ("mean of a difference", "r", "document-level τ-b", "α", "share of rare events")


def scored(rng: np.random.Generator, kind: str, trials: int, documents: int) -> tuple[Floats, Floats]:
    """Two sides' scores, trials × documents × items: unbounded, from 1 to 5, or nearly all of them 5."""
    quality = rng.normal(size=(trials, documents, ITEMS)) + 0.7 * rng.normal(size=(trials, documents, 1))
    x, y = (quality + noise * rng.normal(size=quality.shape) for noise in (0.8, 0.5))
    if kind == "unbounded":
        return x + 0.4 * rng.normal(size=(trials, documents, 1)), y
    if kind == "1 to 5":
        return np.clip(np.round(3 + x), 1, 5), np.clip(np.round(3 + y), 1, 5)
    return tuple(np.where(side < -1.6, np.clip(np.round(5 + 2 * (side + 1.3)), 1, 4), 5.0) for side in (x, y))  # type: ignore[return-value]


def sums(x: Floats, y: Floats) -> Floats:
    """What the statistics need, summed within documents."""
    dx, dy = (np.sign(side[..., :, None] - side[..., None, :]) for side in (x, y))
    norm = np.sqrt((dx**2).sum((-1, -2)) * (dy**2).sum((-1, -2)))
    tau = np.divide((dx * dy).sum((-1, -2)), norm, out=np.zeros_like(norm), where=norm > 0)
    items = (np.ones_like(x), x, y, x * x, y * y, x * y, (np.abs(x - y) > 1.5).astype(float))
    return np.stack([*(each.sum(-1) for each in items), tau, (norm > 0).astype(float)], -1)


def statistics_of(total: Floats) -> Floats:
    n, x, y, xx, yy, xy, far, tau, defined = np.moveaxis(total, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        vx, vy, c = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2, xy / n - x * y / n**2
        expected = 2 * (2 * n * (xx + yy) - (x + y) ** 2) / (2 * n - 1)
        alpha = np.where(expected > 1e-9, 1 - 2 * (xx + yy - 2 * xy) / expected, np.nan)
        r = np.where((vx > 1e-9) & (vy > 1e-9), c / np.sqrt(vx * vy), np.nan)
        return np.stack([(x - y) / n, r, tau / defined, alpha, far / n], -1)


def coverage() -> None:
    """Nominal 95 % intervals; in brackets percentiles of the same resamples."""
    print("| scores | documents | " + " | ".join(STATISTICS) + " |")
    for kind in ("unbounded", "1 to 5", "nearly all 5"):
        many = sums(*scored(np.random.default_rng(99), kind, 300, 200))
        truth = statistics_of(many.sum(axis=1)).mean(axis=0)
        for documents in (6, 8, 12, 20, 50):
            rng = np.random.default_rng(documents)
            each = sums(*scored(rng, kind, TRIALS, documents))
            counts = resample(documents)
            draws = statistics_of(np.einsum("rd,tdk->rtk", counts, each))
            held = np.full((2, len(STATISTICS), TRIALS), np.nan)
            for k in range(len(STATISTICS)):
                limits = (-1.0, 1.0) if k in (1, 2, 3) else (-np.inf, np.inf)
                for trial in range(TRIALS):
                    one = Resampled(float(draws[0, trial, k]), draws[1:, trial, k], documents)
                    figure = interval(one, documents, within=limits)
                    if figure.low is not None and figure.high is not None:
                        held[0, k, trial] = figure.low <= truth[k] <= figure.high
                        low, high = np.nanquantile(one.draws, [0.025, 0.975])
                        held[1, k, trial] = low <= truth[k] <= high
            cells = [f"{t:.3f} ({p:.3f})" for t, p in np.nanmean(held, axis=2).T]
            print(f"| {kind} | {documents} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
