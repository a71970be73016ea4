"""One way through the queue: going on, going further, several at once, and how many labels are enough."""

from __future__ import annotations

import errno
import os
import random
import threading
from pathlib import Path

import pytest

from geval_adapters import InputError, Sample
from geval_adapters.criteria import find_criterion
from geval_adapters.labels import Label, read_labels
from geval_adapters.labels.enough import PILOT, enough
from geval_adapters.labels.file import LabelFile
from geval_adapters.labels.queue import Distribution, Item, Pool, rate_of, weights
from geval_adapters.labels.session import Answer, ConflictError, Plan, Session

COHERENCE = find_criterion("summeval/coherence")
ITEMS = [Item(Sample("One. Two.", id=f"{d}/{s}", doc_id=str(d), system_id=str(s))) for d in range(60) for s in range(4)]
TRUTH = {item.sample.id: random.Random(item.sample.id).choice([2.0, 3.0, 4.0, 5.0]) for item in ITEMS}


def judge(noise: float) -> dict[str, Distribution]:
    rng = random.Random(1)
    scores = {key: score + rng.gauss(0, noise) for key, score in TRUTH.items()}
    return {key: {score - 0.5: 0.5, score + 0.5 + rng.random(): 0.5} for key, score in scores.items()}


def session(
    path: Path, n: int, *, annotator: str = "ann", design: str = "random", auto: float | None = None, noise: float = 0.3
) -> Session:
    judged = [judge(noise)]
    pool = Pool(ITEMS, weights(design, ITEMS, judged), 4)
    needed = None if auto is None else lambda labels: enough(ITEMS, labels, [COHERENCE], judged, auto)
    return Session(LabelFile(path), Plan([COHERENCE], pool, design, n, 0.0, needed), annotator)


def work(running: Session, at_most: int = 10_000) -> list[str]:
    """Answer what comes; the items in the order in which they came."""
    seen = []
    while running.next is not None and len(seen) < at_most:
        state = running.state()
        if state["at"] is None:  # somebody else has just done the last
            break
        item = running.plan.pool.items[running.tasks[state["at"]].place].sample.id
        running.answer(Answer(at=state["at"], seen=state["seen"], score=TRUTH[item]))
        seen.append(item)
    return seen


def probabilities(path: Path) -> set[float]:
    return {round(each.probability or 0, 9) for each in read_labels(path)}


@pytest.mark.parametrize("design", ["random", "active"])
def test_starting_again_goes_on_where_it_was(tmp_path: Path, design: str) -> None:
    whole = work(session(tmp_path / "whole.jsonl", 70, design=design))
    assert 68 <= len(whole) == len(set(whole)) <= 72
    parts = [item for _ in range(100) for item in work(session(tmp_path / "parts.jsonl", 70, design=design), 7)]
    assert parts == whole
    assert (tmp_path / "parts.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()


def test_asking_for_more_draws_a_further_wave(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    first = work(session(path, 24))
    assert len(first) == 24
    assert probabilities(path) == {0.1}
    half = work(session(path, 48), 12)
    assert probabilities(path) == {0.15}
    rest = work(session(path, 48))
    assert len({*first, *half, *rest}) == 48
    assert probabilities(path) == {0.2}
    assert {each.wave for each in read_labels(path)} == {1, 2}
    assert work(session(path, 48)) == []
    assert len(work(session(path, 1000))) == len(ITEMS) - 48


def test_a_second_annotator_sees_the_same_items_afresh(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    assert work(session(path, 20)) == work(session(path, 20, annotator="ben"))
    assert len({each.key for each in read_labels(path)}) == 40
    assert probabilities(path) == {round(20 / 240, 9)}


def test_several_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    refused = []

    def tab(annotator: str) -> None:
        running = session(path, 50, annotator=annotator)
        while True:
            try:
                work(running)
                return
            except ConflictError as error:
                refused.append(error)

    threads = [threading.Thread(target=tab, args=(annotator,)) for annotator in ("ann", "ann", "ann", "ben", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(path.read_text().splitlines()) == 100
    assert len({each.key for each in read_labels(path)}) == 100
    assert refused


def test_enough_says_how_many_the_wished_width_needs(tmp_path: Path) -> None:
    running = session(tmp_path / "l.jsonl", PILOT, auto=0.4, noise=0.8)
    assert len(work(running, PILOT)) == PILOT
    assert running.words.startswith(
        f"Coherence: {PILOT} items shown, {PILOT} of them labelled: the 95 % interval is 0."
    )
    assert "wide, 0.4 is wished for, which needs about" in running.words
    more = work(running)
    assert PILOT < len(more) + PILOT < len(ITEMS)
    assert running.words.endswith("is wished for: that is enough")
    again = session(tmp_path / "l.jsonl", PILOT, auto=0.4, noise=0.8)
    assert again.next is None
    assert again.words == running.words


def test_enough_without_a_judge_and_with_too_narrow_a_wish() -> None:
    pool = Pool(ITEMS, [1.0] * len(ITEMS), 0)
    wave = pool.draw([], rate_of(pool.weights, 40))
    labels = [
        Label(id=ITEMS[at].sample.id, criterion=COHERENCE.name, score=TRUTH[ITEMS[at].sample.id], probability=1 / 6)
        for at in wave.items
    ]
    found = enough(ITEMS, labels, [COHERENCE], [], 0.01)
    assert found.n == 80
    assert found.words.endswith("labels of all 240 items are too few for that")
    same = [each.model_copy(update={"score": 5.0}) for each in labels]
    assert "40 of 40 labels are 5" in enough(ITEMS, same, [COHERENCE], []).words


def test_what_cannot_be_written_is_not_taken_for_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.jsonl"
    running = session(path, 20)
    work(running, 3)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"l\.jsonl: cannot be written: No space left on device"):
            work(running, 1)
    assert path.read_bytes() == before
    assert len(work(running)) == 17


def test_other_ratings_than_those_that_the_queue_was_drawn_with_are_refused(tmp_path: Path) -> None:
    work(session(tmp_path / "l.jsonl", 20, design="active"), 5)
    pool = Pool(ITEMS, weights("active", ITEMS, [judge(0.9)]), 4)
    with pytest.raises(InputError, match="was drawn from other items or by other ratings"):
        Session(LabelFile(tmp_path / "l.jsonl"), Plan([COHERENCE], pool, "active", 20, 0.0), "ann")
