"""Agreement figures are checked against plain loops over SciPy, hand counts and published examples."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from geval_adapters.agreement import coefficients
from geval_adapters.agreement.alpha import krippendorff_alpha
from geval_adapters.agreement.levels import Agreement, Level, agreement
from geval_adapters.agreement.significance import holm, permutation_test, williams

settings.register_profile("agreement", deadline=None)  # a slow machine is no failure
settings.load_profile("agreement")

CORRELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "pearson": lambda x, y: stats.pearsonr(x, y)[0],
    "spearman": lambda x, y: stats.spearmanr(x, y)[0],
    "kendall_b": lambda x, y: stats.kendalltau(x, y, variant="b")[0],
    "kendall_c": lambda x, y: stats.kendalltau(x, y, variant="c")[0],
}
Item = tuple[float, float, int, int]


def constant(x: Sequence[float]) -> bool:
    return len(set(x)) < 2


def plain_correlation(name: str, x: Sequence[float], y: Sequence[float]) -> float:
    return math.nan if constant(x) or constant(y) else float(CORRELATIONS[name](x, y))


def plain_accuracy(x: Sequence[float], y: Sequence[float], threshold: float = 0) -> float:
    pairs = list(itertools.combinations(range(len(x)), 2))
    right = 0
    for i, j in pairs:
        tied = abs(x[i] - x[j]) <= threshold * (1 + 1e-8)
        right += (y[i] == y[j]) if tied else bool((x[i] - x[j]) * (y[i] - y[j]) > 0)
    return right / len(pairs) if pairs else math.nan


def plain(name: str, x: Sequence[float], y: Sequence[float], threshold: float) -> float:
    if name in CORRELATIONS:
        return plain_correlation(name, x, y)
    return plain_accuracy(x, y, threshold if name.endswith("calibrated") else 0)


def system_means(items: Sequence[Item]) -> tuple[list[float], list[float]]:
    names = sorted({item[3] for item in items})
    columns = [[math.fsum(item[side] for item in items if item[3] == name) for name in names] for side in (0, 1)]
    sizes = [sum(item[3] == name for item in items) for name in names]
    return tuple([total / n for total, n in zip(column, sizes, strict=True)] for column in columns)  # type: ignore[return-value]


def plain_levels(blocks: Sequence[Sequence[Item]], thresholds: dict[str, float]) -> dict[tuple[str, str], float]:
    """Every figure of concatenated documents, in the most literal way; NaN where undefined."""
    items = [item for block in blocks for item in block]
    figures = {}
    for name in Level.__dataclass_fields__:
        x, y = [item[0] for item in items], [item[1] for item in items]
        figures["dataset", name] = plain(name, x, y, thresholds["dataset"])
        each = [plain(name, [i[0] for i in b], [i[1] for i in b], thresholds["document"]) for b in blocks]
        each = [figure for figure in each if not math.isnan(figure)]
        figures["document", name] = sum(each) / len(each) if each else math.nan
        figures["system", name] = plain(name, *system_means(items), thresholds["system"])
    return figures


def best_threshold(groups: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The smallest threshold with the highest mean accuracy, by trying all of them."""
    groups = [group for group in groups if len(group[0]) > 1]
    candidates = sorted({0.0} | {abs(a - b) for x, _ in groups for a, b in itertools.combinations(x, 2)})
    means = [round(sum(plain_accuracy(x, y, c) for x, y in groups) / max(1, len(groups)), 10) for c in candidates]
    return candidates[means.index(max(means))]


def best_thresholds(blocks: Sequence[Sequence[Item]]) -> dict[str, float]:
    split = [([i[0] for i in block], [i[1] for i in block]) for block in blocks]
    pooled = ([v for x, _ in split for v in x], [v for _, y in split for v in y])
    means = system_means([item for block in blocks for item in block])
    return {
        "dataset": best_threshold([pooled]),
        "document": best_threshold(split),
        "system": best_threshold([means]),
    }


