"""The panel: what several judges' ratings of the same items come to, and what is known of the judges."""

from __future__ import annotations

import asyncio
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurors import Sees, samples

from geval_adapters import GEval, InputError, JudgeError, Jury
from geval_adapters.agreement.together import correlations, effective_number
from geval_adapters.jury import Ballots, bench_of, panel_of

UNKNOWN = np.nan


def ballots(scores: np.ndarray, people: np.ndarray | None = None, documents: list[int] | None = None) -> Ballots:
    k, n = scores.shape
    nobody = np.full(n, np.nan)
    names = tuple("abcdefgh"[:k])
    return Ballots(names, scores, documents or list(range(n)), nobody if people is None else people, nobody, (1, 5))


def jury(*judges: Sees) -> Jury:
    return Jury([GEval("fluency", judge, n=1, readout="samples") for judge in judges])


def by_loops(scores: np.ndarray) -> tuple[list[float], list[float]]:
    """The formula item by item, for judges that rated everything."""
    means = [sum(own) / len(own) for own in scores]
    spreads = [(sum((s - m) ** 2 for s in own) / len(own)) ** 0.5 for own, m in zip(scores, means, strict=True)]
    middle, unit = sum(means) / len(means), sum(spreads) / len(spreads)
    ratings, errors = [], []
    for item in scores.T:
        x = [middle + unit * (s - m) / d for s, m, d in zip(item, means, spreads, strict=True)]
        mean = sum(x) / len(x)
        ratings.append(min(5, max(1, mean)))
        errors.append((sum((each - mean) ** 2 for each in x) / (len(x) - 1) / len(x)) ** 0.5)
    return ratings, errors


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(10, 30), st.integers(0, 10**6))
def test_the_panel_is_the_formula_applied_item_by_item(k: int, n: int, seed: int) -> None:
    scores = np.random.default_rng(seed).integers(1, 6, (k, n)).astype(float)
    if min(own.std() for own in scores) == 0:
        return
    made = panel_of(ballots(scores))
    ratings, errors = by_loops(scores)
    assert made.how == "standardized"
    np.testing.assert_allclose(made.score, ratings)
    np.testing.assert_allclose(made.std_error, errors, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.2, 3), st.floats(-2, 2))
def test_a_judge_on_another_scale_of_its_own_changes_no_order(factor: float, shift: float) -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(3, 0.3, (3, 40))
    other = scores.copy()
    other[1] = factor * other[1] + shift
    one, two = panel_of(ballots(scores)), panel_of(ballots(other))
    z = [(each.score - each.score.mean()) / each.score.std() for each in (one, two) if not each.beyond]
    if len(z) == 2:
        np.testing.assert_allclose(*z, atol=1e-9)


def test_a_judge_that_died_early_is_not_taken_for_strict_because_its_items_were_bad() -> None:
    quality = np.sort(np.random.default_rng(0).normal(3, 0.5, 200))
    scores = np.vstack([quality, quality + 0.5, quality - 0.2])
    scores[2, 40:] = UNKNOWN  # only the worst forty
    made = panel_of(ballots(scores))
    np.testing.assert_allclose(made.common.ratings[2, :40], made.common.ratings[0, :40], atol=1e-9)
    assert made.number.tolist() == [3] * 40 + [2] * 160


def test_who_carries_nothing_is_told() -> None:
    scores = np.random.default_rng(0).normal(3, 0.5, (4, 30))
    scores[1] = 4
    scores[2, 3:] = UNKNOWN
    scores[3] = UNKNOWN
    made = panel_of(ballots(scores))
    assert [juror.why_not for juror in bench_of(made).jurors] == [
        "",
        "it gave every item a 4",
        "its mean and spread are not known from 3 items",
        "it rated nothing",
    ]
    assert made.weights.tolist() == [1, 0, 0, 0]
    assert made.number.max() == 1
    assert np.isnan(made.std_error).all()
    np.testing.assert_allclose(made.score, np.clip(scores[0], 1, 5))


