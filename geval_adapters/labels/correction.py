"""The mean of people's scores from a judge's scores of all items and people's labels of some.

The judge's mean is biased, the labels' mean is noisy; the judge's mean *corrected* by the labels is neither. With f the
judge's score, Y people's, π_i the probability with which item i was drawn for labelling and w_i = 1 / π_i:

    θ = mean_M(g) + Σ_labelled w_i (Y_i − g_i) / Σ_labelled w_i

over all M items, where g predicts people's score from the judge's. Whatever g is, θ aims at people's mean; the better
it predicts, the narrower the interval. `ppi` takes g = λ f with the best λ (PPI++, Angelopoulos, Duchi & Zrnic 2023,
arXiv 2311.01453), `calibrated` the isotonic regression of Y on f, fitted on other documents than those that it
predicts (after CJE, arXiv 2512.11150). Weights after Zrnic & Candès 2024 (arXiv 2403.03208), made to sum to one, as a
sum of fixed weights would let the number of labels drawn into the error.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from ..agreement.intervals import FEWEST, Figure
from .prediction import Drawn, Floats, Ints, drawn, isotonic, line

Numbers = Sequence[float | None] | npt.NDArray[np.float64]

METHODS = ("auto", "ppi", "calibrated", "labels")
FEW_LABELS, MANY_LABELS = 15, 100
"""What `auto` goes by: below the first number of labels they stand alone, from the second on the judge is calibrated.

Chosen once, by `benchmarks/labels.py`: a slope fitted on fewer than 15 labels costs more width than it saves."""
UNLABELLED = "it has no label of its own"
DIFFERING = 7
"""Labels that must differ from the commonest one, or half of all labels: an interval from fewer rests on luck."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated mean and what each document adds to its error.

    Attributes:
        value: the mean; None where there is none, `why_not` says why.
        errors: each document's contribution to the error of the mean, in units of the score; they sum to about 0.
        labelled: which documents hold a label.
        n: labels.
        method: how it was made.
        why_not: why there is no value, or no interval.
        labelling: the part of the squared standard error that would fall with more labels.
    """

    value: float | None
    errors: Floats
    labelled: npt.NDArray[np.bool_]
    n: int
    method: str
    why_not: str = ""
    labelling: float = 0.0

    @property
    def std_error(self) -> float | None:
        """Clustered by document: SE² = L / (L − 1) · Σ_d errors_d² with L labelled documents; None without one."""
        if self.value is None or self.why_not:
            return None
        return math.sqrt((self.df + 1) / self.df * float(self.errors @ self.errors))

    @property
    def df(self) -> int:
        """Degrees of freedom: documents that hold a label, less one."""
        return int(self.labelled.sum()) - 1

    @property
    def skewed(self) -> float:
        """How far the interval's middle lies from the value, in standard errors.

        Where most labels are fives, a sample that happens to hold few others has too high a mean and too small an
        error at once. Hall (1992, J. R. Stat. Soc. B 54, 221) sets that right by γ (1 + 2 z²) / 6, γ being the skewness
        of the mean; from fewer than `FEW_LABELS` documents nobody can tell it. On SummEval's consistency, with 82 %
        fives and 50 labels, the lower end then lies above the truth in .02 instead of .06 of cases.
        """
        squares = float(self.errors @ self.errors)
        if self.df + 1 < FEW_LABELS or not squares:
            return 0.0
        return float((self.errors**3).sum() / squares**1.5 * (1 + 2 * 1.96**2) / 6)

    def figure(self, confidence: float = 0.95) -> Figure:
        """The mean with its t interval."""
        error = self.std_error
        if self.value is None or error is None:
            return Figure(self.value, None, None, self.n, self.method, self.why_not)
        middle, half = self.value + self.skewed * error, -float(stdtrit(self.df, (1 - confidence) / 2)) * error
        return Figure(self.value, middle - half, middle + half, self.n, self.method)

    def labels_for(self, std_error: float) -> int | None:
        """Labels in all at which the standard error falls to this; None where no number of labels would do.

        What labels add to its square falls with them; the rest, which is that of the items themselves, does not.
        """
        now = self.std_error
        rest = math.inf if now is None else max(now**2 - self.labelling, 0.0)
        return math.ceil(self.n * self.labelling / (std_error**2 - rest)) if std_error**2 > rest else None

    def p(self, null: float = 0.0) -> float | None:
        """Two-sided p of the mean being `null`; below .05 where the 95 % interval does not hold it."""
        error = self.std_error
        if self.value is None or not error:
            return None
        return float(2 * stdtr(self.df, -abs((self.value - null) / error + self.skewed)))

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two means over the same documents: what a document does to both cancels."""
        value = None if self.value is None or other.value is None else self.value - other.value
        why_not = self.why_not or other.why_not
        method = self.method if self.method == other.method else f"{self.method} − {other.method}"
        errors, labelled = self.errors - other.errors, self.labelled | other.labelled
        return Estimate(value, errors, labelled, self.n + other.n, method, why_not, self.labelling + other.labelling)