def run(items: Sequence[Item], **options: Any) -> Agreement:
    x, y, documents, systems = zip(*items, strict=True)
    return agreement(x, y, documents, systems, **options)


def blocks_of(items: Sequence[Item]) -> list[list[Item]]:
    names = sorted({item[2] for item in items})
    return [[item for item in items if item[2] == name] for name in names]


def same(value: float | None, expected: float) -> bool:
    return value is None if math.isnan(expected) else value is not None and abs(value - expected) < 1e-9


# Quarters are exact in binary, so that the plain means of systems tie exactly where they should.
quarters = st.integers(0, 12).map(lambda k: k / 4)
item_lists = st.lists(st.tuples(quarters, quarters, st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=30)


@given(item_lists)
def test_every_figure_at_every_level_is_that_of_the_plain_loop(items: list[Item]) -> None:
    blocks = blocks_of(items)
    expected = plain_levels(blocks, best_thresholds(blocks))
    result = run(items, resamples=0)
    for (level, name), figure in expected.items():
        coefficient = getattr(getattr(result, level), name)
        assert same(coefficient.value, figure), (level, name, coefficient, figure)


document_lists = st.lists(
    st.lists(st.tuples(quarters, quarters, st.integers(0, 4)), min_size=1, max_size=4), min_size=6, max_size=8
)


def reach(draws: Sequence[float], units: int, confidence: float) -> float:
    """Half an interval by its formula, from figures of a plain loop."""
    known = [draw for draw in draws if not math.isnan(draw)]
    return float(stats.t.ppf((1 + confidence) / 2, units - 1) * math.sqrt(units / (units - 1)) * np.std(known))


def plain_resamples(blocks: Sequence[Sequence[Item]], resamples: int, seed: int) -> list[dict[tuple[str, str], float]]:
    thresholds, m = best_thresholds(blocks), len(blocks)
    counts = np.random.default_rng(seed).multinomial(m, [1 / m] * m, size=resamples)
    drawn = [[b for b, count in zip(blocks, row, strict=True) for _ in range(count)] for row in counts]
    return [plain_levels(each, thresholds) for each in drawn]


@given(document_lists, st.integers(0, 2**32))
def test_intervals_are_those_of_a_plain_loop_over_resampled_documents(lists: list[Any], seed: int) -> None:
    blocks = [[(x, y, document, s) for x, y, s in each] for document, each in enumerate(lists)]
    loop = plain_resamples(blocks, 3, seed)
    result = run([item for block in blocks for item in block], resamples=3, seed=seed, confidence=0.8)
    for level, name in loop[0]:
        if level == "system":  # which resamples systems, too: the next test
            continue
        coefficient = getattr(getattr(result, level), name)
        draws = [figures[level, name] for figures in loop]
        units = coefficient.n if level == "document" else len(blocks)
        if coefficient.value is None or units < 6 or 2 * sum(map(math.isnan, draws)) > 3:
            assert (coefficient.low, coefficient.high) == (None, None)
            assert coefficient.why_not
            continue
        lowest = 0 if name.startswith("pairwise") else -1
        half = reach(draws, units, 0.8)
        assert same(coefficient.low, max(lowest, coefficient.value - half)), (level, name)
        assert same(coefficient.high, min(1, coefficient.value + half)), (level, name)


def test_intervals_at_system_level_resample_documents_and_systems() -> None:
    rng = np.random.default_rng(0)
    people = rng.normal(0, 1, (12, 1)) + rng.normal(0, 0.7, 7) + rng.normal(0, 1, (12, 7))
    judge = people + rng.normal(0, 1.0, (12, 7))
    where = [[str(10 + d) for d in range(12) for _ in range(7)], list(range(7)) * 12]
    found = agreement(judge.ravel().tolist(), people.ravel().tolist(), *where, resamples=400, seed=3).system
    documents = np.random.default_rng(3).multinomial(12, [1 / 12] * 12, size=400)
    systems = np.random.default_rng([3, 1]).integers(7, size=(401, 7))[1:]
    draws, alone = [], []
    for counts, chosen in zip(documents, systems, strict=True):
        x, y = (counts @ each / 12 for each in (judge, people))
        draws.append(np.corrcoef(x[chosen], y[chosen])[0, 1])
        alone.append(np.corrcoef(x, y)[0, 1])
    half = reach(draws, 7, 0.95)
    assert found.pearson.low == pytest.approx(max(-1, found.pearson.value - half))
    assert half > 1.3 * reach(alone, 12, 0.95), "other systems might have been compared"
    assert "7 systems" in found.pearson.method
    three = [judge[:, :3].ravel().tolist(), people[:, :3].ravel().tolist()]
    few = agreement(*three, [d for d in range(12) for _ in range(3)], [0, 1, 2] * 12)
    assert few.system.pearson.low is None
    assert few.system.pearson.why_not == "no interval: it needs 6 systems, and there are 3"


@given(st.lists(st.tuples(quarters, quarters), min_size=6, max_size=25), st.integers(0, 2**32))
def test_without_documents_the_items_are_resampled(pairs: list[tuple[float, float]], seed: int) -> None:
    x, y = zip(*pairs, strict=True)
    result = agreement(x, y, resamples=2, seed=seed)
    counts = np.random.default_rng(seed).multinomial(len(x), [1 / len(x)] * len(x), size=2)
    threshold = best_threshold([(x, y)])
    for name in Level.__dataclass_fields__:
        coefficient = getattr(result.dataset, name)
        assert same(coefficient.value, plain(name, x, y, threshold))
        draws = [plain(name, np.repeat(x, row).tolist(), np.repeat(y, row).tolist(), threshold) for row in counts]
        if coefficient.low is not None:
            assert same(coefficient.high, min(1, coefficient.value + reach(draws, len(x), 0.95)))


def test_many_items_give_the_same_as_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    items: list[Item] = [(rng.normal(), float(rng.integers(1, 6)), d, s) for d in range(9) for s in range(6)]
    whole = run(items, resamples=30)
    monkeypatch.setattr("geval_adapters.agreement.intervals.CELLS", 40)
    in_pieces = run(items, resamples=30)
    for level in ("dataset", "document", "system"):
        for name in Level.__dataclass_fields__:
            one, other = (getattr(getattr(result, level), name) for result in (whole, in_pieces))
            assert one.value == pytest.approx(other.value, abs=1e-12)
            assert one.low == pytest.approx(other.low, abs=1e-12)


def test_a_threshold_chosen_on_part_of_the_items_is_close_to_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    humans = rng.integers(1, 4, 400)
    predictions = (humans + rng.normal(0, 0.3, 400)).tolist()
    exact = agreement(predictions, humans.tolist(), resamples=0).dataset
    monkeypatch.setattr("geval_adapters.agreement.coefficients.CALIBRATION_ITEMS", 100)
    part = agreement(predictions, humans.tolist(), resamples=0).dataset
    assert exact.pairwise_accuracy_calibrated.note != part.pairwise_accuracy_calibrated.note
    best, near = exact.pairwise_accuracy_calibrated.value, part.pairwise_accuracy_calibrated.value
    assert best is not None
    assert near is not None
    assert best - 0.005 < near <= best
    assert near > (exact.pairwise_accuracy.value or 0) + 0.1


def test_calibration_finds_the_gap_between_ties_and_differences() -> None:
    # People see two groups; the judge's scores inside a group differ by at most 0.2.
    result = agreement([1.0, 1.1, 1.2, 3.0, 3.1, 3.2], [1, 1, 1, 2, 2, 2], resamples=0).dataset
    assert result.pairwise_accuracy.value == pytest.approx(9 / 15)
    assert result.pairwise_accuracy_calibrated.value == 1
    assert result.pairwise_accuracy_calibrated.note == "predictions at most 0.2 apart count as tied"


def test_rounding_noise_does_not_break_ties_between_systems() -> None:
    # Both systems have the scores .1, .2, .3 but in another order: their floating-point sums differ.
    predictions = [0.1, 0.3, 0.2, 0.2, 0.3, 0.1, 0.9, 0.9, 0.9]
    humans = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0]
    assert sum(predictions[:3]) != sum(predictions[3:6])
    result = agreement(predictions, humans, [0, 1, 2] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2], resamples=0)
    assert result.system is not None
    assert result.system.kendall_b.value == pytest.approx(1)
    assert result.system.pairwise_accuracy.value == 1


