"""`geval estimate`: from files to figures that hold, and words where there are none."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from labelled import label, rating, world, write


@pytest.fixture
def estimate(geval):
    return partial(geval, "estimate")


def found(run) -> dict:
    code, out, err = run
    assert code == 0, err
    (criterion,) = json.loads(out)["criteria"]
    return criterion


def test_people_would_say_otherwise_than_the_judge(estimate):
    ratings, labels, truth = world()
    write("r.jsonl", ratings), write("l.jsonl", labels)
    result = found(estimate("r.jsonl", "--labels", "l.jsonl", "--json"))
    (whole,) = result["systems"]
    corrected = whole["corrected"]
    assert corrected["low"] < np.mean(truth) < corrected["high"]
    assert whole["judge_mean"] < corrected["low"], "the judge's own mean is far off"
    assert whole["bias"] == pytest.approx(whole["judge_mean"] - corrected["value"])
    assert -1.2 < whole["bias"] < -0.6
    assert (whole["n"], whole["labels"], whole["system"]) == (300, len(labels), None)
    assert whole["effective_n"] > 1.5 * len(labels)
    assert corrected["method"] == "ppi"
    assert whole["labels_mean"] == pytest.approx(np.mean([row["score"] for row in labels]))
    assert {"criterion", "systems", "differences"} <= result.keys()
    assert sum(step["n"] for step in result["bias_by_score"]) == len(labels)


def test_systems_and_their_differences(estimate):
    ratings, labels, truth = world(documents=150, every=3)
    write("r.jsonl", ratings), write("l.jsonl", labels)
    result = found(estimate("r.jsonl", "--labels", "l.jsonl", "--by", "system", "--json"))
    for system, true in zip(result["systems"], truth, strict=True):
        assert system["corrected"]["low"] < true < system["corrected"]["high"]
    pairs = {(each["a"], each["b"]): each for each in result["differences"]}
    assert set(pairs) == {("s0", "s1"), ("s0", "s2"), ("s1", "s2")}
    far = pairs["s0", "s2"]
    assert far["low"] < truth[0] - truth[2] < far["high"]
    assert far["p"] <= far["p_holm"] < 0.001
    against = found(estimate("r.jsonl", "--labels", "l.jsonl", "--against", "s1", "--json"))["differences"]
    assert [(each["a"], each["b"]) for each in against] == [("s0", "s1"), ("s2", "s1")]
    assert against[0]["p_holm"] < pairs["s0", "s1"]["p_holm"] or against[0]["p_holm"] < 0.001


def test_a_system_without_labels_gets_no_number_where_the_judge_errs_otherwise(estimate):
    ratings, labels, _ = world(documents=150, every=2, liked=1.0)
    labels = [row for row in labels if not row["id"].endswith("/2")]
    write("r.jsonl", ratings), write("l.jsonl", labels)
    result = found(estimate("r.jsonl", "--labels", "l.jsonl", "--by", "system", "--json"))
    assert result["transport"]["differs"]
    assert result["systems"][2]["corrected"]["value"] is None
    assert "the judge's errors differ between systems" in result["systems"][2]["corrected"]["why_not"]
    whole = found(estimate("r.jsonl", "--labels", "l.jsonl", "--json"))["systems"][0]["corrected"]
    assert whole["value"] is None
    assert "labels of s2 are needed" in whole["why_not"]


def test_a_system_without_labels_gets_a_value_where_the_judge_errs_alike(estimate):
    ratings, labels, truth = world(documents=150, every=2)
    labels = [row for row in labels if not row["id"].endswith("/2")]
    write("r.jsonl", ratings), write("l.jsonl", labels)
    result = found(estimate("r.jsonl", "--labels", "l.jsonl", "--by", "system", "--json"))
    unlabelled = result["systems"][2]["corrected"]
    assert unlabelled["value"] == pytest.approx(truth[2], abs=0.25)
    assert unlabelled["low"] is None
    assert "no label of its own" in unlabelled["why_not"]


def test_shares_and_single_items(estimate):
    ratings, labels, _ = world(every=2)
    write("r.jsonl", ratings), write("l.jsonl", labels)
    result = found(estimate("r.jsonl", "--labels", "l.jsonl", "--share-at-least", 4, "--intervals", "--json"))
    share = result["systems"][0]["share"]
    assert share["low"] < np.mean([score >= 4 for score in _truth(ratings)]) < share["high"]
    made = result["intervals"]
    assert (made["level"], len(made["items"])) == (0.9, 300)
    assert made["coverage"] > 0.85
    assert all(1 <= item["low"] <= item["high"] <= 5 for item in made["items"])
    few = found(estimate("r.jsonl", "--labels", write("few.jsonl", labels[:8]), "--intervals", "--json"))
    assert few["intervals"]["items"] == []
    assert "it needs 9 labels, and there are 8" in few["intervals"]["why_not"]


def _truth(ratings: list[dict]) -> list[float]:
    """What people would say of all items: the same world, labelled as a whole."""
    rng = np.random.default_rng(0)
    truth = []
    for _ in range(len(ratings) // 3):
        hard = rng.normal(0, 0.5)
        for system in range(3):
            truth.append(float(np.clip(round(3.5 - 0.5 * system + hard + rng.normal(0, 0.8)), 1, 5)))
            rng.normal(0, 0.4), rng.random()
    return truth


def test_several_annotators_are_a_ceiling(estimate):
    ratings, labels, _ = world(every=2)
    rng = np.random.default_rng(1)
    several = [
        row | {"annotator": name, "score": float(np.clip(row["score"] + rng.choice([-1, 0, 0, 1]), 1, 5))}
        for row in labels
        for name in "abc"
    ]
    write("r.jsonl", ratings), write("l.jsonl", several)
    judge = found(estimate("r.jsonl", "--labels", "l.jsonl", "--json"))["judge"]
    assert judge["ceiling"]["annotators"] == 3
    assert 0.4 < judge["ceiling"]["alpha"] < 0.9
    assert judge["ceiling"]["r_corrected"] > judge["ceiling"]["r"]
    assert 0.5 < judge["ceiling"]["people"] < 0.95
    assert judge["alternative_annotator"]["winning_rate"] == 0, "a point too low on every item"
    assert judge["constant_judge"]["winning_rate"] is not None
    assert judge["soft_pairwise_accuracy"]["value"] > 0.7


def test_labels_of_pairs_give_win_rates(estimate):
    rng = np.random.default_rng(2)
    ratings, labels, better = [], [], []
    for document in range(120):
        first = rng.random() < 0.7
        better.append(first)
        for system, ahead in (("new", first), ("old", not first)):
            ratings.append(
                rating(f"{document}/{system}", 3.0 + ahead * rng.integers(0, 2), doc_id=str(document), system_id=system)
            )
        if document % 2:
            pair = {"other": f"{document}/old", "probability": 0.5}
            labels.append(label(f"{document}/new", float(first), **pair))
    write("r.jsonl", ratings), write("l.jsonl", labels)
    (wins,) = found(estimate("r.jsonl", "--labels", "l.jsonl", "--json"))["win_rates"]
    assert (wins["a"], wins["b"], wins["n"], wins["labels"]) == ("new", "old", 120, 60)
    assert wins["corrected"]["low"] < np.mean(better) < wins["corrected"]["high"]
    assert wins["judge"] < wins["corrected"]["low"] + 0.1


def test_what_people_should_read_stands_on_the_page(estimate):
    ratings, labels, _ = world()
    ratings[0] |= {"score": 5.0, "output": "<script>alert(1)</script>", "rationale": "so good"}
    labels = [row for row in labels if row["id"] != "0/0"] + [label("0/0", 1.0, probability=0.2, note="bad")]
    write("r.jsonl", ratings), write("l.jsonl", labels)
    code, out, _ = estimate("r.jsonl", "--labels", "l.jsonl", "--html", "page.html")
    assert code == 0
    assert "what people would say: coherence" in out
    page = Path("page.html").read_text()
    assert "where judge and people differ most" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_scores_that_came_with_the_samples_are_labels(estimate):
    ratings, labels, truth = world()
    told = {row["id"]: row["score"] for row in labels}
    write("r.jsonl", [row | {"human": told.get(row["id"])} for row in ratings])
    corrected = found(estimate("r.jsonl", "--json"))["systems"][0]["corrected"]
    assert corrected["low"] < np.mean(truth) < corrected["high"]


def test_labels_of_others_are_read_by_their_columns(estimate):
    ratings, labels, _ = world()
    write("r.jsonl", ratings)
    lines = [f"{row['id']},{row['score']:g}" for row in labels]
    Path("l.csv").write_text("\n".join(["item,stars", *lines]))
    result = found(estimate("r.jsonl", "--labels", "l.csv", "--field", "id=item", "--field", "score=stars", "--json"))
    assert result["systems"][0]["labels"] == len(labels)
    assert any("taken as drawn at random" in note for note in result["notes"])


def test_what_is_odd_about_labels_is_said(estimate):
    ratings, labels, _ = world()
    labels += [label("0/9", 3.0, probability=0.2), label("99/2", None, probability=0.2)]
    labels = [row | {"criterion_hash": "other"} for row in labels]
    write("r.jsonl", ratings), write("l.jsonl", labels)
    notes = found(estimate("r.jsonl", "--labels", "l.jsonl", "--json"))["notes"]
    assert any("1 labels are of items that have no rating here" in note for note in notes)
    assert any("1 labels were skipped" in note for note in notes)
    assert any("another wording of the criterion" in note for note in notes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl", "--labels", "l.jsonl"], "none.jsonl: No such file"),
        (["r.jsonl", "--labels", "far.jsonl"], "none of its 1 labels of coherence is of an item with a rating"),
        (["r.jsonl", "--labels", "mixed.jsonl"], "say with which probability their item was drawn, and 1 do not"),
        (["r.jsonl", "--labels", "l.jsonl", "-c", "fluency"], "'fluency' has no ratings there, but coherence"),
        (["r.jsonl", "--labels", "l.jsonl", "--against", "s9"], "no rating is of system 's9'; there are s0, s1, s2"),
        (["r.jsonl", "--labels", "l.jsonl", "--field", "score"], "--field score: expected FIELD=COLUMN"),
        (["known.jsonl", "--labels", "off.jsonl"], "score 9 is not on the scale of summeval/coherence (1-5)"),
        (["twice.jsonl", "--labels", "l.jsonl"], "the id '0/0' stands here a second time"),
        (["r.jsonl"], "no item of coherence has a label"),
    ],
)
def test_bad_usage_is_one_line(estimate, arguments: list[str], said: str):
    ratings, labels, _ = world()
    write("r.jsonl", ratings), write("l.jsonl", labels), write("twice.jsonl", [ratings[0], ratings[0]])
    write("far.jsonl", [label("nowhere", 3.0)])
    write("known.jsonl", [row | {"criterion": "summeval/coherence"} for row in ratings])
    write("off.jsonl", [label("0/0", 9.0, criterion="summeval/coherence")])
    write("mixed.jsonl", [*labels[:5], label(labels[5]["id"], 3.0)])
    code, _, err = estimate(*arguments)
    assert code == 2
    assert said in err