def corrected_mean(
    scores: Numbers,
    labels: Numbers,
    documents: Sequence[Hashable],
    *,
    probabilities: Numbers | None = None,
    method: str = "auto",
) -> Figure:
    """The mean of people's scores over all items, from a judge's scores and labels of some of the items.

    An item that the judge did not score takes part: it is predicted by the mean of the others.

    Args:
        scores: the judge's score of each item; NaN or None where it has none.
        labels: people's score of each item; NaN or None where it has none.
        documents: what each item was written for; items of one document depend on each other.
        probabilities: the probability with which each item was drawn for labelling, needed where it has a label; by
            default all items were equally likely.
        method: `ppi`, `calibrated`, `labels` (the judge is left aside), or `auto`: `labels` below 15 labels, `ppi`
            below 100, else `calibrated`.

    Returns:
        The mean with its 95 % interval: t with (labelled documents − 1) degrees of freedom, errors clustered by
        document, moved by as much as these are skewed. `n` counts labels, `method` says which was used. No interval,
        with the reason, from labels of fewer than 6 documents or from labels that are nearly all the same.

    Raises:
        ValueError: different lengths, an infinite value, a probability outside (0, 1], or an unknown method.

    >>> rng = np.random.default_rng(0)
    >>> people = rng.normal(3, 1, 400)
    >>> judge = people - 1 + rng.normal(0, 0.3, 400)
    >>> some = np.where(np.arange(400) % 10 == 0, people, np.nan)
    >>> mean = corrected_mean(judge, some, np.arange(400) // 4)
    >>> print(f"{judge.mean():.2f} {people.mean():.2f} {mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]", mean.method)
    1.96 2.96 2.97 [2.84, 3.10] ppi
    """
    return estimated(drawn(scores, labels, documents, probabilities), method).figure()


def corrected_difference(
    scores: Numbers,
    labels: Numbers,
    documents: Sequence[Hashable],
    systems: Sequence[Hashable],
    one: Hashable,
    other: Hashable,
    *,
    probabilities: Numbers | None = None,
    method: str = "auto",
) -> Figure:
    """How much higher people's mean is for the one system than for the other; see `corrected_mean`.

    Both systems' errors are summed by document before they are squared, so that what makes a document easy or hard for
    both cancels.

    Raises:
        ValueError: as in `corrected_mean`, or a system that no item is of.
    """
    items = drawn(scores, labels, documents, probabilities)
    if len(systems) != len(items.scores):
        raise ValueError(f"different lengths: {len(systems)} systems, {len(items.scores)} scores")
    halves = []
    for system in (one, other):
        places = np.array([place for place, each in enumerate(systems) if each == system], dtype=np.int64)
        if not places.size:
            raise ValueError(f"no item is of system {system!r}")
        halves.append(estimated(items.part(places), method))
    return halves[0].minus(halves[1]).figure()