def test_few_items_and_judges_that_tell_nothing_apart_leave_scores_as_they_are() -> None:
    few = panel_of(ballots(np.array([[2.0, 4.0], [4.0, UNKNOWN]])))
    assert (few.how, few.score.tolist(), few.number.tolist()) == ("plain", [3, 4], [2, 1])
    flat = panel_of(ballots(np.array([[2.0] * 12, [5.0] * 12])))
    assert (flat.how, flat.score[0]) == ("plain", 3.5)
    assert "no judge tells the items apart" in flat.why_not


def test_a_good_judge_weighs_more_and_no_weight_comes_from_an_items_own_document() -> None:
    rng = np.random.default_rng(5)
    quality = rng.normal(3, 0.6, 120)
    scores = np.vstack([quality + rng.normal(0, noise, 120) for noise in (0.2, 0.8, 5.0)])
    documents = [place // 4 for place in range(120)]
    made = panel_of(ballots(scores, quality, documents))
    assert made.how == "weighted"
    assert made.weights[0] > 0.6 > made.weights[1] > made.weights[2]
    equal = panel_of(ballots(scores, None, documents))
    assert np.corrcoef(made.score, quality)[0, 1] > np.corrcoef(equal.score, quality)[0, 1] + 0.1
    # People's scores of one document say nothing about that document's panel.
    other = quality.copy()
    other[:4] = [5, 1, 5, 1]
    np.testing.assert_allclose(panel_of(ballots(scores, other, documents)).score[:4], made.score[:4])


def test_too_few_labels_weight_nobody_and_say_so() -> None:
    rng = np.random.default_rng(5)
    people = np.where(np.arange(60) < 20, rng.normal(3, 1, 60), UNKNOWN)
    made = panel_of(ballots(rng.normal(3, 1, (2, 60)), people))
    assert made.how == "standardized"
    assert "weights need people's scores of 30 items of 6 documents, and there are 20 of 20" in made.why_not


def test_what_people_say_of_a_document_changes_no_score_of_it_nor_who_is_asked() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        quality = rng.normal(3, 0.8, 40)
        scores = np.vstack([quality + rng.normal(0, noise, 40) for noise in (0.5, 4, 4)])  # two hardly go along
        scores[rng.random((3, 40)) < 0.2] = UNKNOWN
        documents = [place // 5 for place in range(40)]
        other = quality.copy()
        other[:5] = rng.uniform(1, 5, 5)
        one, two = (panel_of(ballots(scores, people, documents)) for people in (quality, other))
        assert one.how == "weighted"
        np.testing.assert_array_equal(one.score[:5], two.score[:5])
        np.testing.assert_array_equal(one.number[:5], two.number[:5])


@pytest.mark.parametrize("rho", [0.5])
def test_shared_errors_are_found_whatever_the_judges_scales_are(rho: float) -> None:
    rng = np.random.default_rng(8)
    n = 1000
    quality, shared = rng.normal(0, 1, n), rng.normal(0, 1, n)
    errors = np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(0, 1, (4, n))
    scores = 3 + np.array([[0.2], [0.4], [0.1], [0.3]]) * (quality + errors)
    made = bench_of(panel_of(ballots(scores, 3 + 0.5 * quality, [place // 10 for place in range(n)])))
    assert made.errors.low < rho < made.errors.high
    assert made.errors.value == pytest.approx(rho, abs=0.1)
    assert made.effective.value == pytest.approx(effective_number(4, made.errors.value))


def test_a_judge_that_goes_against_the_others_is_named_and_the_farthest_ratings_are() -> None:
    rng = np.random.default_rng(2)
    quality = rng.normal(3, 0.5, 80)
    scores = np.vstack([quality + rng.normal(0, 0.2, 80) for _ in range(3)] + [6 - quality])
    found = bench_of(panel_of(ballots(scores)))
    assert [juror.disagrees for juror in found.jurors] == [False, False, False, True]
    assert found.dissents[0].judge == "d"
    sizes = [abs(each.residual) for each in found.dissents]
    assert sizes == sorted(sizes, reverse=True)
    assert found.effective.value is None
    assert "without people's scores" in found.effective.why_not


def test_correlations_are_those_of_numpy() -> None:
    columns = np.random.default_rng(1).normal(1e6, 1, (4, 50))
    np.testing.assert_allclose(correlations(columns, np.ones((1, 50)))[0], np.corrcoef(columns), atol=1e-6)


# --- in Python --------------------------------------------------------------------------------------------------------


def test_a_jury_gives_each_items_ratings_and_panel() -> None:
    rated = jury(Sees("a"), Sees("b", 0.5), Sees("c", -0.5)).rate_many(samples(60))
    assert len(rated) == 60
    assert rated.down == {}
    for each in rated:
        assert {name: str(own.signature.parts["model"]) for name, own in each.ratings.items()} == {
            "a": "a", "b": "b", "c": "c",
        }  # fmt: skip
        assert each.panel.method == "jury"
        assert each.panel.n_valid == 3
        assert each.panel.signature.parts["model"] == "jury(a+b+c)"
        assert each.to_dict()["usage"]["requests"] == 3
    assert rated.made.how == "weighted"
    assert rated.usage.requests == 180


def test_a_judge_that_dies_in_mid_run_leaves_a_panel_that_says_so() -> None:
    rated = jury(Sees("a"), Sees("b"), Sees("c", dies_after=25)).rate_many(samples(60))
    assert rated.down == {"c": "401 invalid key"}
    numbers = [each.panel.n_valid for each in rated]
    assert (numbers.count(3), numbers.count(2)) == (25, 35)
    short = next(each.panel for each in rated if each.panel.n_valid == 2)
    assert (short.n_failed, round(short.coverage, 3)) == (1, 0.667)
    assert "c none (401 invalid key)" in short.rationale
    assert short.bounds[0] < short.score < short.bounds[1]


def test_all_down_is_an_error_and_one_alone_is_no_jury() -> None:
    with pytest.raises(JudgeError, match="a: 401"):
        jury(Sees("a", dies_after=0), Sees("b", dies_after=0)).rate_many(samples(30))
    with pytest.raises(InputError, match="two judges or more"):
        jury(Sees("a"))
    with pytest.raises(InputError, match="by one criterion"):
        Jury([GEval("fluency", Sees("a")), GEval("coherence", Sees("b"))])
    with pytest.raises(InputError, match="takes several samples"):
        jury(Sees("a"), Sees("b")).rate_many("One text.")


def test_one_item_has_the_plain_mean_and_what_cannot_be_rated_has_none() -> None:
    asked = jury(Sees("a", noise=0), Sees("b", 1, noise=0))
    one = asked.rate("q=3.0").panel
    assert (one.score, one.std_error, one.signature.parts["panel"]) == (3.5, 0.5, "plain")
    rated = asked.rate_many([*samples(12), {"source": "no output"}])
    assert rated[12].panel.score is None
    assert "no judge of the panel rated it" in rated[12].panel.error


def test_equal_signatures_mean_that_a_rating_of_all_judges_comes_to_the_same() -> None:
    asked = jury(Sees("a"), Sees("b", 1))
    many = samples(30, human=None)
    one, again, fewer = (asked.rate_many(some) for some in (many, many[::-1], many[:12]))
    first = [each.panel for each in (one[0], again[-1], fewer[0])]
    assert first[0].score == pytest.approx(first[1].score)
    assert str(first[0].signature) == str(first[1].signature)
    assert first[0].score != pytest.approx(first[2].score)
    assert [told.split(" is ")[0] for told in first[0].signature.differences(first[2].signature)] == ["panel"]


def test_several_event_loops_ask_one_jury() -> None:
    asked = jury(Sees("a"), Sees("b"), Sees("c"))
    found: list[list[float]] = []

    def work() -> None:
        rated = asyncio.run(asked.arate_many(samples(30)))
        found.append([each.panel.score for each in rated])

    threads = [Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 3
    assert found[0] == found[1] == found[2]
