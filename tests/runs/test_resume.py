"""What a run finds in its output: it goes on from what it wrote itself, and refuses what would change a figure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, completion

from geval_adapters.errors import BusyError, InputError
from geval_adapters.runs import RunLog

MODEL = "openai/gpt-4o-mini"
ROWS = 40


@pytest.fixture
def rated(server: Server, geval: Any, tmp_path: Path) -> list[dict[str, Any]]:
    """The rows of a finished run."""
    samples = [{"output": f"text {number}", "id": f"s{number}"} for number in range(ROWS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    code, _, err = score(geval)
    assert code == 0, err
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def score(geval: Any, *more: str, criteria: tuple[str, ...] = ("fluency",)) -> tuple[int, str, str]:
    chosen = [part for each in criteria for part in ("-c", each)]
    return geval("score", "in.jsonl", *chosen, "-m", MODEL, "-o", "out.jsonl", "--n", "1", *more)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: [*rows, rows[6]], "out.jsonl:41: sample 's6' has a rating by 'fluency' already"),
        (lambda rows: [*rows, rows[6] | {"score": 1.0}], "out.jsonl:41: sample 's6' has a rating by 'fluency' already"),
        (lambda rows: [*rows[:9], rows[9] | {"score": 9.5}, *rows[10:]], "out.jsonl:10: the score 9.5 is not on the"),
        (lambda rows: [*rows[:9], rows[9] | {"score": None}], "out.jsonl:10: the score None is not on the scale 1-5"),
        (lambda rows: [rows[0] | {"score": "high"}], "out.jsonl:1: score: must be a valid number"),
        (lambda rows: [{"signature": rows[0]["signature"], "error": None}], "out.jsonl:1: id: is missing"),
        (lambda rows: [rows[0], rows[1] | {"signature": "x"}], "out.jsonl:2: not a signature: 'x'"),
        (lambda rows: [rows[0], rows[1] | {"usage": 5}], "out.jsonl:2: usage: must be a mapping"),
        (lambda rows: [rows[0], {"output": "a text"}], "out.jsonl:2: is no row of a run"),
    ],
)
def test_rows_that_would_change_a_figure_are_refused_by_line(
    rated: list[dict[str, Any]], geval: Any, tmp_path: Path, server: Server, change: Any, said: str
) -> None:
    rows = sorted(rated, key=lambda row: int(row["id"][1:]))
    text = "".join(json.dumps(row) + "\n" for row in change(rows))
    (tmp_path / "out.jsonl").write_text(text)
    asked = len(server.requests)
    code, _, err = score(geval)
    assert (code, said in err) == (2, True), err
    assert (tmp_path / "out.jsonl").read_text() == text
    assert len(server.requests) == asked


def test_deep_json_in_the_output_is_refused(rated: list[dict[str, Any]], geval: Any, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("[" * 200_000 + "\n")
    code, _, err = score(geval)
    assert (code, "out.jsonl:1: is no row of a run" in err) == (2, True)


def test_failures_among_the_rows_are_removed_by_a_file_that_takes_the_place_whole(
    rated: list[dict[str, Any]], geval: Any, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.jsonl"
    rows = [
        row | ({"score": None, "error": "no answer"} if number % 3 == 1 else {}) for number, row in enumerate(rated)
    ]
    before = "".join(json.dumps(row) + "\n" for row in rows) + '{"torn": '
    output.write_text(before)
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        code, _, err = score(geval)
    assert (code, "No space left on device" in err) == (2, True)
    assert output.read_text() == before
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    asked = len(server.requests)
    assert score(geval)[0] == 0
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(row["id"] for row in rated)
    assert all(line["error"] is None for line in lines)
    assert len(server.requests) - asked == sum(row["error"] is not None for row in rows)


def test_a_log_that_was_renewed_is_still_locked_and_still_written_to(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"signature": "a:b", "error": None if number % 2 else "lost", "number": number} for number in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with RunLog(path) as log:
        log.resume(lambda row: None)
        with pytest.raises(BusyError):
            RunLog(path)
        log.write({"signature": "a:b", "error": None, "number": 99})
    numbers = [json.loads(line)["number"] for line in path.read_text().splitlines()]
    assert numbers == [*range(1, 50, 2), 99]


def test_a_file_that_is_replaced_between_opening_and_locking_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("")
    true_stat = Path.stat
    other = tmp_path / "other"
    other.write_text("")
    monkeypatch.setattr(Path, "stat", lambda self, **_: true_stat(other if self == path else self))
    with pytest.raises(InputError, match="another process"):
        RunLog(path)


def test_two_criteria_that_begin_alike_or_have_one_name_are_two(server: Server, geval: Any, tmp_path: Path) -> None:
    server.handler = lambda request: completion(
        "Rating: 1" if "short" in request["messages"][0]["content"] else "Rating: 5"
    )
    own = tmp_path / "own.yaml"
    own.write_text("name: fluency\ndefinition: Whether it is short.\nscale: 1-5\n")
    texts = [{"output": f"text {number}", "id": number} for number in range(12)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    criteria = (
        "Is the summary of the article true?", "Is the summary of the article short?", "fluency", str(own),
    )  # fmt: skip
    for _ in range(2):  # the second time, all comes from the file
        code, out, err = score(geval, "--json", "--readout", "samples", criteria=criteria)
        assert code == 0, err
        summaries = {each["criterion"]: each for each in json.loads(out)["criteria"]}
        assert len(summaries) == 4
        assert sorted(each["mean"] for each in summaries.values()) == [1, 1, 5, 5]
        assert {each["n"] for each in summaries.values()} == {12}
    assert len(server.requests) == 48


def test_ids_never_collide(server: Server, geval: Any, tmp_path: Path) -> None:
    ids = ["a", "a", "a#2", "a", "a#2", "3", None, "7", "a#2#2"] * 5
    rows = [{"output": f"text {number}"} | ({"id": name} if name else {}) for number, name in enumerate(ids)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        assert score(geval)[0] == 0
        names = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert len(set(names)) == len(rows) == len(names)