@given(item_lists, st.randoms(use_true_random=False))
def test_the_order_of_the_items_does_not_matter(items: list[Item], random: Any) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    one, other = run(items, resamples=0).to_dict(), run(shuffled, resamples=0).to_dict()
    for level in ("dataset", "document", "system"):
        for name, coefficient in one[level].items():
            assert other[level][name]["value"] == pytest.approx(coefficient["value"], abs=1e-9)
            assert other[level][name]["skipped"] == coefficient["skipped"]


@given(item_lists)
def test_raising_or_scaling_the_predictions_does_not_matter(items: list[Item]) -> None:
    moved = [(4 * x - 64, y, d, s) for x, y, d, s in items]
    one, other = run(items, resamples=5).to_dict(), run(moved, resamples=5).to_dict()
    for level in ("dataset", "document", "system"):
        for name, coefficient in one[level].items():
            for field in ("value", "low", "high"):
                assert other[level][name][field] == pytest.approx(coefficient[field], abs=1e-9)


def test_intervals_are_reproducible_and_depend_on_the_seed() -> None:
    rng = np.random.default_rng(0)
    items: list[Item] = [(rng.normal(), rng.normal(), d, s) for d in range(20) for s in range(4)]
    assert run(items, seed=1) == run(items, seed=1)
    assert run(items, seed=1).dataset.pearson.low != run(items, seed=2).dataset.pearson.low
    assert run(items, seed=1).dataset.pearson.value == run(items, seed=2).dataset.pearson.value


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for trial in range(100):
        x = rng.normal(size=60)
        y = 0.5 * x + math.sqrt(0.75) * rng.normal(size=60)
        r = agreement(x.tolist(), y.tolist(), resamples=200, seed=trial, confidence=0.9).dataset.pearson
        assert r.low is not None
        assert r.high is not None
        held += r.low <= 0.5 <= r.high
    assert 0.8 <= held / 100 <= 0.97


