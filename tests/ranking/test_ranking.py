from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, permutations
from statistics import NormalDist

import choix
import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_adapters.ranking.diagnostics import (
    cyclic_triples,
    debias,
    pairwise_accuracy,
    position,
    self_consistency,
)
from geval_adapters.ranking.methods import METHODS, bradley_terry, most_likely, product_of_experts, win_ratio
from geval_adapters.ranking.outcomes import Outcome
from geval_adapters.ranking.selection import SCHEMES, next_comparisons, select

NAMES = "abcdef"
probabilities = st.integers(0, 10).map(lambda tenths: tenths / 10)
pairs = st.sampled_from(list(permutations(NAMES[:5], 2)))
outcome_lists = st.lists(st.builds(lambda pair, p: Outcome(*pair, p), pairs, probabilities | st.none()), max_size=30)


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def simulate(n: int, seed: int, *, bias: float = 0.0, noise: float = 0.0) -> tuple[list[float], list[Outcome]]:
    """A full set of soft outcomes and the true scores behind it."""
    rng = random.Random(seed)
    truth = [rng.gauss(0, 1) for _ in range(n)]
    return truth, [
        Outcome(i, j, sigma(truth[i] - truth[j] + bias + rng.gauss(0, noise))) for i, j in permutations(range(n), 2)
    ]


def hard(games: list[tuple[int, int]]) -> list[Outcome]:
    """(winner, loser) as outcomes, the winner shown first and second in turn."""
    return [Outcome(won, lost, 1.0) if k % 2 else Outcome(lost, won, 0.0) for k, (won, lost) in enumerate(games)]


def random_games(n: int, count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    games = [(rng.sample(range(n), 2)) for _ in range(count)]
    circle = [(i, (i + 1) % n) for i in range(n)]  # strongly connected: the estimate exists
    return [(a, b) for a, b in games] + circle


def values(scores: dict) -> np.ndarray:
    return np.array([scores[k] for k in sorted(scores)])


# Outcomes


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf])
def test_an_impossible_probability_is_refused(p):
    with pytest.raises(ValueError, match="p_first"):
        Outcome("a", "b", p)


def test_nothing_is_compared_with_itself():
    with pytest.raises(ValueError, match="itself"):
        Outcome("a", "a", 0.5)


