"""`geval.yaml`: what the commands of a project have in common."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Server, completion

SETTINGS = """
model: openai/gpt-4o-mini
criteria: [coherence, fluency]
concurrency: 1
fields: {output: answer_text, source: article_text}
output: ratings.jsonl
options: {top_p: 0.5}
cache: replies
"""


@pytest.fixture
def project(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    server.handler = lambda request: completion(*["Rating: 4"] * request.get("n", 1))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.jsonl").write_text('{"answer_text": "A.", "article_text": "B."}\n')
    (tmp_path / "data" / "geval.yaml").write_text(SETTINGS)
    return tmp_path


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_beside_the_data_says_what_the_command_line_does_not(server: Server, project: Path, geval):
    code, _, err = geval("score", "data/in.jsonl", "--n", 1, "--readout", "samples")
    assert code == 0, err
    made = rows(project / "data" / "ratings.jsonl")
    assert [row["criterion"] for row in made] == ["coherence", "fluency"]
    assert server.requests[0]["top_p"] == 0.5
    assert server.requests[0]["model"] == "gpt-4o-mini"
    assert (project / "data" / "replies" / "replies.sqlite").is_file()


def test_the_command_line_wins(server: Server, project: Path, geval):
    code, _, err = geval(
        "score", "data/in.jsonl", "-c", "helpfulness", "--model", "openai/gpt-4o", "-o", "mine.jsonl", "--n", 1,
        "--readout", "samples", "--option", "top_p=0.1",
    )  # fmt: skip
    assert code == 0, err
    assert [row["criterion"] for row in rows(project / "mine.jsonl")] == ["helpfulness"]
    assert (server.requests[0]["top_p"], server.requests[0]["model"]) == (0.1, "gpt-4o")
    assert not (project / "data" / "ratings.jsonl").exists()


def test_the_working_folder_has_one_too_and_other_verbs_take_what_they_know(project: Path, geval):
    (project / "data" / "geval.yaml").rename(project / "geval.yaml")
    code, _, err = geval("score", "data/in.jsonl", "--n", 1, "--readout", "samples")
    assert code == 0, err
    assert (project / "ratings.jsonl").is_file()
    assert geval("criteria")[0] == 0
    code, _, err = geval("meta-eval", "ratings.jsonl")  # takes one criterion, and there are two
    assert code == 2
    assert "--criterion" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle: x", "data/geval.yaml: modle: is unknown; known: model, criteria, concurrency, fields"),
        ("concurrency: many", "data/geval.yaml: concurrency: must be a valid integer"),
        ("fields: [a]", "data/geval.yaml: fields: must be"),
        ("- a", "data/geval.yaml: is a mapping with model, criteria"),
        ("a: [", "data/geval.yaml: cannot be read as YAML"),
    ],
)
def test_what_it_cannot_say_is_named(server: Server, project: Path, geval, text: str, said: str):
    (project / "data" / "geval.yaml").write_text(text)
    code, _, err = geval("score", "data/in.jsonl", "-c", "coherence")
    assert code == 2
    assert said in err
    assert server.requests == []