def test_skipped_documents_are_counted_and_the_other_policy_shown() -> None:
    # Document a agrees, b has constant predictions, c constant humans, d is a single item.
    predictions = [1, 2, 3, 2, 2, 2, 1, 2, 3, 5]
    humans = [1, 2, 3, 1, 2, 3, 4, 4, 4, 5]
    result = agreement(predictions, humans, list("aaabbbcccd"), resamples=0)
    assert result.document is not None
    r = result.document.pearson
    assert (r.n, r.skipped) == (1, 2)
    assert r.value == pytest.approx(1)
    assert r.value_constant_as_zero == pytest.approx(1 / 3)
    accuracy = result.document.pairwise_accuracy
    assert (accuracy.n, accuracy.skipped) == (3, 0)
    assert accuracy.value == pytest.approx(1 / 3)
    assert accuracy.value_constant_as_zero == accuracy.value
    assert any("single item" in note for note in result.notes)


def test_missing_scores_are_left_out_and_counted() -> None:
    result = agreement([1, None, 3, 4, math.nan, 2, 2], [2, 3, None, 5, 1, math.nan, 3], resamples=50)
    assert (result.n, result.missing) == (3, 4)
    assert result.dataset == agreement([1, 4, 2], [2, 5, 3], resamples=50).dataset
    assert result.notes[0] == "4 of 7 items have no prediction or no human score and are left out"