# Selection


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_every_scheme_asks_about_different_candidates_once_per_order(scheme, n):
    chosen = select(range(n), scheme, seed=3)
    assert len(set(chosen)) == len(chosen)
    assert all(a != b and {a, b} <= set(range(n)) for a, b in chosen)
    calls = {"full": n * (n - 1), "random": n * (n - 1), "symmetric": n * (n - 1)}
    calls |= {"no_repeat": n * (n - 1) // 2, "chain": 2 * max(n - 1, 0)}
    assert len(chosen) == calls[scheme]


@pytest.mark.parametrize("scheme", [s for s in SCHEMES if s != "full"])
@given(budget=st.integers(0, 60), seed=st.integers(0, 99))
def test_a_budget_is_used_and_never_exceeded(scheme, budget, seed):
    chosen = select(NAMES, scheme, budget, seed)
    most = len(select(NAMES, scheme))
    step = 2 if scheme in ("symmetric", "chain") else 1
    assert len(chosen) == min(budget // step * step, most)
    assert chosen == select(NAMES, scheme, budget, seed)
    assert chosen == select(NAMES, scheme, None, seed)[: len(chosen)]


def test_symmetric_and_chain_ask_in_both_orders_and_no_repeat_in_one():
    for scheme in ("symmetric", "chain"):
        chosen = select(NAMES, scheme, 9, seed=5)
        assert len(chosen) == 8 and {(b, a) for a, b in chosen} == set(chosen)
    chosen = select(NAMES, "no_repeat", seed=5)
    assert len({frozenset(pair) for pair in chosen}) == len(chosen) == 15


def test_a_chain_connects_everybody_for_the_fewest_calls():
    outcomes = [Outcome(a, b, 0.6) for a, b in select(range(12), "chain", seed=2)]
    assert len(outcomes) == 22
    assert [len(part) for part in win_ratio(outcomes).components] == [12]


def test_another_seed_gives_another_selection():
    assert select(range(9), "random", 10, seed=1) != select(range(9), "random", 10, seed=2)


def test_selection_refuses_what_it_cannot_do():
    for arguments in [(NAMES, "best"), ("aab", "random"), (NAMES, "random", -1), (NAMES, "full", 10)]:
        with pytest.raises(ValueError):
            select(*arguments)


def test_active_selection_first_connects_all_candidates_in_both_positions():
    chosen = next_comparisons(range(8), [], count=16, seed=1)
    assert len(set(chosen)) == 16
    ranking = win_ratio([Outcome(a, b, 0.5) for a, b in chosen], range(8))
    assert len(ranking.components) == 1 and None not in ranking.scores.values()
    assert chosen == next_comparisons(range(8), [], count=16, seed=1)
    assert chosen != next_comparisons(range(8), [], count=16, seed=2)


def test_active_selection_prefers_the_unknown_to_the_known():
    outcomes = [Outcome(a, b, 0.6) for a, b in permutations("abc", 2)] * 3
    assert all("d" in pair for pair in next_comparisons("abcd", outcomes, count=2))


def test_active_selection_prefers_the_undecided_to_the_obvious():
    truth = {"a": 4.0, "b": 0.1, "c": 0.0, "d": -4.0}
    ring = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("a", "c"), ("c", "a"), ("b", "d"), ("d", "b")]
    outcomes = [Outcome(i, j, sigma(truth[i] - truth[j])) for i, j in ring]
    assert set(next_comparisons("abcd", outcomes)[0]) == {"b", "c"}


def test_active_selection_never_asks_twice_not_even_after_a_missing_reply():
    outcomes = [Outcome(a, b, None) for a, b in permutations("abc", 2) if (a, b) != ("b", "a")]
    assert next_comparisons("abc", outcomes, count=5) == [("b", "a")]
    assert next_comparisons("abc", [*outcomes, Outcome("b", "a", 1.0)], count=5) == []


QUANTILES = [NormalDist().inv_cdf((k + 0.5) / 50) for k in range(50)]


# Position


def test_position_counts_ties_half_and_leaves_missing_out():
    found = position([Outcome("a", "b", 0.9), Outcome("b", "a", 0.5), Outcome("a", "c", None)])
    assert (found.p_first.value, found.p_first.n) == (0.75, 2)
    nothing = position([Outcome("a", "b", None)])
    assert (nothing.p_first.value, nothing.flip_rate, nothing.n_pairs) == (None, None, 0)
    assert nothing.p_first.why_not


def test_the_interval_is_wilsons():
    found = position([Outcome("a", "b", float(k < 7)) for k in range(10)]).p_first
    assert (found.low, found.high) == pytest.approx((0.3968, 0.8922), abs=1e-4)


@pytest.mark.parametrize(
    ("there", "back", "flips"),
    [(0.9, 0.1, 0), (0.9, 0.9, 1), (0.2, 0.3, 1), (0.5, 0.5, 0), (0.5, 0.1, 1), (0.9, 0.5, 1)],
)
def test_a_verdict_flips_unless_the_same_candidate_wins_both_or_both_tie(there, back, flips):
    outcomes = [Outcome("a", "b", there), Outcome("b", "a", back), Outcome("a", "c", 1.0)]
    assert (position(outcomes).flip_rate, position(outcomes).n_pairs) == (flips, 1)


def test_reversals_and_one_sided_ties_are_counted_apart():
    asked = {"ab": (0.9, 0.9), "ac": (0.5, 0.1), "bc": (0.9, 0.1), "ad": (0.8, 0.5)}
    outcomes = [Outcome(*pair, there) for pair, (there, _) in asked.items()]
    outcomes += [Outcome(pair[1], pair[0], back) for pair, (_, back) in asked.items()]
    found = position(outcomes)
    assert (found.flip_rate, found.reversals, found.one_sided_ties) == (0.75, 1, 2)


def test_the_interval_of_the_first_position_knows_documents():
    """Eight documents, in each of which all of ten comparisons go the same way: eight answers, not eighty."""
    documents = [document for document in range(8) for _ in range(10)]
    outcomes = [Outcome("a", "b", float(document < 6)) for document in documents]
    alone, apart = position(outcomes).p_first, position(outcomes, documents).p_first
    assert alone.high - alone.low < 0.2
    assert apart.low < 0.4
    assert apart.high == 1
    assert position(outcomes[:50], documents[:50]) == position(outcomes[:50]), "five documents are too few"


def test_errors_of_soft_scores_cover_what_more_documents_would_say():
    """Each document shifts all probabilities a little; the errors must hold the scores that endless documents give."""
    rng = random.Random(0)
    quality, spread = [0.9, 0.3, -0.2, -1.0], 0.5
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    endless = [
        Outcome(a, b, sum(sigma(quality[a] - quality[b] + 0.3 + spread * z) for z in QUANTILES) / len(QUANTILES))
        for a, b in pairs
    ]
    truth = bradley_terry(endless, ridge=0).scores
    held, widths = 0, []
    for _ in range(40):
        outcomes, documents = [], []
        for document in range(15):
            shifted = [score + rng.gauss(0, spread / 2**0.5) for score in quality]
            outcomes += [Outcome(a, b, sigma(shifted[a] - shifted[b] + 0.3)) for a, b in pairs]
            documents += [document] * len(pairs)
        found = bradley_terry(outcomes, groups=documents)
        held += sum(abs(found.scores[k] - truth[k]) <= 1.96 * found.std_errors[k] for k in range(4))
        widths.append(found.std_errors[0])
    assert 0.88 <= held / 160 <= 0.99
    verdicts = bradley_terry([Outcome(each.first, each.second, float(each.p_first > 0.5)) for each in outcomes])
    assert verdicts.std_errors[0] > 1.5 * sum(widths) / 40, "a verdict says less than a probability"


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=40, unique=True))
def test_debias_makes_the_share_one_half(answers):
    alpha, fair = debias([Outcome("a", "b", p) for p in answers])
    assert position(fair).p_first.value == 0.5
    before, after = sorted(answers), sorted(o.p_first for o in fair)
    assert [alpha * p / (alpha * p + 1 - p) for p in before] == pytest.approx(after)


