"""Two runs beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SIGNATURE = "model:openai/gpt-4o-mini|criterion:coherence@1|n:1"


def run(name: str, scores: list[float | None], signature: str = SIGNATURE, output: str = "A text.") -> str:
    rows = [
        {
            "id": f"i{place}", "doc_id": f"d{place // 2}", "criterion": "coherence", "score": score,
            "signature": signature, "output": f"{output} {place}", "distribution": {},
        }
        for place, score in enumerate(scores)
    ]  # fmt: skip
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


OLD = [2.0, 3.0, 4.0, 1.0, 2.0, 5.0, 3.0, 3.0, 2.0, 4.0, 1.0, 2.0, 3.0, 4.0]


def test_the_paired_difference_comes_with_its_interval_and_what_changed_most(geval):
    run("old.jsonl", OLD)
    run("new.jsonl", [score + 0.5 for score in OLD[:12]] + [None, 1.0], output="Another.")
    code, out, _ = geval("compare", "old.jsonl", "new.jsonl", "--json")
    assert code == 0
    (found,) = json.loads(out)["criteria"]
    mean = (12 * 0.5 - 3.0) / 13
    assert found["difference"]["value"] == pytest.approx(mean)
    assert found["difference"]["low"] < mean < found["difference"]["high"]
    assert (found["up"], found["down"], found["same"], found["unscored"]) == (12, 1, 0, 1)
    code, out, _ = geval("compare", "old.jsonl", "new.jsonl", "--html", "page.html")
    assert code == 0
    lines = out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("changed most")]
    assert lines[place + 2].split()[:4] == ["i13", "4.00", "1.00", "-3.00"]
    text = Path("page.html").read_text()
    assert "coherence is higher in new.jsonl, by 0.231 [" in text
    assert "that may be chance" in text


def test_runs_that_were_not_made_alike_are_refused_unless_told(geval):
    run("old.jsonl", OLD)
    run("new.jsonl", OLD, SIGNATURE.replace("mini", "nano"))
    code, _, err = geval("compare", "old.jsonl", "new.jsonl")
    assert code == 2
    said = "coherence: model is openai/gpt-4o-mini there, openai/gpt-4o-nano here"
    assert f"old.jsonl and new.jsonl were not made alike: {said}. --any-signature compares them" in err
    code, out, err = geval("compare", "old.jsonl", "new.jsonl", "--any-signature")
    assert code == 0
    assert "0.000 [0.000, 0.000]" in out
    assert said in err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([1.0], [None], "no item has a score in both"),
        ("none.jsonl", [1.0], "none.jsonl: No such file"),
    ],
)
def test_what_cannot_be_compared_is_said(geval, old: list | str, new: list, said: str):
    first = old if isinstance(old, str) else run("old.jsonl", old)
    code, _, err = geval("compare", first, run("new.jsonl", new))
    assert code == 2
    assert said in err


def test_too_few_documents_have_no_interval_and_say_why(geval):
    run("old.jsonl", OLD[:4])
    code, out, _ = geval("compare", "old.jsonl", run("new.jsonl", OLD[:4]))
    assert code == 0
    assert "no interval: it needs 6 documents, and there are 2" in out