def chosen(method: str, labels: int) -> str:
    """The method that `auto` stands for with so many labels; any other stands for itself."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if method != "auto":
        return method
    return "labels" if labels < FEW_LABELS else "ppi" if labels < MANY_LABELS else "calibrated"


def estimated(items: Drawn, method: str = "auto") -> Estimate:
    """`corrected_mean` before it becomes a figure."""
    method = chosen(method, items.n)
    if method == "labels" or items.n < 2:
        return rectified(items, np.zeros(len(items.scores)), method)
    if method == "calibrated":
        return rectified(items, isotonic(items), method)
    # The value has the λ of all labels. Its error is taken with slopes from other documents, as residuals around a
    # line that was fitted to them are too small: that keeps 95 % from ten labels on, where the plain formula has 85 %.
    value = rectified(items, items.slope() * items.filled, method).value
    return replace(rectified(items, line(items), method), value=value)


def by_system(items: Drawn, systems: Sequence[Hashable], method: str = "auto") -> dict[Hashable, Estimate]:
    """Each system's estimate: predictions are fitted to the labels of all systems, put right by each one's own.

    A dozen labels of one system say what the judge gets wrong there on average; how its scores relate to people's is
    learned from all of them. `auto` goes by the number of all labels. A system without a label gets a value from the
    labels of the others, which holds as far as the judge errs alike on all, but no interval.
    """
    method = chosen(method, items.n)
    predict = {"labels": lambda _: np.zeros(len(items.scores)), "ppi": line, "calibrated": isotonic}[method]
    predictions = predict(items) if items.n > 1 else np.zeros(len(items.scores))
    everywhere = rectified(items, predictions, method)
    places: dict[Hashable, list[int]] = {}
    for place, system in enumerate(systems):
        places.setdefault(system, []).append(place)
    found = {}
    for system, own in places.items():
        found[system] = rectified(items.part(np.array(own)), predictions[own], method)
        if not found[system].n and everywhere.value is not None:
            borrowed = everywhere.value + float(predictions[own].mean() - predictions.mean())
            found[system] = replace(found[system], value=borrowed, why_not=f"no interval: {UNLABELLED}")
    return found


def rectified(items: Drawn, predictions: Floats, method: str) -> Estimate:
    """The mean of predictions of all items, put right by what labels show of their error."""
    size, groups = len(items.scores), items.groups
    labelled = np.bincount(items.document[items.labelled], minlength=groups) > 0
    if not items.n:
        return Estimate(None, np.zeros(groups), labelled, 0, method, "no item has a label")
    weights, residuals = items.weights, items.labels[items.labelled] - predictions[items.labelled]
    total = float(weights.sum())
    gap, mean = float(weights @ residuals) / total, float(predictions.mean())
    predicted = _summed(items.document, (predictions - mean) / size, groups)
    corrected = _summed(items.document[items.labelled], weights * (residuals - gap) / total, groups)
    return Estimate(
        mean + gap,
        predicted + corrected,
        labelled,
        items.n,
        method,
        _why_no_interval(items, labelled),
        float(corrected @ corrected) * items.n / max(items.n - 1, 1),
    )


def judged(items: Drawn) -> Estimate:
    """The judge's own mean of the items that it scored, and its error as if the judge were right."""
    known = ~np.isnan(items.scores)
    n, groups = int(known.sum()), items.groups
    present = np.bincount(items.document[known], minlength=groups) > 0
    if not n:
        return Estimate(None, np.zeros(groups), present, 0, "judge", "the judge scored no item")
    mean = float(items.scores[known].mean())
    errors = _summed(items.document[known], (items.scores[known] - mean) / n, groups)
    few = f"no interval: it needs {FEWEST} documents, and there are {present.sum()}" if present.sum() < FEWEST else ""
    return Estimate(mean, errors, present, n, "judge", few)


def within(figure: Figure, least: float, most: float) -> Figure:
    """The figure, held within what it can be."""
    value, low, high = (
        None if each is None else min(max(each, least), most) for each in (figure.value, figure.low, figure.high)
    )
    return Figure(value, low, high, figure.n, figure.method, figure.why_not)


def _summed(document: Ints, errors: Floats, groups: int) -> Floats:
    return np.bincount(document, errors, groups).astype(np.float64)


def _why_no_interval(items: Drawn, labelled: npt.NDArray[np.bool_]) -> str:
    if labelled.sum() < FEWEST:
        return f"no interval: it needs labels of {FEWEST} documents, and there are {labelled.sum()}"
    values, counts = np.unique(items.labels[items.labelled], return_counts=True)
    differing, needed = items.n - int(counts.max()), min(DIFFERING, items.n // 2)
    if differing < needed:
        common = f"{items.n - differing} of {items.n} labels are {values[counts.argmax()]:g}"
        return f"no interval: it needs {needed} labels that differ, and {common}"
    return ""