def test_debias_recovers_the_simulated_bias_and_keeps_missing_and_hard_outcomes():
    _, outcomes = simulate(9, seed=1, bias=0.8)
    alpha, _ = debias(outcomes)
    assert math.log(alpha) == pytest.approx(-0.8, abs=0.1)
    _, fair = debias([*outcomes, Outcome(0, 1, None), Outcome(0, 1, 1.0), Outcome(1, 0, 0.0)])
    assert [o.p_first for o in fair[-3:]] == [None, 1.0, 0.0]


def test_hard_outcomes_cannot_be_debiased():
    outcomes = [Outcome("a", "b", 1.0), Outcome("b", "a", 1.0), Outcome("a", "c", 0.0)]
    assert debias(outcomes) == (None, outcomes)
    assert debias([Outcome("a", "b", None)])[0] is None


# Ranking


def test_an_item_that_beats_another_in_both_orders_has_win_ratio_one():
    ranking = win_ratio([Outcome("a", "b", 1.0), Outcome("b", "a", 0.0)])
    assert ranking.scores == {"a": 1.0, "b": 0.0}
    assert ranking.ranks() == {"a": 1, "b": 2}


@given(outcome_lists)
def test_win_ratio_and_average_stay_in_the_unit_interval(outcomes):
    for method in ("win-ratio", "average"):
        scores = METHODS[method](outcomes).scores.values()
        assert all(score is None or 0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=200)