@pytest.mark.parametrize(
    ("predictions", "humans", "words"),
    [
        ([3, 3, 3], [1, 2, 3], "the predictions are constant"),
        ([1, 2, 3], [4, 4, 4], "the human scores are constant"),
        ([3, 3, 3], [4, 4, 4], "the predictions and the human scores are constant"),
        ([0.1] * 7, [1, 2, 3, 4, 5, 6, 7], "the predictions are constant"),
    ],
)
def test_a_constant_side_gets_words(predictions: list[float], humans: list[float], words: str) -> None:
    result = agreement(predictions, humans, [0] * len(humans), range(len(humans)), resamples=20)
    assert result.document is not None
    assert result.system is not None
    for name in CORRELATIONS:
        for level in (result.dataset, result.system):
            coefficient = getattr(level, name)
            assert (coefficient.value, coefficient.low, coefficient.high) == (None, None, None)
            assert coefficient.value_constant_as_zero == 0
            assert coefficient.note.startswith(f"undefined: {words}")
        assert getattr(result.document, name).note.startswith("undefined: one side is constant in every document")
        assert getattr(result.document, name).skipped == 1
    assert result.dataset.pairwise_accuracy.value is not None


@pytest.mark.parametrize("scores", [[], [3.0], [None, 2.0, math.nan]])
def test_too_few_items_get_words(scores: list[float | None]) -> None:
    result = agreement(scores, scores, ["d"] * len(scores), ["s"] * len(scores))
    assert result.document is not None
    assert result.system is not None
    for name in Level.__dataclass_fields__:
        for level, words in (
            (result.dataset, "fewer than two items"),
            (result.document, "no document has two items"),
            (result.system, "fewer than two systems"),
        ):
            coefficient = getattr(level, name)
            assert coefficient.value is None
            assert coefficient.value_constant_as_zero is None
            assert words in coefficient.note


def test_two_items_are_called_too_few_to_mean_much() -> None:
    r = agreement([1, 2], [3, 5], resamples=0).dataset.pearson
    assert r.value == pytest.approx(1)
    assert "only two items" in r.note


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_unit_of_the_scores_does_not_matter(unit: float) -> None:
    r = agreement([1 * unit, 2 * unit, 4 * unit], [1, 3, 2], resamples=0).dataset.pearson
    assert r.value == pytest.approx(agreement([1, 2, 4], [1, 3, 2], resamples=0).dataset.pearson.value)


def test_one_document_has_no_interval_and_says_so() -> None:
    r = agreement([1, 2, 4], [1, 3, 2], ["d", "d", "d"]).dataset.pearson
    assert r.value is not None
    assert (r.low, r.high) == (None, None)
    assert "no interval" in r.note


