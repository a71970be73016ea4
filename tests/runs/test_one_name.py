"""Two criteria of one name: their ratings are told apart by the hash in the signature, and never averaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Server, completion

MODEL = "openai/gpt-4o-mini"
WORDINGS = {"kind": "How kind is it?", "rude": "How rude is it?"}


@pytest.fixture
def both(server: Server, geval):
    """A file with 24 ratings by each of two criteria called `tone`: 5 and 1; and one file with each alone."""

    def handler(request: dict) -> dict:
        score = 5 if "How kind" in request["messages"][0]["content"] else 1
        return completion(f"Rating: {score}", logprobs=[{"Rating": 1.0}, {":": 1.0}, {f" {score}": 1.0}])

    server.handler = handler
    rows = [
        {"id": f"i{n}", "doc_id": f"d{n // 2}", "output": f"B {n}.", "scores": {"tone": 1 + n % 5}} for n in range(24)
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in WORDINGS.items():
        Path(f"{name}.yaml").write_text(f"name: tone\ndefinition: {text}\nscale: 1-5\n")
        command = ("score", "in.jsonl", "-c", f"{name}.yaml", "-m", MODEL, "-o", f"{name}.jsonl")
        assert geval(*command)[0] == 0
    Path("both.jsonl").write_text(Path("kind.jsonl").read_text() + Path("rude.jsonl").read_text())
    return {name: hash_of(f"{name}.jsonl") for name in WORDINGS}


def hash_of(path: str) -> str:
    signature = json.loads(Path(path).read_text().splitlines()[0])["signature"]
    return next(part for part in signature.split("|") if part.startswith("criterion:")).partition("@")[2]


def test_estimates_are_of_each(both: dict, geval):
    code, out, _ = geval("estimate", "both.jsonl", "--json")
    assert code == 0
    assert [each["criterion"] for each in json.loads(out)["criteria"]] == [f"tone@{name}" for name in both.values()]
    code, _, err = geval("estimate", "both.jsonl", "-c", "tone")
    assert code == 2 and all(f"tone@{name}" in err for name in both.values())
    alone = json.loads(geval("estimate", "kind.jsonl", "--json")[1])["criteria"][0]
    one = json.loads(geval("estimate", "both.jsonl", "-c", f"tone@{both['kind']}", "--json")[1])["criteria"][0]
    assert one | {"criterion": "tone"} == alone


def test_a_gate_is_of_one_of_them(both: dict, geval):
    gate = ("gate", "both.jsonl", "--at-least", 4, "--unlabelled", "-c")
    assert geval(*gate, "tone")[0] == 2
    for name in both.values():
        assert json.loads(geval(*gate, f"tone@{name}", "--json")[1])["criterion"] == f"tone@{name}"


def test_runs_are_compared_by_the_same_one(both: dict, geval):
    code, out, _ = geval("compare", "both.jsonl", "both.jsonl", "--json")
    assert code == 0
    assert [each["difference"]["value"] for each in json.loads(out)["criteria"]] == [0, 0]
    code, out, _ = geval("compare", "both.jsonl", "rude.jsonl", "--json")
    (compared,) = json.loads(out)["criteria"]
    assert (code, compared["old"]["value"], compared["new"]["value"]) == (0, 1, 1)
    code, _, err = geval("compare", "kind.jsonl", "rude.jsonl")
    assert code == 2 and "were not made alike: tone: criterion is" in err


def test_a_meta_evaluation_takes_the_one_that_is_asked_for(both: dict, geval):
    for name in WORDINGS:
        alone, mixed = (
            json.loads(geval("meta-eval", file, "-c", f"{name}.yaml", "--json", "--resamples", 0)[1])["judges"][0]
            for file in (f"{name}.jsonl", "both.jsonl")
        )
        assert mixed | {"file": ""} == alone | {"file": ""}
    Path("third.yaml").write_text("name: tone\ndefinition: How loud is it?\nscale: 1-5\n")
    code, _, err = geval("meta-eval", "both.jsonl", "-c", "third.yaml")
    assert code == 2 and "holds ratings of 2 criteria of that name" in err


def test_labels_of_the_other_wording_are_left_out(both: dict, geval):
    rows = [
        {"id": f"i{n}", "criterion": "tone", "criterion_hash": both[name], "score": score, "annotator": "ann"}
        for name, score in (("kind", 5), ("rude", 1))
        for n in range(24)
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, score in (("kind", 5), ("rude", 1)):
        code, out, _ = geval("estimate", f"{name}.jsonl", "--labels", "labels.jsonl", "--json")
        (made,) = json.loads(out)["criteria"]
        assert code == 0
        assert any("24 labels were given under another wording" in note for note in made["notes"])
        assert f'"value": {score}' in out