@given(outcomes=outcome_lists, names=st.permutations(NAMES[:5]), data=st.data())
def test_neither_names_nor_listing_order_change_ranks(method, outcomes, names, data):
    rename = dict(zip(NAMES, names, strict=False))
    shuffled = data.draw(st.permutations(outcomes))
    renamed = [Outcome(rename[o.first], rename[o.second], o.p_first) for o in shuffled]
    before, after = METHODS[method](outcomes, NAMES[:5]), METHODS[method](renamed, sorted(names))
    assert {rename[name]: rank for name, rank in before.ranks().items()} == after.ranks()
    assert before.log_likelihood == pytest.approx(after.log_likelihood)
    assert sorted(map(len, before.components)) == sorted(map(len, after.components))


@pytest.mark.parametrize("method", METHODS)
def test_turning_every_judgement_round_turns_the_ranking_round(method):
    _, outcomes = simulate(6, seed=4, bias=0.5, noise=0.5)
    forward = METHODS[method](outcomes).scores
    backward = METHODS[method]([Outcome(o.second, o.first, o.p_first) for o in outcomes]).scores
    total = {"win-ratio": 1, "average": 1, "most-likely": 5}.get(method, 0)
    assert values(forward) + values(backward) == pytest.approx(total)


@pytest.mark.parametrize("method", METHODS)
def test_who_was_never_compared_has_no_score_and_no_rank(method):
    outcomes = [Outcome("a", "b", 0.8), Outcome("b", "a", 0.3), Outcome("c", "a", None)]
    ranking = METHODS[method](outcomes, "abcd")
    assert ranking.ranks() == {"a": 1, "b": 2, "c": None, "d": None}
    assert ranking.scores["c"] is None and ranking.std_errors["d"] is None
    assert (ranking.n, ranking.missing) == (2, 1)
    assert any("never compared" in note and "2 of 4" in note for note in ranking.notes)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_in_nothing_out(method):
    for outcomes in ([], [Outcome("a", "b", None)]):
        ranking = METHODS[method](outcomes, "ab")
        assert ranking.scores == {"a": None, "b": None}
        assert (ranking.components, ranking.n, ranking.bias) == ((), 0, None)
    assert METHODS[method]([]).scores == {}


@pytest.mark.parametrize("method", METHODS)
def test_disconnected_comparisons_are_said(method):
    outcomes = [Outcome(a, b, 0.7) for a, b in ["ab", "ba", "bc", "cb", "de", "ed"]]
    ranking = METHODS[method](outcomes)
    assert ranking.components == (frozenset("abc"), frozenset("de"))
    assert any("2 groups" in note for note in ranking.notes)
    assert METHODS[method](outcomes[:4]).components == (frozenset("abc"),)


@pytest.mark.parametrize("method", METHODS)
def test_a_stranger_among_the_outcomes_is_refused(method):
    with pytest.raises(ValueError, match="'b'"):
        METHODS[method]([Outcome("a", "b", 1.0)], ["a"])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_order_behind_clear_outcomes(method):
    truth, outcomes = simulate(8, seed=6)
    ranks = METHODS[method](outcomes).ranks()
    assert sorted(ranks, key=ranks.get) == sorted(range(8), key=lambda i: -truth[i])


def test_ties_share_the_best_rank():
    outcomes = [
        Outcome("a", "b", 0.7),
        Outcome("a", "c", 0.7),
        Outcome("b", "d", 0.7),
        Outcome("c", "d", 0.7),
    ]
    for method in METHODS.values():
        assert method(outcomes).ranks() == {"a": 1, "b": 2, "c": 2, "d": 4}


