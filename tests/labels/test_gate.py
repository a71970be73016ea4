"""`geval gate`: pass, fail or undecided, and no verdict on numbers that nobody can vouch for."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from labelled import SIGNATURE, rating, world, write


@pytest.fixture
def gate(geval):
    ratings, labels, _ = world(systems=1, documents=300, every=3)
    write("r.jsonl", ratings), write("l.jsonl", labels)

    return partial(geval, "gate", "r.jsonl", "-c", "coherence")


@pytest.mark.parametrize(("off", "code", "verdict"), [(-0.5, 0, "pass"), (0.5, 1, "fail"), (0.0, 3, "undecided")])
def test_the_interval_decides(gate, off: float, code: int, verdict: str):
    bar = np.mean([row["score"] for row in world(systems=1, documents=300, every=1)[1]]) + off
    found, out, _ = gate("--labels", "l.jsonl", "--at-least", bar, "--json")
    told = json.loads(out)
    (check,) = told["checks"]
    assert (found, told["verdict"], check["verdict"]) == (code, verdict, verdict)
    assert (check["figure"]["low"] >= bar) == (verdict == "pass")
    assert 0 < check["detectable"] < 1
    found, out, _ = gate("--labels", "l.jsonl", "--at-least", bar)
    assert found == code
    assert out.rstrip().splitlines()[-1].startswith(f"{verdict.upper()} coherence: mean at least {bar:g}: ")


def test_a_share_must_reach_its_bar_and_all_bars_count(gate):
    share = np.mean([row["score"] >= 4 for row in world(systems=1, documents=300, every=1)[1]])
    passed, out, _ = gate("--labels", "l.jsonl", "--share-at-least", f"4:{share - 0.25:.2f}", "--json")
    assert passed == 0
    assert json.loads(out)["checks"][0]["figure"]["low"] > share - 0.25
    both = gate("--labels", "l.jsonl", "--share-at-least", f"4:{share - 0.25:.2f}", "--at-least", 4.9, "--json")
    assert both[0] == 1
    assert [check["verdict"] for check in json.loads(both[1])["checks"]] == ["fail", "pass"]


def test_machines_and_pull_requests_get_theirs(gate):
    code, _, _ = gate(
        "--labels", "l.jsonl", "--at-least", 1, "--share-at-least", "4:0.99",
        "--junit", "gate.xml", "--markdown", "gate.md",
    )  # fmt: skip
    assert code == 1
    suite = ElementTree.fromstring(Path("gate.xml").read_text())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    passed, failed = suite.findall("testcase")
    assert passed.find("failure") is None
    assert "bar 0.99" in failed.find("failure").get("message")
    text = Path("gate.md").read_text()
    assert text.startswith("### ❌ coherence: fail")
    assert "| share at 4 or above at least 0.99 |" in text


def test_no_worse_than_the_baseline_is_paired_by_item(gate):
    ratings, labels, _ = world(systems=1, documents=300, every=3)
    rng = np.random.default_rng(7)
    before = [
        row | {"id": row["id"] + "-old", "system_id": "old", "score": row["score"] - 0.2 + rng.normal(0, 0.1)}
        for row in ratings
    ]
    old = [row | {"id": row["id"] + "-old", "score": max(1, row["score"] - 0.2)} for row in labels]
    write("old.jsonl", before), write("all.jsonl", labels + old)
    command = ("--baseline", "old.jsonl", "--json")
    code, out, _ = gate("--labels", "all.jsonl", *command)
    told = json.loads(out)
    (check,) = told["checks"]
    assert code == 0
    assert check["figure"]["value"] == pytest.approx(0.2, abs=0.1)
    assert check["figure"]["low"] > 0
    assert "paired by document: 300 pairs" in told["notes"]
    assert gate("--labels", "all.jsonl", *command, "--margin", "0.1")[0] == 0
    code, _, err = gate("--labels", "l.jsonl", *command)
    assert code == 2
    assert "without labels of both" in err
    code, out, _ = gate("--labels", "l.jsonl", *command, "--unlabelled")
    assert code == 0
    assert any("the change is the judge's" in note for note in json.loads(out)["notes"])


def test_labels_of_the_same_item_are_of_the_present_output(gate):
    """Both files name their items alike: a label says nothing of the former output."""
    ratings, _, _ = world(systems=1, documents=300, every=3)
    write("old.jsonl", [row | {"score": row["score"] - 0.3} for row in ratings])
    code, _, err = gate("--labels", "l.jsonl", "--baseline", "old.jsonl")
    assert code == 2
    assert "without labels of both" in err
    code, out, _ = gate("--labels", "l.jsonl", "--baseline", "old.jsonl", "--unlabelled", "--json")
    assert code == 0
    assert json.loads(out)["checks"][0]["figure"]["value"] == pytest.approx(0.3)


def test_an_unlabelled_judge_is_refused_unless_told(gate):
    code, _, err = gate("--at-least", 2)
    assert code == 2
    assert "nobody has labelled" in err
    code, out, _ = gate("--at-least", 2, "--unlabelled")
    assert code == 0
    assert out.rstrip().endswith("(without labels)")
    assert json.loads(gate("--at-least", 2, "--unlabelled", "--json")[1])["unlabelled"] is True


def test_ratings_that_differ_in_kind_are_refused(gate):
    ratings, _, _ = world(systems=1, documents=300, every=3)
    ratings[5]["signature"] = SIGNATURE.format("abc").replace("gpt-4o-mini", "gpt-4o")
    write("r.jsonl", ratings)
    code, _, err = gate("--labels", "l.jsonl", "--at-least", 2)
    assert code == 2
    assert "2 different signatures" in err
    assert "model is openai/gpt-4o-mini there, openai/gpt-4o here" in err


def test_too_many_unrated_items_are_refused(gate):
    ratings, _, _ = world(systems=1, documents=300, every=3)
    for row in ratings[:20]:
        row["score"] = None
    write("r.jsonl", ratings)
    code, _, err = gate("--labels", "l.jsonl", "--at-least", 2)
    assert code == 2
    assert "20 of 300 items of coherence have no rating" in err
    assert gate("--labels", "l.jsonl", "--at-least", 2, "--max-unrated", 0.1)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a gate needs a bar"),
        (["--share-at-least", "4"], "expected SCORE:SHARE, such as 4:0.9"),
        (["--share-at-least", "4:90"], "a share lies between 0 and 1"),
        (["--at-least", "2", "--baseline", "none.jsonl"], "none.jsonl: No such file"),
        (["--baseline", "far.jsonl"], "the baseline shares no item"),
    ],
)
def test_bad_usage_is_one_line(gate, arguments: list[str], said: str):
    write("far.jsonl", [rating("far", 3.0, doc_id="far", system_id="s9")])
    code, _, err = gate("--labels", "l.jsonl", *arguments)
    assert code == 2
    assert said in err


def test_a_bar_just_above_the_truth_is_hardly_ever_passed():
    """82 % fives and 50 labels: what is passed falsely, and by labels alone with t."""
    from geval_adapters.labels import corrected_mean

    rng = np.random.default_rng(0)
    truth, passed, naive, runs = 0.82 * 5 + 0.1 * 4 + 0.04 * 2 + 0.04 * 1, 0, 0, 800
    for _ in range(runs):
        people = rng.choice([5.0, 4.0, 2.0, 1.0], 400, p=[0.82, 0.1, 0.04, 0.04])
        judge = people - 0.5 + rng.normal(0, 0.7, 400)
        labels = np.where(np.arange(400) < 50, people, np.nan)
        figure = corrected_mean(judge, labels, range(400))
        passed += figure.low is not None and figure.low > truth
        mean, error = people[:50].mean(), people[:50].std(ddof=1) / 50**0.5
        naive += mean - 2.01 * error > truth
    assert passed / runs <= 0.05 < naive / runs


def test_a_label_needs_no_more_than_an_id_and_a_score(gate):
    labels = world(systems=1, documents=300, every=3)[1]
    write("bare.jsonl", [{"id": row["id"], "score": row["score"]} for row in labels])
    assert gate("--labels", "bare.jsonl", "--at-least", 2.5)[0] == 0


def test_labels_and_bars_on_another_scale_are_refused(geval):
    """People's marks out of 100 once passed any bar of a scale from 1 to 5."""
    kind = {"criterion": "manners", "signature": "model:m|criterion:manners@abc|n:1"}  # whose scale only the rows know
    items = [rating(f"r{number}", 1.0 + number % 5, normalized=number % 5 / 4, **kind) for number in range(40)]
    write("five.jsonl", items)
    gate = partial(geval, "gate", "five.jsonl", "-c", "manners", "--labels")
    write("hundred.jsonl", [{"id": f"r{number}", "score": 20.0 * (number % 5 + 1)} for number in range(30)])
    write("people.jsonl", [{"id": f"r{number}", "score": 1.0 + number % 5} for number in range(30)])
    code, _, said = gate("hundred.jsonl", "--at-least", "3")
    assert code == 2
    assert "hundred.jsonl: the label of 'r0', 20, is not on the scale of" in said.replace("\n", " ")
    for bar in (["--at-least", "nan"], ["--at-least", "6"], ["--share-at-least", "inf:0.5"]):
        code, _, said = gate("people.jsonl", *bar)
        assert code == 2
        assert bar[0] in said
    assert gate("people.jsonl", "--at-least", "1")[0] == 0


def test_an_estimate_from_ratings_of_two_kinds_says_so(geval):
    kinds = [SIGNATURE.format("abc"), SIGNATURE.format("abc").replace("n:1", "n:20")]
    write("two.jsonl", [rating(f"r{number}", 1.0 + number % 5, signature=kinds[number % 2]) for number in range(40)])
    write("people.jsonl", [{"id": f"r{number}", "score": 1.0 + number % 5} for number in range(30)])
    code, told, _ = geval("estimate", "two.jsonl", "--labels", "people.jsonl", "--json")
    assert code == 0
    assert "2 different signatures" in json.loads(told)["criteria"][0]["notes"][-1]
