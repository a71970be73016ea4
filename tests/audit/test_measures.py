"""The audit's statistics against other ways to get them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from geval_adapters import Scale
from geval_adapters.agreement import intervals
from geval_adapters.audit import measures
from geval_adapters.judge import local

RNG = np.random.default_rng(3)


def test_entropy_is_that_of_scipy():
    x = RNG.integers(1, 6, size=80).astype(float)
    [entropy] = measures.entropy(x, np.ones((1, 80)))
    assert entropy == pytest.approx(stats.entropy(np.unique(x, return_counts=True)[1], base=2))


def test_the_gaps_between_systems_are_those_of_a_line_fitted_to_the_others():
    judge, people = RNG.normal(size=(2, 30))
    system = np.arange(30) % 3
    weights = np.stack([np.ones(30), RNG.integers(0, 3, 30)]).astype(float)
    gaps = measures.system_gaps(judge, people, system.astype(float), np.zeros(2), weights)
    for row, copies in zip(gaps, weights.astype(int), strict=True):
        j, p, s = (np.repeat(column, copies) for column in (judge, people, system))
        for k in range(3):
            slope, level = np.polyfit(p[s != k], j[s != k], 1)
            assert row[k] == pytest.approx((j[s == k] - level - slope * p[s == k]).mean())


def test_noisy_people_do_not_make_good_systems_look_favoured():
    """Three systems far apart, as much noise in people's scores as in quality; the second one is favoured."""
    rng = np.random.default_rng(2)
    system = np.arange(60_000) % 3
    quality = system + rng.normal(size=system.size)
    judge, people = 0.7 * quality + 0.2 * (system == 1), quality + rng.normal(size=system.size)
    [gaps] = measures.system_gaps(judge, people, system.astype(float), np.ones(1), np.ones((1, system.size)))
    assert gaps[1] == pytest.approx(0.2, abs=0.03)
    unbiased = 0.7 * quality
    [gaps] = measures.system_gaps(unbiased, people, system.astype(float), np.ones(1), np.ones((1, system.size)))
    assert gaps == pytest.approx(np.zeros(3), abs=0.05)
    [naive] = measures.system_gaps(unbiased, people, system.astype(float), np.zeros(1), np.ones((1, system.size)))
    assert naive[2] > 0.2


def test_an_effect_beside_quality_is_that_of_a_regression_on_quality_itself():
    """With as much noise in people's scores as in quality, and lengths that go with quality."""
    rng = np.random.default_rng(1)
    quality = rng.normal(size=200_000)
    x = 0.5 * quality + rng.normal(size=quality.size)
    judge, people = 0.7 * quality + 0.2 * x, quality + rng.normal(size=quality.size)
    once = np.ones((1, quality.size))
    corrected = measures.effect_beside_quality(judge, people, x, np.ones(1), once)
    assert corrected[0] == pytest.approx(0.2 * x.std(), abs=0.01)
    naive = measures.effect_beside_quality(judge, people, x, np.zeros(1), once)
    assert naive[0] > 0.3
    mostly_noise = measures.effect_beside_quality(judge, people, x, np.full(1, 1.9), once)
    assert math.isnan(mostly_noise[0])


def test_the_interval_covers_as_often_as_it_says():
    """Means of ten documents of three items; by plain percentiles it would be about 90 %."""
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = (rng.normal(size=(10, 1)) + 0.5 * rng.normal(size=(10, 3))).ravel()
        figure = intervals.bootstrap(
            lambda weights, v=values: weights @ v / weights.sum(axis=1), np.repeat(range(10), 3)
        )
        covered += figure.low < 0 < figure.high
    assert 0.91 <= covered / 200 <= 0.98


def test_round_numbers_count_only_where_a_scale_has_others():
    def excess(scores: Sequence[float], scale: Scale) -> float:
        return float(measures.round_number_excess(np.array(scores), scale, np.ones((1, len(scores))))[0])

    assert math.isnan(excess([1.0, 5.0], Scale.of("1-5")))
    assert excess([2.0, 2.33], Scale.of([1, 1.33, 1.67, 2, 2.33, 2.67, 3])) == pytest.approx(0.5 - 0.2)
    assert math.isnan(excess([100.0, 100.0, 1.0], Scale.of("1-100"))), "the ends may be what all deserve"
    assert excess(range(1, 101), Scale.of("1-100")) == pytest.approx(0)


def test_scales_are_binned_to_five_levels_of_equal_width():
    for text in ("1-5", "1-10", "1-100"):
        scale = Scale.of(text)
        levels = measures.binned(np.array(scale.values), scale)
        assert np.unique(levels, return_counts=True)[1].tolist() == [len(scale.values) // 5] * 5


def test_perplexity_is_that_of_the_tokens_asked_for_one_by_one():
    if not local.is_installed():
        pytest.skip("needs the embedded model: see docs/installing.md")
    text = "The cat sat on the mat."
    endpoint = local.serve(local.SMOLLM2)
    ids = local._post(endpoint, "/tokenize", {"content": text})["tokens"]
    before = local._post(endpoint, "/tokenize", {"content": "\n"})["tokens"]
    logprobs = []
    for place, token in enumerate(ids):
        body = {"prompt": before + ids[:place], "n_predict": 1, "temperature": 0, "n_probs": 20_000}
        told = local._post(endpoint, "/completion", body)["completion_probabilities"][0]["top_logprobs"]
        logprobs.append(next(each["logprob"] for each in told if each["id"] == token))
    assert local.perplexity(text) == pytest.approx(math.exp(-np.mean(logprobs)), rel=0.02)
    shuffled = "mat on. the The sat cat"
    assert local.perplexity(shuffled) > 10 * local.perplexity(text)
    assert local.perplexity("") is None
