"""Corrected means: equal to other people's arithmetic, unbiased, honest about what they cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_adapters.labels import corrected_difference, corrected_mean
from geval_adapters.labels.correction import by_system, estimated
from geval_adapters.labels.prediction import drawn, folds, isotonic

M, N = 600, 80


@pytest.fixture
def world():
    """People, a judge that is off, and labels of some items."""
    rng = np.random.default_rng(5)
    people = np.clip(rng.normal(3, 1, M), 1, 5)
    judge = 0.5 + 0.6 * people + rng.normal(0, 0.5, M)
    labels = np.full(M, np.nan)
    some = rng.choice(M, N, replace=False)
    labels[some] = people[some]
    return people, judge, labels


def test_the_value_is_that_of_ppi_plus_plus(world):
    ppi = pytest.importorskip("ppi_py")
    _, judge, labels = world
    here = ~np.isnan(labels)
    ours = corrected_mean(judge, labels, range(M), method="ppi")
    theirs = ppi.ppi_mean_pointestimate(labels[here], judge[here], judge[~here])
    assert ours.value == pytest.approx(theirs.item(), abs=1e-9)
    low, high = ppi.ppi_mean_ci(labels[here], judge[here], judge[~here], alpha=0.05)
    # Ours is t on the labelled documents, with residuals around lines fitted to others: a little wider, never narrower.
    assert 1 <= (ours.high - ours.low) / (high - low).item() < 1.1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 60), st.floats(-1, 2))
def test_the_value_is_that_of_ppi_plus_plus_whatever_the_judge(seed: int, n: int, slope: float):
    ppi = pytest.importorskip("ppi_py")
    rng = np.random.default_rng(seed)
    people = rng.integers(1, 6, 100).astype(float)
    judge = slope * people + rng.normal(0, 1, 100)
    labels = np.where(np.arange(100) < n, people, np.nan)
    ours = corrected_mean(judge, labels, range(100), method="ppi").value
    assert ours == pytest.approx(ppi.ppi_mean_pointestimate(people[:n], judge[:n], judge[n:]).item(), abs=1e-9)


def test_calibration_is_isotonic_regression_on_other_documents():
    sklearn = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(1)
    people = rng.integers(1, 6, 120).astype(float)
    judge = np.round(people + rng.normal(0, 1, 120))
    labels = np.where(np.arange(120) % 2 == 0, people, np.nan)
    items = drawn(judge, labels, np.arange(120) // 4, np.full(120, 0.5))
    fold, ours = folds(items), isotonic(items)
    for number in np.unique(fold):
        others = items.labelled[fold[items.labelled] != number]
        theirs = sklearn.IsotonicRegression(out_of_bounds="clip").fit(judge[others], labels[others])
        assert ours[fold == number] == pytest.approx(theirs.predict(judge[fold == number]))


def test_errors_are_clustered_by_document():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(2)
    documents = np.repeat(np.arange(40), 5)
    people = rng.normal(0, 1, 40)[documents] + rng.normal(0, 0.5, 200)
    found = estimated(drawn(np.zeros(200), people, documents), "labels")
    fit = sm.OLS(people, np.ones(200)).fit(
        cov_type="cluster", cov_kwds={"groups": documents, "df_correction": True}, use_t=True
    )
    # statsmodels' factor is G / (G − 1) · (n − 1) / (n − k), which is G / (G − 1) for a mean.
    assert (found.value, found.std_error, found.df) == pytest.approx((people.mean(), fit.bse[0], 39))


def test_auto_goes_by_the_number_of_labels(world):
    people, judge, _ = world
    for n, method in ((14, "labels"), (15, "ppi"), (99, "ppi"), (100, "calibrated")):
        labels = np.where(np.arange(M) < n, people, np.nan)
        assert corrected_mean(judge, labels, range(M)).method == method


def test_a_judge_that_is_off_costs_nothing_but_width(world):
    people, judge, labels = world
    straight = corrected_mean(judge, labels, range(M))
    bent = corrected_mean(3 * judge - 7, labels, range(M))
    assert (bent.value, bent.low, bent.high) == pytest.approx((straight.value, straight.low, straight.high))
    alone = corrected_mean(judge, labels, range(M), method="labels")
    assert alone.high - alone.low > 1.15 * (straight.high - straight.low)
    assert straight.low < people.mean() < straight.high


def test_where_all_is_labelled_the_judge_does_not_matter(world):
    people, judge, _ = world
    for method in ("ppi", "calibrated", "labels"):
        assert corrected_mean(judge, people, range(M), method=method).value == pytest.approx(people.mean())


def test_unequal_chances_are_weighted_out():
    rng = np.random.default_rng(0)
    people = rng.integers(1, 6, 20_000).astype(float)
    chances = np.where(people >= 4, 0.3, 0.05)
    labels = np.where(rng.random(20_000) < chances, people, np.nan)
    judge = rng.normal(0, 1, 20_000)
    weighted = corrected_mean(judge, labels, range(20_000), probabilities=chances)
    assert weighted.low < people.mean() < weighted.high
    blind = corrected_mean(judge, labels, range(20_000))
    assert blind.low > people.mean()


def test_the_order_of_the_items_does_not_matter(world):
    _, judge, labels = world
    documents = np.arange(M) // 3
    order = np.random.default_rng(0).permutation(M)
    for method in ("ppi", "calibrated"):
        one = corrected_mean(judge, labels, documents.tolist(), method=method)
        other = corrected_mean(judge[order], labels[order], documents[order].tolist(), method=method)
        assert (one.value, one.low) == pytest.approx((other.value, other.low))


def test_items_without_a_score_take_part(world):
    people, judge, labels = world
    hard = people < 2.5  # what the judge could not read is what is bad
    figure = corrected_mean(np.where(hard, np.nan, judge), labels, range(M))
    assert figure.low < people.mean() < figure.high
    nothing = corrected_mean([None] * M, labels, range(M))
    assert nothing.value == pytest.approx(np.nanmean(labels))


def test_no_interval_where_it_would_not_hold():
    few = corrected_mean([1, 2, 3, 4] * 5, [1, 2, 3, 4] + [None] * 16, range(20))
    assert (few.value, few.low, few.n) == (2.5, None, 4)
    assert few.why_not == "no interval: it needs labels of 6 documents, and there are 4"
    fives = corrected_mean([5.0] * 60, [5.0] * 28 + [1.0] * 2 + [None] * 30, range(60))
    assert fives.low is None
    assert fives.why_not == "no interval: it needs 7 labels that differ, and 28 of 30 labels are 5"
    nobody = corrected_mean([1.0, 2.0], [None, None], "ab")
    assert (nobody.value, nobody.n, nobody.why_not) == (None, 0, "no item has a label")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (([1, 2], [1], "ab"), "different lengths: 2 scores, 1 labels, 2 documents"),
        (([1, float("inf")], [1, 2], "ab"), "scores: item 1 is infinite"),
        (([1, 2], [1, 2], "ab", [0.5, 0]), "item 1 has a label, but no probability"),
        (([1, 2], [1, 2], "ab", [0.5, None]), "item 1 has a label, but no probability"),
    ],
)
def test_columns_that_cannot_be_are_refused(columns, said: str):
    scores, labels, documents, *probabilities = columns
    with pytest.raises(ValueError, match=said):
        corrected_mean(scores, labels, documents, probabilities=probabilities[0] if probabilities else None)


def test_a_difference_is_paired_by_document():
    rng = np.random.default_rng(3)
    documents = np.tile(np.arange(120), 2)
    systems = np.repeat(["a", "b"], 120)
    hard = rng.normal(0, 1.5, 120)
    people = np.concatenate([hard + 0.3, hard]) + rng.normal(0, 0.2, 240)
    judge = people + rng.normal(0, 0.2, 240)
    labels = np.where(documents % 2 == 0, people, np.nan)
    figure = corrected_difference(judge, labels, documents, systems, "a", "b")
    assert figure.low < 0.3 < figure.high
    assert figure.high - figure.low < 0.25
    alone = [corrected_mean(judge[systems == s], labels[systems == s], documents[systems == s]) for s in "ab"]
    assert figure.value == pytest.approx(alone[0].value - alone[1].value)
    assert figure.high - figure.low < 0.3 * (alone[0].high - alone[0].low)
    with pytest.raises(ValueError, match="no item is of system 'c'"):
        corrected_difference(judge, labels, documents, systems, "a", "c")


def test_each_system_learns_from_the_labels_of_all():
    rng = np.random.default_rng(4)
    documents, systems = np.repeat(np.arange(100), 8), np.tile(np.arange(8), 100)
    people = 3 + 0.1 * systems + rng.normal(0, 1, 800)
    judge = 0.5 * people + rng.normal(0, 0.15, 800)
    labels = np.where(rng.random(800) < 0.12, people, np.nan)
    items = drawn(judge, labels, documents)
    found = by_system(items, systems.tolist())
    truths = [people[systems == system].mean() for system in range(8)]
    held = [found[s].figure().low < truths[s] < found[s].figure().high for s in range(8)]
    assert sum(held) >= 7
    own = estimated(items.part(np.flatnonzero(systems == 0)), "labels").figure()
    assert found[0].figure().high - found[0].figure().low < 0.6 * (own.high - own.low)


@pytest.mark.parametrize("n", [30, 120])
def test_intervals_hold_the_truth_as_often_as_they_say(n: int):
    """Documents and labels drawn anew each time; the full simulation stands in benchmarks/labels.py."""
    rng = np.random.default_rng(n)
    held = naive = 0
    for _ in range(300):
        hard = np.repeat(rng.normal(0, 0.7, 60), 5)
        people = np.clip(np.round(3.4 + hard + rng.normal(0, 0.8, 300)), 1, 5)
        judge = np.round(0.6 * people + 0.7 + rng.normal(0, 0.5, 300))
        labels = np.full(300, np.nan)
        some = rng.choice(300, n, replace=False)
        labels[some] = people[some]
        figure = corrected_mean(judge, labels, np.repeat(np.arange(60), 5))
        held += figure.low <= TRUTH <= figure.high
        naive += abs(judge.mean() - TRUTH) <= 1.96 * judge.std() / 300**0.5
    assert 0.92 <= held / 300 <= 0.985
    assert naive == 0


def _truth() -> float:
    rng = np.random.default_rng(9)
    return float(np.clip(np.round(3.4 + rng.normal(0, 0.7, 10**6) + rng.normal(0, 0.8, 10**6)), 1, 5).mean())


TRUTH = _truth()


def test_what_cannot_be_used_is_refused_in_words():
    good = [3.0, 4.0, 2.0, 5.0] * 10
    for scores, documents, options, said in [
        (np.ones((40, 2)), range(40), {}, "one number for each item"),
        ([1e200] * 40, range(40), {}, "item 0 is infinite"),
        (good, [float("nan")] * 40, {}, "item 0 has NaN"),
        (good, range(40), {"probabilities": [0.0] * 40}, "no probability above 0"),
    ]:
        with pytest.raises(ValueError, match=said):
            corrected_mean(scores, good, documents, **options)


def test_only_the_ratios_of_probabilities_count_and_documents_are_any_names():
    good = [3.0, 4.0, 2.0, 5.0] * 10
    names = [("ticket", None if number % 3 == 0 else number) for number in range(40)]
    plain = corrected_mean(good, good, names)
    tiny = corrected_mean(good, good, names, probabilities=[1e-320] * 40)
    assert (tiny.value, tiny.low, tiny.high) == pytest.approx((plain.value, plain.low, plain.high))