# Bradley-Terry


@pytest.mark.parametrize("seed", range(10))
def test_bradley_terry_agrees_with_choix_and_evalica(seed):
    n = 4 + seed
    games = random_games(n, 6 * n, seed)
    ours = values(bradley_terry(hard(games), bias=False, ridge=0).scores)
    theirs = choix.ilsr_pairwise(n, games, max_iter=10_000, tol=1e-12)
    assert ours == pytest.approx(theirs - theirs.mean(), abs=1e-5)
    winners = [evalica.Winner.X] * len(games)
    scores = evalica.bradley_terry(*zip(*games, strict=True), winners, tolerance=1e-14, limit=100_000).scores
    logs = np.log([scores[i] for i in range(n)])
    assert ours == pytest.approx(logs - logs.mean(), abs=1e-5)


def test_bradley_terry_agrees_with_evalica_on_ties():
    games = random_games(6, 30, seed=3)
    winners = [evalica.Winner.Draw if k % 3 == 0 else evalica.Winner.X for k in range(len(games))]
    scores = evalica.bradley_terry(*zip(*games, strict=True), winners, tolerance=1e-14, limit=100_000).scores
    logs = np.log([scores[i] for i in range(6)])
    outcomes = [Outcome(a, b, 1.0 if k % 3 else 0.5) for k, (a, b) in enumerate(games)]
    ours = values(bradley_terry(outcomes, bias=False, ridge=0).scores)
    assert ours == pytest.approx(logs - logs.mean(), abs=1e-5)


DEGENERATE = {
    "one always wins": [(0, 1), (0, 2), (1, 2), (2, 1)],
    "one always loses": [(0, 1), (1, 0), (0, 2), (1, 2)],
    "a single comparison": [(0, 1)],
    "a chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "a clean sweep": list(combinations(range(6), 2)),
    "two groups": [(0, 1), (1, 0), (1, 2), (2, 0), (3, 4), (4, 3), (3, 4)],
    "two groups, one separable": [(0, 1), (1, 0), (2, 3), (2, 3)],
}


