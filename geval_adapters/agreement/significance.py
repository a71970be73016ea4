"""Does one judge agree with people better than another: tests that resample or swap documents, Williams', Holm's."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from .coefficients import NOISE, Coefficients
from .intervals import CELLS, FEWEST, resample
from .levels import Score, check_lengths, codes, each_document, numbers


@dataclass(frozen=True, slots=True)
class WilliamsTest:
    """Result of `williams`: Student's t, its degrees of freedom, and both p-values."""

    statistic: float
    df: int
    p_one_sided: float
    p_two_sided: float


@dataclass(frozen=True, slots=True)
class ResamplingTest:
    """Result of `resampling_test`.

    Attributes:
        statistic: r of the judge less that of the baseline.
        std_error: its standard error over documents.
        p_two_sided, p_one_sided: p-values; the one-sided alternative is judge > baseline.
        documents: documents resampled.
    """

    statistic: float
    std_error: float
    p_two_sided: float
    p_one_sided: float
    documents: int


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Result of `permutation_test`.

    Attributes:
        statistic: document-level figure of the judge minus that of the baseline.
        p_two_sided, p_one_sided: p-values; the one-sided alternative is judge > baseline.
        documents: documents compared.
        skipped: documents left out because the coefficient of one of the judges is undefined there.
    """

    statistic: float
    p_two_sided: float
    p_one_sided: float
    documents: int
    skipped: int


def williams(r_judge: float, r_baseline: float, r_between: float, n: int) -> WilliamsTest:
    """Williams' test: does the judge correlate better with people than the baseline does, on the same items.

    It takes items for independent. Where several are of one document they are not, and it rejects too often: on
    SummEval a true null at .05 in .19 of cases. `resampling_test` knows documents.

    With R = 1 - r_j² - r_b² - r_jb² + 2·r_j·r_b·r_jb (the determinant of the correlation matrix),
    t = (r_j - r_b)·√((n-1)(1+r_jb)) / √(2R(n-1)/(n-3) + ((r_j+r_b)/2)²(1-r_jb)³) has n - 3 degrees of freedom
    (Williams 1959, "Regression Analysis"; Graham & Baldwin 2014, EMNLP).

    Args:
        r_judge: Pearson r between the judge and people, pooled over the dataset.
        r_baseline: Pearson r between the baseline and people.
        r_between: Pearson r between the judge and the baseline.
        n: items, at least 4.

    Returns:
        The test; its one-sided alternative is r_judge > r_baseline. Equal correlations give t = 0.

    Raises:
        ValueError: fewer than 4 items, a correlation outside [-1, 1], or three that cannot occur together or
            leave no variance to test against.

    >>> test = williams(0.80, 0.72, 0.89, 26)
    >>> round(test.statistic, 3), test.df, round(test.p_two_sided, 3)
    (1.361, 23, 0.187)
    """
    if n < 4:
        raise ValueError(f"Williams' test needs at least 4 items, got {n}")
    if not all(-1 <= r <= 1 for r in (r_judge, r_baseline, r_between)):
        raise ValueError(f"correlations must lie in [-1, 1]: {r_judge}, {r_baseline}, {r_between}")
    determinant = 1 - r_judge**2 - r_baseline**2 - r_between**2 + 2 * r_judge * r_baseline * r_between
    if determinant < -1e-9:
        raise ValueError(f"no data have the correlations {r_judge}, {r_baseline} and {r_between} together")
    difference = r_judge - r_baseline
    # Two judges that are the same up to scale leave 0/0; rounding noise must not turn that into a large t.
    if abs(difference) < NOISE:
        return WilliamsTest(0.0, n - 3, 0.5, 1.0)
    mean = (r_judge + r_baseline) / 2
    variance = 2 * max(determinant, 0) * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    if variance < NOISE:
        raise ValueError("the three correlations leave no variance to test against")
    statistic = difference * math.sqrt((n - 1) * (1 + r_between)) / math.sqrt(variance)
    return WilliamsTest(statistic, n - 3, float(stdtr(n - 3, -statistic)), float(2 * stdtr(n - 3, -abs(statistic))))


def resampling_test(
    judge: Sequence[Score],
    baseline: Sequence[Score],
    humans: Sequence[Score],
    documents: Sequence[Hashable],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> ResamplingTest:
    """Does the judge's Pearson r with people, pooled over all items, differ from the baseline's: documents resampled.

    t = (r_j - r_b) / se on (documents - 1) degrees of freedom, se being the standard deviation of the difference over
    bootstrap samples of the documents, both judges together, times √(G / (G - 1)).

    Args:
        judge: scores of the one judge; an item that misses one of the three scores is left out.
        baseline: scores of the other judge, of the same items.
        humans: people's scores of the same items.
        documents: the document of each item.
        resamples: bootstrap samples.
        seed: seed of the drawing.

    Raises:
        ValueError: different lengths, an infinite score, fewer than six documents, or an undefined correlation.

    >>> humans, documents = [1, 2, 3, 4] * 6, [d for d in "abcdef" for _ in range(4)]
    >>> good, bad = [1, 2, 3, 4, 1, 3, 2, 4] * 3, [2, 1, 4, 3, 1, 2, 4, 3] * 3
    >>> test = resampling_test(good, bad, humans, documents)
    >>> round(test.statistic, 2), round(test.p_two_sided, 2)
    (0.2, 0.08)
    """
    check_lengths(judge=judge, baseline=baseline, humans=humans, documents=documents)
    scores = np.stack([numbers(judge), numbers(baseline), numbers(humans)])
    kept = np.flatnonzero(~np.isnan(scores).any(axis=0))
    document = codes(documents, kept)
    groups = int(document.max(initial=-1)) + 1
    if groups < FEWEST:
        raise ValueError(f"resampling takes {FEWEST} documents, and there {'is' if groups == 1 else 'are'} {groups}")
    a, b, y = scores[:, kept] - scores[:, kept].mean(axis=1, keepdims=True)
    products = (np.ones_like(y), a, b, y, a * a, b * b, y * y, a * y, b * y)
    sums = resample(groups, resamples, seed) @ np.stack([np.bincount(document, each, groups) for each in products]).T
    _, ma, mb, my, aa, bb, yy, ay, by = (sums / sums[:, :1]).T
    with np.errstate(invalid="ignore", divide="ignore"):
        r_a = (ay - ma * my) / np.sqrt(np.maximum(aa - ma**2, 0) * np.maximum(yy - my**2, 0))
        r_b = (by - mb * my) / np.sqrt(np.maximum(bb - mb**2, 0) * np.maximum(yy - my**2, 0))
    difference = r_a - r_b
    if not np.isfinite(difference[0]):
        raise ValueError("a correlation is undefined")
    drawn = difference[1:][np.isfinite(difference[1:])]
    if abs(difference[0]) < NOISE and (not drawn.size or drawn.std() < NOISE):
        return ResamplingTest(0.0, 0.0, 1.0, 0.5, groups)
    if 2 * drawn.size < resamples or drawn.std() < NOISE:
        raise ValueError("the difference is undefined, or the same, in most resamples")
    error = float(drawn.std()) * math.sqrt(groups / (groups - 1))
    t = float(difference[0]) / error
    two, one = float(2 * stdtr(groups - 1, -abs(t))), float(stdtr(groups - 1, -t))
    return ResamplingTest(float(difference[0]), error, two, one, groups)


def permutation_test(
    judge: Sequence[Score],
    baseline: Sequence[Score],
    humans: Sequence[Score],
    documents: Sequence[Hashable],
    *,
    coefficient: str = "kendall_b",
    resamples: int = 10000,
    seed: int = 0,
) -> PermutationTest:
    """Paired permutation test, over documents, of the difference between two document-level figures.

    If the judges are exchangeable, swapping them within a document changes nothing but the sign of that
    document's difference. So p is the share of sign patterns whose mean difference is at least as large as
    the observed one: of all 2^documents patterns when these are no more than `resamples`, otherwise
    (1 + count) / (1 + resamples) over random ones (Phipson & Smyth 2010).

    Args:
        judge: scores of the one judge; an item that misses one of the three scores is left out.
        baseline: scores of the other judge, of the same items.
        humans: people's scores of the same items.
        documents: the document of each item.
        coefficient: a field name of `Level`. The calibrated accuracy keeps one tie threshold for each judge.
        resamples: sign patterns to draw.
        seed: seed of the drawing.

    Raises:
        ValueError: different lengths, an infinite score, an unknown coefficient, `resamples` below 1, or no
            document where the coefficient is defined for both judges.

    >>> humans, documents = [1, 2, 3] * 4, [d for d in "abcd" for _ in range(3)]
    >>> permutation_test([1, 2, 3] * 4, [3, 2, 1] * 4, humans, documents)
    PermutationTest(statistic=2.0, p_two_sided=0.125, p_one_sided=0.0625, documents=4, skipped=0)
    """
    if coefficient not in Coefficients._fields:
        raise ValueError(f"unknown coefficient {coefficient!r}: choose one of {', '.join(Coefficients._fields)}")
    if resamples < 1:
        raise ValueError(f"resamples must be 1 or more, not {resamples}")
    check_lengths(judge=judge, baseline=baseline, humans=humans, documents=documents)
    scores = np.stack([numbers(judge), numbers(baseline), numbers(humans)])
    kept = np.flatnonzero(~np.isnan(scores).any(axis=0))
    document = codes(documents, kept)
    order = np.argsort(document, kind="stable")
    document, (a, b, y) = document[order], scores[:, kept[order]]
    mine, theirs = (getattr(each_document(side, y, document)[0], coefficient) for side in (a, b))
    difference = mine - theirs
    compared = difference[~np.isnan(difference)]
    n = compared.size
    if n == 0:
        raise ValueError(f"no document where {coefficient} is defined for both judges")

    observed = float(compared.mean())
    slack = NOISE * np.abs(compared).max()  # rounding must not lose patterns that equal the observed one
    exact = 2**n <= resamples
    total = 2**n if exact else resamples
    rng = np.random.default_rng(seed)
    one_sided = two_sided = 0
    step = max(1, CELLS // n)
    for start in range(0, total, step):
        size = min(step, total - start)
        if exact:
            swapped = np.arange(start, start + size)[:, None] >> np.arange(n) & 1
        else:
            swapped = rng.integers(2, size=(size, n))
        means = (1.0 - 2.0 * swapped) @ compared / n
        one_sided += int((means >= observed - slack).sum())
        two_sided += int((np.abs(means) >= abs(observed) - slack).sum())
    extra = 0 if exact else 1
    return PermutationTest(
        statistic=observed,
        p_two_sided=(two_sided + extra) / (total + extra),
        p_one_sided=(one_sided + extra) / (total + extra),
        documents=n,
        skipped=difference.size - n,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979), in the order given.

    The i-th smallest of m p-values is multiplied by m - i + 1; none may fall below a smaller one's result,
    and none exceeds 1. Rejecting where the result is ≤ .05 keeps the chance of any false rejection ≤ .05.

    Raises:
        ValueError: a p-value outside [0, 1].

    >>> holm([0.04, 0.01, 0.02])
    [0.04, 0.03, 0.04]
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values must lie in [0, 1]: {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