def test_undefined_resamples_are_counted_not_averaged() -> None:
    # Leaving out the one document where people see a difference makes their side constant.
    humans = [1, 1] * 5 + [2, 2]
    r = agreement(range(12), humans, [k // 2 for k in range(12)], resamples=400).dataset.pearson
    undefined = int(r.note.split()[0])
    assert 105 <= undefined <= 165  # (5/6)^6 of 400
    assert r.low is not None
    assert math.isfinite(r.low)


def test_levels_that_were_not_asked_for_are_none_and_say_so() -> None:
    result = agreement([1, 2, 3], [1, 3, 2], resamples=0)
    assert result.document is None
    assert result.system is None
    assert any("no documents given" in note for note in result.notes)
    assert any("no systems given" in note for note in result.notes)
    assert (result.dataset.pearson.low, result.dataset.pearson.high) == (None, None)


def test_the_result_is_plain_json() -> None:
    result = run([(1.0, 2.0, 0, 0), (2.0, 2.0, 0, 1), (3.0, 1.0, 1, 0), (4.0, 2.5, 1, 1)], resamples=10)
    again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert again == result.to_dict()
    assert set(again) == {"n", "missing", "dataset", "document", "system", "notes"}
    assert again["document"]["kendall_c"]["n"] == result.document.kendall_c.n  # type: ignore[union-attr]


def test_bad_input_is_refused_with_the_numbers() -> None:
    with pytest.raises(ValueError, match="3 predictions, 2 humans"):
        agreement([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="1 documents"):
        agreement([1, 2, 3], [1, 2, 3], ["a"])
    with pytest.raises(ValueError, match="1 is infinite"):
        agreement([1, math.inf], [1, 2])
    with pytest.raises(ValueError, match="resamples"):
        agreement([1, 2], [1, 2], resamples=-1)
    with pytest.raises(ValueError, match="confidence"):
        agreement([1, 2], [1, 2], confidence=95)


# Williams' test


def test_williams_reproduces_a_textbook_example() -> None:
    # D. Howell, Statistical Methods for Psychology, 6th ed., p. 262, as computed to three decimals in the
    # CBU statistics wiki (imaging.mrc-cbu.cam.ac.uk/statswiki/FAQ/Will): t(23) = 1.361, p = .187.
    test = williams(0.80, 0.72, 0.89, 26)
    assert test.statistic == pytest.approx(1.361, abs=5e-4)
    assert test.df == 23
    assert test.p_two_sided == pytest.approx(0.187, abs=5e-4)
    assert test.p_one_sided == pytest.approx(test.p_two_sided / 2)


def test_williams_is_antisymmetric() -> None:
    better, worse = williams(0.6, 0.4, 0.5, 100), williams(0.4, 0.6, 0.5, 100)
    assert better.statistic == pytest.approx(-worse.statistic)
    assert better.p_one_sided == pytest.approx(1 - worse.p_one_sided)
    assert better.p_two_sided == pytest.approx(worse.p_two_sided)
    assert better.p_one_sided < 0.05 < worse.p_one_sided


def test_williams_rejects_a_true_null_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    covariance = [[1, 0.5, 0.5], [0.5, 1, 0.6], [0.5, 0.6, 1]]
    trials = 4000
    one_sided = two_sided = 0
    for data in rng.multivariate_normal([0, 0, 0], covariance, size=(trials, 40)):
        r = np.corrcoef(data.T)
        test = williams(r[0, 1], r[0, 2], r[1, 2], 40)
        one_sided += test.p_one_sided < 0.05
        two_sided += test.p_two_sided < 0.05
    assert 0.04 < one_sided / trials < 0.06
    assert 0.04 < two_sided / trials < 0.06


def test_williams_of_a_judge_with_itself_finds_no_difference() -> None:
    test = williams(0.7, 0.7 + 1e-16, 1.0, 50)
    assert (test.statistic, test.p_one_sided, test.p_two_sided) == (0, 0.5, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.5, 0.4, 0.3, 3), "at least 4 items"),
        ((1.2, 0.4, 0.3, 30), "lie in"),
        ((0.9, -0.9, 0.9, 30), "no data have"),
        ((math.nan, 0.4, 0.3, 30), "lie in"),
        ((0.5, -0.5, -1.0, 30), "no variance"),
    ],
)
def test_williams_refuses_what_it_cannot_test(arguments: tuple[float, float, float, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        williams(*arguments)


# Permutation test


def judges(documents: int, seed: int = 0) -> tuple[list[float], list[float], list[float], list[int]]:
    rng = np.random.default_rng(seed)
    humans = rng.integers(1, 6, (documents, 5)).astype(float)
    judge = humans + rng.normal(0, 1, humans.shape)
    baseline = humans + rng.normal(0, 3, humans.shape)
    labels = np.repeat(np.arange(documents), 5)
    return judge.ravel().tolist(), baseline.ravel().tolist(), humans.ravel().tolist(), labels.tolist()


@pytest.mark.parametrize("name", list(CORRELATIONS))
def test_exact_permutation_is_the_enumeration_of_all_swaps(name: str) -> None:
    judge, baseline, humans, documents = (np.array(column) for column in judges(7))

    def figure(scores: Any) -> float:
        each = [plain_correlation(name, scores[documents == d], humans[documents == d]) for d in range(7)]
        return float(np.mean(each))

    observed = figure(judge) - figure(baseline)
    differences = []
    for swaps in itertools.product([False, True], repeat=7):
        swapped = np.array(swaps)[documents]
        one, other = np.where(swapped, baseline, judge), np.where(swapped, judge, baseline)
        differences.append(figure(one) - figure(other))
    columns = [column.tolist() for column in (judge, baseline, humans, documents)]
    test = permutation_test(*columns, coefficient=name)
    assert test.statistic == pytest.approx(observed)
    assert test.p_one_sided == pytest.approx(np.mean(np.array(differences) >= observed - 1e-12))
    assert test.p_two_sided == pytest.approx(np.mean(np.abs(differences) >= abs(observed) - 1e-12))
    assert (test.documents, test.skipped) == (7, 0)


def test_sampled_permutation_is_near_the_exact_one() -> None:
    data = judges(10, seed=4)
    exact = permutation_test(*data, resamples=1024)
    sampled = permutation_test(*data, resamples=1023)
    assert 0 < abs(exact.p_two_sided - sampled.p_two_sided) < 0.06
    assert sampled.p_two_sided * 1024 == pytest.approx(round(sampled.p_two_sided * 1024))


@pytest.mark.parametrize("documents", [6, 30])
def test_exchanging_the_judges_turns_the_sign_and_keeps_the_p(documents: int) -> None:
    judge, baseline, humans, labels = judges(documents)
    one, other = (
        permutation_test(judge, baseline, humans, labels),
        permutation_test(baseline, judge, humans, labels),
    )
    assert one.statistic == pytest.approx(-other.statistic)
    assert one.p_two_sided == other.p_two_sided
    assert one.p_one_sided < 0.05 < other.p_one_sided
    renamed = [f"document {label:02}" for label in labels]
    assert permutation_test(judge, baseline, humans, renamed) == one


def test_a_judge_does_not_differ_from_itself() -> None:
    judge, _, humans, documents = judges(20)
    test = permutation_test(judge, judge, humans, documents)
    assert (test.statistic, test.p_two_sided, test.p_one_sided) == (0, 1, 1)


def test_permutation_rejects_a_true_null_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    documents = np.repeat(np.arange(25), 4).tolist()
    rejected = 0
    for trial in range(400):
        humans, one, other = rng.normal(size=(3, 100)).tolist()
        test = permutation_test(one, other, humans, documents, resamples=199, seed=trial, coefficient="pearson")
        rejected += test.p_two_sided <= 0.05
    assert 0.02 < rejected / 400 < 0.09


def test_permutation_skips_undefined_documents_and_missing_items() -> None:
    judge = [1, 2, 3, 1, 1, 1, 3, 2, 1, None]
    baseline = [1, 2, 3, 1, 2, 3, 1, 2, 3, 4]
    humans = [1, 2, 3] * 3 + [4]
    test = permutation_test(judge, baseline, humans, list("aaabbbcccc"))
    assert (test.documents, test.skipped) == (2, 1)
    assert test.statistic == pytest.approx(-1)
    accuracy = permutation_test(judge, baseline, humans, list("aaabbbcccc"), coefficient="pairwise_accuracy")
    assert (accuracy.documents, accuracy.skipped) == (3, 0)
    with pytest.raises(ValueError, match="no document"):
        permutation_test([1, 1], [1, 2], [1, 2], ["a", "a"])
    with pytest.raises(ValueError, match="unknown coefficient 'tau'"):
        permutation_test([1, 2], [1, 2], [1, 2], ["a", "a"], coefficient="tau")
    with pytest.raises(ValueError, match="2 judge, 2 baseline, 3 humans"):
        permutation_test([1, 2], [1, 2], [1, 2, 3], ["a", "a"])


# Holm and Krippendorff


def test_holm_by_hand() -> None:
    # Sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, the last raised to the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []
    with pytest.raises(ValueError, match="0, 1"):
        holm([0.5, math.nan])


# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: 4 observers, 12 units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_reproduces_the_published_example(level: Any, alpha: float) -> None:
    assert krippendorff_alpha(OBSERVERS, level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_at_its_ends() -> None:
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]]) == pytest.approx(1)
    opposed = krippendorff_alpha([[1, 2, 1, 2], [2, 1, 2, 1]])
    assert opposed is not None
    assert opposed < 0
    rng = np.random.default_rng(0)
    assert krippendorff_alpha(rng.integers(1, 6, (3, 4000)).tolist()) == pytest.approx(0, abs=0.03)
    assert krippendorff_alpha([[2, 2, 2], [2, 2, 2]]) is None
    assert krippendorff_alpha([[1, None], [None, 2]]) is None
    assert krippendorff_alpha([]) is None
    with pytest.raises(ValueError, match=r"\[2, 3\]"):
        krippendorff_alpha([[1, 2], [1, 2, 3]])
    with pytest.raises(ValueError, match="ratio"):
        krippendorff_alpha(OBSERVERS, "ratio")  # type: ignore[arg-type]