@pytest.mark.parametrize("games", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("ridge", [1e-4, 1e-2, 1.0])
def test_bradley_terry_agrees_with_choix_on_degenerate_graphs(games, ridge):
    n = 1 + max(map(max, games))
    ranking = bradley_terry(hard(games), bias=False, ridge=ridge)
    theirs = choix.opt_pairwise(n, games, alpha=ridge, method="BFGS", tol=1e-9)
    assert values(ranking.scores) == pytest.approx(theirs, abs=1e-5)
    assert any("prior" in note for note in ranking.notes)
    with pytest.raises(ValueError, match="ridge"):
        bradley_terry(hard(games), bias=False, ridge=0)


@settings(deadline=None)
@given(st.lists(pairs, min_size=1, max_size=12))
def test_without_a_prior_scores_exist_just_when_everybody_can_be_reached_by_wins(games):
    names = sorted({name for game in games for name in game})
    reach = {name: {name} for name in names}
    for _ in names:
        for winner, loser in games:
            for seen in reach.values():
                if winner in seen:
                    seen.add(loser)
    outcomes = [Outcome(winner, loser, 1.0) for winner, loser in games]
    if all(reach[name] == set(names) for name in names):
        assert bradley_terry(outcomes, bias=False, ridge=0).notes == ()
    else:
        with pytest.raises(ValueError, match="ridge"):
            bradley_terry(outcomes, bias=False, ridge=0)
        assert bradley_terry(outcomes, bias=False).notes != ()


def test_bradley_terry_agrees_with_choix_when_regularised_on_a_sound_graph():
    games = random_games(7, 40, seed=11)
    ranking = bradley_terry(hard(games), bias=False, ridge=0.3)
    assert values(ranking.scores) == pytest.approx(choix.opt_pairwise(7, games, alpha=0.3, tol=1e-12), abs=1e-5)
    assert ranking.notes == ()


def test_soft_outcomes_are_weighted_hard_ones():
    soft = [Outcome("a", "b", 0.75), Outcome("b", "c", 0.5), Outcome("c", "a", 0.25)] * 4
    split = [Outcome(o.first, o.second, float(k < 4 * o.p_first)) for o in soft[:3] for k in range(4)]
    first, second = bradley_terry(soft, ridge=0), bradley_terry(split, ridge=0)
    assert values(first.scores) == pytest.approx(values(second.scores), abs=1e-9)
    assert values(first.std_errors) == pytest.approx(values(second.std_errors), abs=1e-9)


def test_two_candidates_have_the_textbook_score_bias_and_error():
    ranking = bradley_terry([Outcome("a", "b", 0.9), Outcome("b", "a", 0.5)] * 10, ridge=0)
    there, back = math.log(9), 0.0
    assert ranking.scores["a"] - ranking.scores["b"] == pytest.approx((there - back) / 2)
    assert ranking.bias == pytest.approx((there + back) / 2)
    variance = (1 / (10 * 0.9 * 0.1) + 1 / (10 * 0.5 * 0.5)) / 4  # of the difference
    assert ranking.std_errors["a"] == pytest.approx(math.sqrt(variance) / 2)


def test_standard_errors_match_the_spread_over_repeated_experiments():
    truth = [0.8, 0.3, -0.2, -0.9]
    rng, estimates, errors = random.Random(5), [], []
    for _ in range(200):
        outcomes = [
            Outcome(i, j, float(rng.random() < sigma(truth[i] - truth[j] + 0.5)))
            for i, j in permutations(range(4), 2)
            for _ in range(15)
        ]
        ranking = bradley_terry(outcomes)
        estimates.append(values(ranking.scores))
        errors.append(values(ranking.std_errors))
    assert np.mean(errors, axis=0) == pytest.approx(np.std(estimates, axis=0), rel=0.12)


@pytest.mark.parametrize("bias", [-1.5, 0.0, 0.7])
def test_the_position_bias_is_recovered(bias):
    truth, outcomes = simulate(10, seed=2, bias=bias)
    ranking = bradley_terry(outcomes, ridge=0)
    assert ranking.bias == pytest.approx(bias, abs=1e-6)
    assert values(ranking.scores) == pytest.approx(np.array(truth) - np.mean(truth), abs=1e-6)
    assert bradley_terry(outcomes, bias=False).bias is None
    assert math.copysign(1, product_of_experts(outcomes).bias + 1e-9) == math.copysign(1, bias)


def test_the_bias_term_helps_where_orders_are_out_of_balance():
    truth, outcomes = simulate(6, seed=8, bias=1.5)
    lopsided = [o for o in outcomes if o.first > o.second]  # the later candidate always enjoys the first place
    ring = [Outcome(i, j, sigma(truth[i] - truth[j] + 1.5)) for i, j in [(0, 1), (1, 2)]]
    with_bias = values(bradley_terry(lopsided + ring, ridge=1e-6).scores)
    without = values(bradley_terry(lopsided + ring, ridge=1e-6, bias=False).scores)
    centred = np.array(truth) - np.mean(truth)
    assert np.abs(with_bias - centred).max() < 0.01 < 0.5 < np.abs(without - centred).max()


def test_a_judge_who_always_picks_the_first_still_gets_finite_scores():
    outcomes = [Outcome(a, b, 1.0) for a, b in permutations("abc", 2)]
    ranking = bradley_terry(outcomes)
    assert set(ranking.ranks().values()) == {1}
    assert 1 < ranking.bias < 20
    assert any("prior" in note for note in ranking.notes)


def test_scores_of_groups_that_never_met_are_far_from_certain():
    outcomes = [Outcome(a, b, p) for a, b in ["ab", "ba", "cd", "dc"] for p in (0.4, 0.6)]
    apart = bradley_terry(outcomes).std_errors["a"]
    together = bradley_terry(outcomes + [Outcome("b", "c", 0.5)] * 9).std_errors["a"]
    assert apart > 1.5 * together


def test_bradley_terry_refuses_a_negative_ridge():
    with pytest.raises(ValueError, match="ridge"):
        bradley_terry([Outcome("a", "b", 0.5)], ridge=-1)


# Gaussian experts


def test_the_gaussian_solution_is_least_squares():
    truth = [0.1, 0.05, -0.05, -0.1]
    rng = random.Random(3)
    outcomes = [Outcome(i, j, truth[i] - truth[j] + 0.6 + rng.uniform(-0.1, 0.1)) for i, j in permutations(range(4), 2)]
    ranking = product_of_experts(outcomes)
    x = np.zeros((12, 5))
    for row, o in enumerate(outcomes):
        x[row, o.first], x[row, o.second], x[row, 4] = 1, -1, 1
    y = np.array([o.p_first for o in outcomes])
    theta, rest, _, _ = np.linalg.lstsq(x[:, [0, 1, 2, 4]] - x[:, [3, 3, 3, 4]] * [1, 1, 1, 0], y)
    assert values(ranking.scores)[:3] == pytest.approx(theta[:3])
    assert ranking.bias == pytest.approx(theta[3] - 0.5)
    # For a full design the information about each score is 2n on the space of centred scores.
    assert values(ranking.std_errors) == pytest.approx(math.sqrt(rest[0] / 8 / 8 * 3 / 4))


def test_a_bias_that_cannot_be_told_from_the_scores_is_said():
    ranking = product_of_experts([Outcome("a", "b", 0.9), Outcome("b", "c", 0.8)])
    assert any("position bias" in note for note in ranking.notes)
    assert set(ranking.std_errors.values()) == {None}
    assert ranking.ranks() == {"a": 1, "b": 2, "c": 3}


# The most likely order


def log_likelihood(order: tuple, outcomes: list[Outcome]) -> float:
    place = {name: k for k, name in enumerate(order)}
    clipped = [(o, min(max(o.p_first, 0.01), 0.99)) for o in outcomes]
    return sum(math.log(p if place[o.first] < place[o.second] else 1 - p) for o, p in clipped)


def test_the_greedy_order_is_nearly_always_the_best_of_all_orders():
    found = 0
    for seed in range(60):
        n = 3 + seed % 4
        _, outcomes = simulate(n, seed, bias=0.5, noise=1.0)
        best = max(log_likelihood(order, outcomes) for order in permutations(range(n)))
        ranking = most_likely(outcomes)
        ranks = ranking.ranks()
        own = log_likelihood(tuple(sorted(ranks, key=ranks.get)), outcomes)
        assert ranking.log_likelihood == pytest.approx(own)
        assert ranking.log_likelihood <= best + 1e-9
        found += ranking.log_likelihood > best - 1e-9
    assert found >= 58


def test_among_hard_outcomes_the_clip_does_not_matter_for_the_order():
    outcomes = hard(random_games(8, 30, seed=1))
    assert most_likely(outcomes, clip=0.001).ranks() == most_likely(outcomes, clip=0.3).ranks()
    with pytest.raises(ValueError, match="clip"):
        most_likely(outcomes, clip=0)


def test_one_certain_reply_does_not_outweigh_all_others():
    outcomes = [Outcome("a", "b", 1.0)] + [Outcome("b", "a", 0.8)] * 4
    assert most_likely(outcomes).ranks() == {"b": 1, "a": 2}


def test_three_in_a_perfect_circle_are_tied():
    ranking = most_likely([Outcome("a", "b", 0.8), Outcome("b", "c", 0.8), Outcome("c", "a", 0.8)])
    assert set(ranking.ranks().values()) == {1}
    assert math.exp(ranking.log_likelihood) == pytest.approx(0.8 * 0.8 * 0.2)


# Diagnostics


def test_accuracy_counts_only_pairs_that_the_humans_tell_apart():
    human = {"a": 3, "b": 2, "c": 2}
    outcomes = [
        Outcome("a", "b", 0.9),  # right
        Outcome("b", "a", 0.6),  # wrong, but less sure of it
        Outcome("a", "c", 0.5),  # a tie, and in one order only
        Outcome("b", "c", 0.9),  # equal for the humans
        Outcome("c", "a", None),
    ]
    found = pairwise_accuracy(outcomes, human)
    assert (found.one_order, found.n_one_order) == (0.5, 3)
    assert (found.both_orders, found.n_both_orders) == (1.0, 1)
    assert pairwise_accuracy([], human).one_order is None
    with pytest.raises(ValueError, match="'c'"):
        pairwise_accuracy(outcomes, {"a": 3, "b": 2})


def test_hard_verdicts_that_flip_are_half_right():
    outcomes = [Outcome("a", "b", 1.0), Outcome("b", "a", 1.0)]
    assert pairwise_accuracy(outcomes, {"a": 1, "b": 2}).both_orders == 0.5


def test_cyclic_triples_by_hand():
    circle = [Outcome("a", "b", 0.9), Outcome("b", "c", 0.9), Outcome("c", "a", 0.9)]
    above = [Outcome("d", name, 0.9) for name in "abc"]
    assert cyclic_triples(circle) == (1, 1)
    assert cyclic_triples(circle + above) == (1, 4)
    assert cyclic_triples(circle + above[:2]) == (1, 2)  # a, b, d is the other complete one
    assert cyclic_triples([*circle, Outcome("a", "c", 0.9)]) == (0, 1)  # c and a tie over the two orders
    assert cyclic_triples(circle[:2]) == cyclic_triples([]) == (0, 0)


def test_cyclic_triples_agree_with_counting():
    _, outcomes = simulate(7, seed=9, noise=3.0)
    beats = {(o.first, o.second): o.p_first for o in outcomes}
    wins = {(i, j) for i, j in beats if beats[i, j] + 1 - beats[j, i] > 1}
    degrees = [Counter(i for i, j in wins if {i, j} <= set(triple)) for triple in combinations(range(7), 3)]
    assert cyclic_triples(outcomes) == (sum(max(d.values()) == 1 for d in degrees), 35)


def test_self_consistency_is_perfect_for_a_perfect_judge_and_for_all_candidates():
    _, clear = simulate(9, seed=1)
    assert self_consistency(clear, "average", sizes=[2, 5, 9]) == {2: 1.0, 5: 1.0, 9: 1.0}
    _, noisy = simulate(9, seed=1, noise=2.0)
    found = self_consistency(noisy, "average", sizes=[2, 5, 9], seed=3)
    assert 0.5 < found[2] <= found[5] < found[9] == 1.0
    assert found == self_consistency(noisy, "average", sizes=[2, 5, 9], seed=3)


def test_self_consistency_can_be_measured_against_human_scores():
    truth, outcomes = simulate(6, seed=2)
    human = dict(enumerate(truth))
    assert self_consistency(outcomes, "win-ratio", sizes=[3], reference=human) == {3: 1.0}
    upside_down = {name: -score for name, score in human.items()}
    assert self_consistency(outcomes, "win-ratio", sizes=[3], reference=upside_down) == {3: 0.0}
    assert self_consistency(outcomes, "win-ratio", sizes=[3], reference=dict.fromkeys(human, 1.0)) == {3: None}


def test_self_consistency_refuses_what_it_cannot_rank():
    outcomes = [Outcome("a", "b", 0.8)]
    for arguments in [("best", [2]), ("average", [1]), ("average", [3])]:
        with pytest.raises(ValueError):
            self_consistency(outcomes, *arguments)
