"""`geval read`: stored replies, what was not read, and whether that is chance."""

from __future__ import annotations

import json

import pytest

from geval_adapters.agreement.unread import Unread


def stored(tmp_path, rows):
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_replies_are_read_and_counted(geval, tmp_path):
    rows = [{"id": "a", "reply": "Rating: 4"}, {"id": "b", "reply": "five out of five"}, {"id": "c", "reply": "2"}]
    code, out, _ = geval("read", stored(tmp_path, rows), "--scale", "1-5", "-o", "read.jsonl")
    assert code == 0
    assert "3 of 3 replies were read; their mean is 3.667" in out
    written = [json.loads(line) for line in (tmp_path / "read.jsonl").read_text().splitlines()]
    assert [(row["id"], row["score"]) for row in written] == [("a", 4), ("b", 5), ("c", 2)]


def test_what_was_not_read_is_shown_and_a_selective_gap_is_warned_of(geval, tmp_path):
    rows = [
        {"id": f"{n}", "system_id": f"s{n % 3}", "human": n % 5 + 1, "reply": f"Rating: {n % 5 + 1}"}
        for n in range(100)
    ]
    for row in rows[::5]:  # those that people rate lowest
        row["reply"] = "The judge would rather not say."
    code, out, err = geval("read", stored(tmp_path, rows), "--scale", "1-5")
    assert code == 1
    assert "unread by people's score" in out
    assert "what was not read depends on the people's score" in err
    assert "depends on the system" not in err
    assert err.count(" ← ") == 5, "five of twenty are shown"
    assert err.rstrip().endswith("20 of 100 replies were not read")


@pytest.mark.parametrize(
    ("arguments", "row", "said"),
    [
        ((), {"reply": "4"}, "which scale"),
        (("--scale", "1-5"), {"output": "4"}, "replies.jsonl:1: has none of all_responses, reply, response"),
        (("--scale", "1-5"), {"reply": 4}, "replies.jsonl:1: reply is to be text"),
    ],
)
def test_bad_input_is_named(geval, tmp_path, arguments, row, said):
    code, _, err = geval("read", stored(tmp_path, [row]), *arguments)
    assert code == 2
    assert said in err


def test_under_the_null_a_gap_is_seldom_called_selective():
    import random

    rng = random.Random(3)
    called = 0
    for seed in range(200):
        unread = Unread()
        for n in range(150):
            unread.add(rng.random() < 0.1, system=f"s{n % 5}", human=float(n % 4))
        called += any(gap.selective for gap in unread.gaps(seed))
    assert called <= 20, "nominally 5 % of 200"