@settings(max_examples=50)
@given(st.lists(st.lists(st.sampled_from([1, 2, 2.5, 4, None]), min_size=6, max_size=6), min_size=2, max_size=4))
def test_alpha_is_that_of_the_pairs_one_by_one(ratings: list[list[float | None]]) -> None:
    units = [[v for v in unit if v is not None] for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]

    def disagreement(a: float, b: float) -> float:
        return (a - b) ** 2

    everything = sum(disagreement(a, b) for a, b in itertools.permutations(values, 2))
    if everything == 0:
        assert krippendorff_alpha(ratings, "interval") is None
        return
    within = sum(sum(disagreement(a, b) for a, b in itertools.permutations(u, 2)) / (len(u) - 1) for u in units)
    alpha = 1 - (within / len(values)) / (everything / (len(values) * (len(values) - 1)))
    assert krippendorff_alpha(ratings, "interval") == pytest.approx(alpha)


@given(
    st.lists(st.lists(st.one_of(st.none(), quarters), min_size=3, max_size=3), min_size=2, max_size=12),
    st.integers(0, 2**32),
)
def test_the_resampled_alpha_is_that_of_the_repeated_units(units: list[list[float | None]], seed: int) -> None:
    copies = np.random.default_rng(seed).integers(0, 3, len(units))
    repeated = [unit for unit, count in zip(units, copies, strict=True) for _ in range(count)]
    expected = krippendorff_alpha(list(zip(*repeated, strict=True)) if repeated else [], "interval")
    table = np.array([[math.nan if score is None else score for score in unit] for unit in units]).T
    [found] = coefficients.alpha(table, copies[None].astype(float))
    assert same(expected, float(found)) if expected is not None else math.isnan(found)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_weighted_coefficients_are_those_of_scipy_for_repeated_items(name: str) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(1, 6, size=(2, 40)).astype(float)
    weights = rng.integers(0, 3, size=(5, 40)).astype(float)
    found = getattr(coefficients, name)(x, y, weights)
    plain_name = "kendall_b" if name == "kendall" else name
    for figure, row in zip(found, weights.astype(int), strict=True):
        expected = plain_correlation(plain_name, np.repeat(x, row).tolist(), np.repeat(y, row).tolist())
        assert figure == pytest.approx(expected)
    assert math.isnan(getattr(coefficients, name)(np.ones(40), y, weights)[0])
