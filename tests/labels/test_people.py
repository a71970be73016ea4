"""The judge among people, whether its errors carry over, and intervals for single items."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from geval_adapters.agreement import resampling_test, soft_pairwise_accuracy
from geval_adapters.agreement.significance import williams
from geval_adapters.labels.conformal import conformal
from geval_adapters.labels.people import alternative_annotator_test, ceiling
from geval_adapters.labels.prediction import drawn
from geval_adapters.labels.transport import along_the_scale, transport


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_intervals_of_single_items_hold_as_often_as_they_say(level: float):
    rng = np.random.default_rng(0)
    held, told = [], []
    for _ in range(60):
        people = rng.integers(1, 6, 300).astype(float)
        judge = np.round(0.5 * people + 2 + rng.normal(0, 0.7, 300), 1)
        labelled = rng.permutation(300) < 80
        made = conformal(drawn(judge, np.where(labelled, people, np.nan), np.arange(300) // 3), (1, 5), level)
        inside = (made.low <= people + 1e-9) & (people - 1e-9 <= made.high)
        held.append(inside[~labelled].mean())
        told.append(made.coverage)
        assert (made.low.min(), made.high.max()) >= (1, 1)
        assert made.width == pytest.approx((made.high - made.low).mean())
    assert np.mean(held) >= level - 0.005
    assert np.mean(told) == pytest.approx(np.mean(held), abs=0.03)


def test_too_few_labels_make_no_intervals():
    made = conformal(drawn(range(50), [1.0] * 8 + [None] * 42, range(50)), (0, 50), 0.9)
    assert (made.width, made.coverage) == (None, None)
    assert made.why_not == "no interval: at 90% it needs 9 labels, and there are 8"


def test_a_good_judge_may_stand_in_and_a_constant_passes_by_ties_alone():
    rng = np.random.default_rng(1)
    truth = rng.choice([5.0, 4.0, 3.0], 300, p=[0.9, 0.06, 0.04])
    table = np.where(rng.random((3, 300)) < 0.9, truth, 4.0)
    judge, constant, wrong = truth, np.full(300, 5.0), np.full(300, 3.0)
    assert alternative_annotator_test(judge, table).passed
    assert alternative_annotator_test(constant, table).passed, "nearly all agree on fives: it wins by ties"
    assert not alternative_annotator_test(wrong, table).passed
    few = alternative_annotator_test(judge[:20], table[:, :20])
    assert few.passed is None
    assert "three annotators" in few.why_not


def test_the_alternative_annotator_test_is_calderons():
    rng = np.random.default_rng(2)
    truth = rng.normal(3, 1, 120)
    table = truth + rng.normal(0, 0.8, (4, 120))
    judge = truth + rng.normal(0, 0.9, 120)
    p_values, shares = [], []
    for one in range(4):
        others = np.delete(table, one, axis=0)
        far = [np.sqrt(((others - each) ** 2).mean(axis=0)) for each in (judge, table[one])]
        judge_wins, person_wins = (far[0] <= far[1]).astype(float), (far[1] <= far[0]).astype(float)
        p_values.append(stats.ttest_1samp(person_wins - judge_wins, 0.2, alternative="less").pvalue)
        shares.append(judge_wins.mean())
    found = alternative_annotator_test(judge, table)
    assert found.advantage == pytest.approx(np.mean(shares))
    rejected = stats.false_discovery_control(p_values, method="by") <= 0.05
    assert found.winning_rate == pytest.approx(rejected.mean())


def test_the_ceiling_rises_with_agreement_and_attenuation_is_undone():
    rng = np.random.default_rng(3)
    truth = rng.normal(0, 1, 3000)
    judge = truth + rng.normal(0, 0.5, 3000)
    for noise in (0.3, 1.0):
        table = np.round(4 * (truth + rng.normal(0, noise, (3, 3000)))) / 4
        found = ceiling(judge, table)
        assert found.alpha == pytest.approx(1 / (1 + noise**2), abs=0.03)
        assert found.r_corrected == pytest.approx(np.corrcoef(judge, truth)[0, 1], abs=0.02)
        assert found.r < found.r_corrected
        assert found.people == pytest.approx(1 / ((1 + noise**2) * (1 + noise**2 / 2)) ** 0.5, abs=0.03)
    alone = ceiling(judge, table[:1])
    assert (alone.alpha, alone.people, alone.r_corrected) == (None, None, None)


def test_errors_that_differ_between_systems_are_found_and_others_are_not():
    rng = np.random.default_rng(4)
    alarms = found = 0
    for _ in range(60):
        systems = [f"s{number % 4}" for number in range(400)]
        people = rng.integers(1, 6, 400).astype(float)
        judge = people - 1 + rng.normal(0, 0.5, 400)
        labels = np.where(rng.random(400) < 0.3, people, np.nan)
        alarms += transport(drawn(judge, labels, np.arange(400) // 4), systems, resamples=200).differs
        liked = judge + np.array([0.8 * (each == "s0") for each in systems])
        found += transport(drawn(liked, labels, np.arange(400) // 4), systems, resamples=200).differs
    assert alarms <= 8
    assert found >= 57
    missing = np.where(np.array(systems) == "s3", np.nan, labels)
    assert transport(drawn(judge, missing, range(400)), systems).missed == ("s3",)
    nobody = transport(drawn(judge, np.where(np.arange(400) < 8, people, np.nan), range(400)), systems)
    assert nobody.p is None
    assert "takes 5 labels of each of two" in nobody.why_not


def test_where_on_the_scale_the_judge_is_off():
    steps = along_the_scale(drawn([1, 1, 2, 5, 5, None], [3, 3, 3, 4, 4, 1], range(6)))
    assert [(step.score, step.n, step.bias) for step in steps] == [(1, 2, -2), (2, 1, -1), (5, 2, 1)]
    fine = along_the_scale(drawn(np.linspace(0, 100, 50), np.zeros(50), range(50)))
    assert [step.n for step in fine] == [10] * 5


def test_soft_pairwise_accuracy_is_that_of_a_plain_loop():
    rng = np.random.default_rng(5)
    people = rng.normal(0, 1, (10, 4)) + np.array([0, 0.2, 0.8, 2])
    judge = people + rng.normal(0, 1, (10, 4))
    signs = 1 - 2 * np.random.default_rng(0).integers(2, size=(500, 10))

    def p(table: np.ndarray, a: int, b: int) -> float:
        differences = table[:, a] - table[:, b]
        return float((signs @ differences > differences.sum() + 1e-9).mean())

    expected = 1 - np.mean([abs(p(people, a, b) - p(judge, a, b)) for a, b in combinations(range(4), 2)])
    where = [d for d in range(10) for _ in range(4)], [0, 1, 2, 3] * 10
    found = soft_pairwise_accuracy(judge.ravel().tolist(), people.ravel().tolist(), *where, resamples=500)
    assert found.value == pytest.approx(expected, abs=0.01)
    assert found.n == 6
    assert soft_pairwise_accuracy([1, 2], [1, 2], "ab", "xy").why_not == "undefined: no two systems share two documents"


def test_a_true_null_is_rejected_as_often_as_it_should_be_where_documents_hold_many_items():
    """Each judge has a taste for documents of its own: Williams' test takes that for agreement."""
    rng = np.random.default_rng(6)
    documents = [d for d in range(40) for _ in range(12)]
    rejected = {"resampling": 0, "williams": 0}
    for _ in range(200):
        people = np.repeat(rng.normal(0, 1, 40), 12) + rng.normal(0, 1, 480)
        one, other = (people + np.repeat(rng.normal(0, 1, 40), 12) + rng.normal(0, 0.5, 480) for _ in range(2))
        test = resampling_test(one, other, people, documents, resamples=200)
        rejected["resampling"] += test.p_two_sided < 0.05
        r = np.corrcoef([one, other, people])
        rejected["williams"] += williams(r[0, 2], r[1, 2], r[0, 1], 480).p_two_sided < 0.05
    assert rejected["resampling"] <= 20
    assert rejected["williams"] >= 25
