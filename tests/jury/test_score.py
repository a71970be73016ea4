"""`geval score` with several judges: each judge's rows, the panel's file, judges that go down, going on."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, completion, refusal

A, B, C = "openai/a", "openai/b", "openai/c"


class Judges:
    """What a server says: each model sees the number in the text, shifted and blurred; some die."""

    def __init__(self, **dies_after: int) -> None:
        self.dies_after = dies_after
        self.asked: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        model = request["model"]
        self.asked[model] += 1
        if self.asked[model] > self.dies_after.get(model, 10**6):
            raise refusal(401, "key expired")
        text = re.findall(r"q=([\d.]+)", request["messages"][0]["content"])[-1]
        seen = float(text) + {"a": 0, "b": 0.7, "c": -0.5}[model] + random.Random(model + text).gauss(0, 0.3)
        return completion(f"Rating: {min(5, max(1, round(seen)))}")


def write_samples(path: Path, n: int = 30, human: bool = True) -> None:
    rng = random.Random(1)
    rows = []
    for number in range(n):
        quality = rng.uniform(1, 5)
        row = {"output": f"q={quality:.3f}", "id": f"s{number}", "doc_id": f"d{number // 3}"}
        rows.append(row | ({"scores": {"fluency": round(quality, 2)}} if human else {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def score(geval: Any, *more: str, models: tuple[str, ...] = (A, B, C)) -> tuple[int, str, str]:
    chosen = [part for model in models for part in ("-m", model)]
    readout = ("--readout", "samples", "--n", "1")
    return geval("score", "in.jsonl", "-c", "fluency", *chosen, "-o", "out.jsonl", *readout, *more)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def judges(server: Server, tmp_path: Path) -> Judges:
    server.handler = Judges()
    write_samples(tmp_path / "in.jsonl")
    return server.handler


def test_every_judge_has_its_rows_and_the_panel_a_file_that_is_read_like_any_other(
    judges: Judges, geval: Any, tmp_path: Path
) -> None:
    code, out, err = score(geval, "--html", "page.html")
    assert code == 0, err
    own = rows(tmp_path / "out.jsonl")
    assert Counter(re.search(r"model:([^|]+)", row["signature"])[1] for row in own) == {A: 30, B: 30, C: 30}
    panel = rows(tmp_path / "out.jury.jsonl")
    assert [row["id"] for row in panel] == [f"s{number}" for number in range(30)]
    for row in panel:
        given = {each["signature"].split("|")[0][6:]: each["score"] for each in own if each["id"] == row["id"]}
        assert row["judges"] == given
        assert (row["method"], row["n_valid"], row["error"]) == ("jury", 3, None)
    assert "panel:weighted@" in panel[0]["signature"]
    assert "the jury of fluency" in out
    assert "mean correlation of their errors" in out
    page = (tmp_path / "page.html").read_text()
    assert "the jury of fluency" in page
    assert B in page
    code, out, _ = geval("meta-eval", "out.jsonl", "out.jury.jsonl", "-c", "fluency", "--json", "--resamples", "0")
    assert [each["file"] for each in json.loads(out)["judges"]] == [A, B, C, "out.jury.jsonl"]
    assert geval("compare", "out.jury.jsonl", "out.jury.jsonl")[0] == 0
    code, _, err = geval("compare", "out.jsonl", "out.jury.jsonl")
    assert (code, "take their panel's ratings, NAME.jury.jsonl" in err) == (2, True)
    # A second time nothing is asked, and the panel is the same.
    asked, before = judges.asked.total(), (tmp_path / "out.jury.jsonl").read_text()
    code, _, err = score(geval, models=(C, A, B))
    assert (code, judges.asked.total()) == (0, asked), err
    assert "90 of 90 had been rated before" in err
    again = rows(tmp_path / "out.jury.jsonl")
    assert [row["signature"] for row in again] == [row["signature"] for row in panel]
    assert [row["score"] for row in again] == pytest.approx([json.loads(each)["score"] for each in before.splitlines()])


def test_a_judge_that_dies_in_mid_run_leaves_a_panel_that_says_so_and_is_asked_again(
    judges: Judges, geval: Any, tmp_path: Path
) -> None:
    judges.dies_after["c"] = 12
    code, _, err = score(geval, "--concurrency", "1")
    assert code == 1
    assert f"fluency, {C}: 18 of 30 were not rated" in err
    assert err.strip().endswith("fluency: 18 of 30 panels lack some of the 3 judges: 18 have 2")
    panel = rows(tmp_path / "out.jury.jsonl")
    assert Counter(row["n_valid"] for row in panel) == {3: 12, 2: 18}
    short = next(row for row in panel if row["n_valid"] == 2)
    assert (short["judges"][C], round(short["coverage"], 2)) == (None, 0.67)
    assert f"{C} none" in short["rationale"]
    judges.dies_after.clear()
    asked = judges.asked.copy()
    assert score(geval)[0] == 0
    assert judges.asked - asked == {"c": 18}
    assert {row["n_valid"] for row in rows(tmp_path / "out.jury.jsonl")} == {3}


def test_a_judge_that_is_down_from_the_beginning_is_named(judges: Judges, geval: Any, tmp_path: Path) -> None:
    judges.dies_after["b"] = 0
    code, out, err = score(geval)
    assert code == 1
    assert f"{B} could not go on, and is in the panel only as far as it came: key expired" in err
    assert "carries nothing: it rated nothing; could not go on: key expired" in out
    panel = rows(tmp_path / "out.jury.jsonl")
    assert {row["n_valid"] for row in panel} == {2}
    assert f"{B} none (key expired" in panel[0]["rationale"]


def test_a_judge_more_or_less_goes_on_with_the_same_output(judges: Judges, geval: Any, tmp_path: Path) -> None:
    assert score(geval, models=(A, B))[0] == 0
    assert score(geval)[0] == 0
    assert judges.asked == {"a": 30, "b": 30, "c": 30}
    code, _, err = score(geval, models=(A, C))
    assert (code, judges.asked.total()) == (0, 90), err
    assert "30 rows of the output are of other samples, criteria or judges" in err
    assert set(rows(tmp_path / "out.jury.jsonl")[0]["judges"]) == {A, C}
    code, _, err = score(geval, models=(A,))
    assert (code, f"model is {B} there, {A} here" in err) == (2, True)


def test_a_run_that_was_killed_goes_on(judges: Judges, geval: Any, tmp_path: Path) -> None:
    assert score(geval)[0] == 0
    output, panel = tmp_path / "out.jsonl", tmp_path / "out.jury.jsonl"
    whole = panel.read_text()
    lines = output.read_text().splitlines(keepends=True)
    random.Random(4).shuffle(lines)
    output.write_text("".join(lines[:50]) + lines[50][:40])  # as kill -9 leaves it: a torn line, and an old panel
    code, _, err = score(geval)
    assert code == 0, err
    assert judges.asked.total() == 130
    assert panel.read_text() == whole


def test_the_budget_is_shared_and_all_down_ends_the_run(judges: Judges, geval: Any, tmp_path: Path) -> None:
    code, _, err = score(geval, "--max-requests", "20")
    assert (code, judges.asked.total()) == (1, 20), err
    assert "stopped: 20 requests were sent" in err
    judges.dies_after.update(a=0, b=0, c=0)
    code, _, err = score(geval)
    assert (code, "error: openai/a: key expired" in err) == (2, True)
    assert sum(row["n_valid"] for row in rows(tmp_path / "out.jury.jsonl")) == 20


def test_labels_weight_the_judges_and_json_holds_it_all(judges: Judges, geval: Any, tmp_path: Path) -> None:
    write_samples(tmp_path / "in.jsonl", n=36, human=False)
    labels = [
        {"id": f"s{number}", "criterion": "fluency", "score": 1 + number % 5, "annotator": who}
        for number in range(36)
        for who in ("x", "y")
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    code, out, err = score(geval, "--labels", "labels.jsonl", "--json")
    assert code == 0, err
    found = json.loads(out)
    (panel,) = found["jury"]
    assert (panel["panel"], panel["n"], panel["judges_per_item"]) == ("weighted", 36, {"3": 36})
    assert [each["name"] for each in panel["jurors"]] == [A, B, C]
    assert sum(each["weight"] for each in panel["jurors"]) == pytest.approx(1)
    assert {each["judge"] for each in found["criteria"]} == {A, B, C}
    assert rows(tmp_path / "out.jury.jsonl")[0]["human"] == 1
    (tmp_path / "labels.jsonl").write_text(json.dumps(labels[0] | {"id": "other"}) + "\n")
    code, _, err = score(geval, "--labels", "labels.jsonl")
    assert (code, "none of its labels of fluency is of a sample here" in err) == (2, True)
    code, _, err = score(geval, "--labels", "labels.jsonl", models=(A,))
    assert (code, "--labels weights the judges of a jury" in err) == (2, True)


def test_a_bar_is_for_the_panel(judges: Judges, geval: Any) -> None:
    code, _, err = score(geval, "--at-least", "4.5")
    assert (code, err.count("--at-least")) == (1, 1)


def test_what_cannot_be_a_jury_is_refused(judges: Judges, geval: Any) -> None:
    code, _, err = score(geval, "--batch")
    assert (code, "--batch takes one --model" in err) == (2, True)
