"""Which items are drawn: with the stated probabilities, the documents apart, the same again for the same seed."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from geval_adapters import InputError, Sample
from geval_adapters.labels import Draw, Label
from geval_adapters.labels.queue import GAP, Distribution, Item, Pool, Wave, pairs, rate_of, scores, weights
from geval_adapters.labels.rows import as_drawn


def items(*candidates: int) -> list[Item]:
    """As many documents as numbers, each with so many candidates."""
    return [
        Item(Sample("text", id=f"{document}/{number}", doc_id=str(document), system_id=f"s{number}"))
        for document, count in enumerate(candidates)
        for number in range(count)
    ]


def ratings(pool: list[Item], seed: int = 0) -> dict[str, Distribution]:
    rng = random.Random(seed)
    found = {}
    for item in pool:
        sure, best = rng.choice([0.5, 0.6, 0.95, 1.0]), rng.randint(1, 5)
        found[item.sample.id] = {float(best): sure, float(best % 5 + 1): 1 - sure}
    return found


def pool_of(design: str, candidates: list[Item], seed: int) -> Pool:
    judged = [ratings(candidates)]
    stratified = scores(candidates, judged) if design == "stratified" else None
    return Pool(candidates, weights(design, candidates, judged), seed, stratified)


def queue(pool: Pool, *targets: int) -> list[Wave]:
    waves: list[Wave] = []
    for n in targets:
        waves.append(pool.draw(waves, rate_of(pool.weights, n)))
    return waves


def labels(pool: Pool, waves: list[Wave], shown: int) -> list[Label]:
    """The labels of somebody who saw so many items, as they are read."""
    places = [(wave, place) for wave in waves for place in wave.items][:shown]
    return as_drawn(
        Label(
            id=str(place),
            score=1,
            design="any",
            wave=wave.number,
            draw=Draw(weight=pool.weights[place], before=wave.before, rate=wave.rate, queued=len(wave.items)),
        )
        for wave, place in places
    )


@pytest.mark.parametrize("design", ["random", "stratified", "active"])
@pytest.mark.parametrize(
    ("documents", "targets", "share"),
    [
        ([*[3] * 12, 1, 1, 2], (12,), 1.0),
        ([*[3] * 12, 1, 1, 2], (8, 30), 0.6),
        ([8, 8, *[1] * 8], (12,), 0.5),  # two documents hold most of the items
        ([8, 8, *[1] * 8], (6, 12), 0.5),
    ],
)
def test_items_are_shown_with_the_stated_probability(
    design: str, documents: list[int], targets: tuple[int, ...], share: float
) -> None:
    """The weight 1/π of what is shown averages 1 over seeds, for each item, also where the last wave is cut short."""
    candidates = items(*documents)
    runs = 600
    inverse = np.zeros((runs, len(candidates)))
    for seed in range(runs):
        pool = pool_of(design, candidates, seed)
        waves = queue(pool, *targets)
        earlier = sum(len(wave.items) for wave in waves[:-1])
        shown = earlier + math.ceil(share * len(waves[-1].items))
        for label in labels(pool, waves, shown):
            assert label.probability is not None
            inverse[seed, int(label.id)] = 1 / label.probability
    error = inverse.std(axis=0, ddof=1) / math.sqrt(runs)
    z = (inverse.mean(axis=0) - 1) / np.maximum(error, 1e-9)
    assert abs(z).max() < 4
    assert abs(z.mean()) < 1.5


def test_the_last_probabilities_are_those_of_all_waves_together() -> None:
    pool = pool_of("active", items(*[2] * 20), 3)
    waves = queue(pool, 10, 25)
    everything = labels(pool, waves, 100)
    expected = [min(1.0, waves[-1].rate * pool.weights[int(label.id)]) for label in everything]
    assert [label.probability for label in everything] == pytest.approx(expected)
    assert pool.expected(waves[-1].rate) == pytest.approx(25)


def test_a_wave_has_as_many_items_as_were_asked_for() -> None:
    for design in ("random", "stratified", "active"):
        assert len(queue(pool_of(design, items(*[4] * 30), 1), 25)[0].items) == 25
    assert sorted(place for wave in queue(pool_of("active", items(3, 3), 1), 6) for place in wave.items) == [*range(6)]


def test_nothing_is_drawn_twice() -> None:
    drawn = Counter(place for wave in queue(pool_of("active", items(*[4] * 9), 5), 5, 9, 30) for place in wave.items)
    assert max(drawn.values()) == 1


def test_candidates_of_one_source_are_kept_apart() -> None:
    for seed in range(50):
        pool = pool_of("random", items(*[6] * 12), seed)
        shown = [pool.items[place].document for wave in queue(pool, 72) for place in wave.items]
        assert len(shown) == 72
        assert all(shown[at] not in shown[max(0, at - GAP) : at] for at in range(72)), shown
    two = Pool(items(3, 3), [1.0] * 6, 0)
    shown = [two.items[place].document for wave in queue(two, 6) for place in wave.items]
    assert all(one != other for one, other in pairwise(shown))


def test_the_seed_decides() -> None:
    pool = items(*[4] * 30)
    first, again, other = (queue(pool_of("active", pool, seed), 20, 50) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_active_draws_where_the_judge_is_unsure() -> None:
    pool = items(*[1] * 200)
    judged = {item.sample.id: {3.0: 1.0} if at % 2 else {1.0: 0.5, 5.0: 0.5} for at, item in enumerate(pool)}
    found = weights("active", pool, [judged])
    assert found[:2] == pytest.approx([0.3 + 0.7 * 2, 0.3])
    assert np.mean(found) == pytest.approx(1)
    wave = queue(Pool(pool, found, 0), 50)[0]
    assert sum(place % 2 == 0 for place in wave.items) in range(34, 51)


def test_an_item_without_a_rating_counts_as_the_mean() -> None:
    pool = items(1, 1, 1)
    judged = {"0/0": {1.0: 0.5, 5.0: 0.5}, "1/0": {3.0: 1.0}}
    assert weights("active", pool, [judged])[2] == pytest.approx(1)


def test_a_judge_without_spread_says_nothing_about_where_it_is_unsure() -> None:
    pool = items(1, 1)
    sure = {item.sample.id: {3.0: 1.0} for item in pool}
    with pytest.raises(InputError, match=r"no spread.*--design stratified"):
        weights("active", pool, [sure])


def test_stratified_gives_every_score_its_share() -> None:
    pool = items(*[1] * 200)
    judged = {item.sample.id: {1.0 + at % 5: 1.0} for at, item in enumerate(pool)}
    for seed in range(20):
        wave = queue(Pool(pool, weights("stratified", pool), seed, scores(pool, [judged])), 40)[0]
        assert Counter(place % 5 for place in wave.items) == dict.fromkeys(range(5), 8)


def test_pairs_are_of_one_document() -> None:
    made = pairs(item.sample for item in items(3, 1, 2))
    assert [item.key for item in made] == [("0/0", "0/1"), ("0/0", "0/2"), ("0/1", "0/2"), ("2/0", "2/1")]
    with pytest.raises(InputError, match="no two samples share a doc_id"):
        pairs(item.sample for item in items(1, 1))


def test_pairs_that_the_judge_cannot_tell_apart_are_drawn_more_often() -> None:
    made = pairs(item.sample for item in items(3))
    judged = {
        "0/0": {5.0: 1.0},
        "0/1": {1.0: 0.5, 3.0: 0.5},
        "0/2": {1.0: 0.5, 3.0: 0.5},
    }
    sure, also_sure, unsure = weights("active", made, [judged])
    assert sure == also_sure < unsure


@pytest.mark.parametrize("n", [1, 3.5, 7, 10])
def test_rates_add_up(n: float) -> None:
    some = [0.1, 0.2, 0.5, 0.5, 1, 1.2, 1.5, 1.5, 1.5, 2]
    assert sum(min(1, rate_of(some, n) * weight) for weight in some) == pytest.approx(n)
