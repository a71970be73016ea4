"""Which model a provider served: it stands in every row, is no part of a signature, and a change of it is said."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from conftest import KEY, Server, completion

from geval_adapters import GEval, read_samples

MODEL = "openai/gpt-4o-mini"
OLD, NEW = "gpt-4o-mini-2024-07-18 (fp_old)", "gpt-4o-mini-2024-07-18 (fp_new)"


def names(server: Server, fingerprint: str | None, after: int = 10**9, then: str = "fp_new") -> None:
    """Serve under a fingerprint, and after so many requests under another."""
    numbers = itertools.count()

    def handler(request: dict) -> dict:
        said = fingerprint if next(numbers) < after else then
        about = {"model": "gpt-4o-mini-2024-07-18"} | ({"system_fingerprint": said} if said else {})
        if "Rating:" not in request["messages"][0]["content"]:
            return completion("A", logprobs=[{"A": 0.7, "B": 0.3}]) | about
        return completion("Rating: 4", logprobs=[{"Rating": 1.0}, {":": 1.0}, {" 4": 1.0}]) | about

    server.handler = handler


def write(count: int = 24) -> None:
    rows = [
        {"id": f"i{number}", "doc_id": f"d{number // 2}", "source": "A.", "output": f"B {number}."}
        for number in range(count)
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def served_in(path: str) -> list[tuple[str, ...]]:
    return [tuple(json.loads(line)["served"]) for line in lines_of(path)]


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


@pytest.mark.parametrize("direct", [True, False])
def test_rows_keep_what_was_served_and_a_change_midway_is_said(server: Server, geval, direct: bool):
    write()
    names(server, "fp_old", after=12)
    score = ("score", "in.jsonl", "-c", "summeval/coherence", "-m", MODEL, "-o")
    if direct:
        code, out, err = geval(*score, "half.jsonl")
        assert code == 0
        assert "summeval/coherence: 2 models were served" in err and f"{OLD} 12 x" in err and f"{NEW} 12 x" in err
    else:  # the other route, through LiteLLM
        ratings = GEval("summeval/coherence", MODEL, direct=False).rate_many(read_samples("in.jsonl"))
        Path("half.jsonl").write_text("".join(json.dumps(rating.to_dict()) + "\n" for rating in ratings))
    assert sorted(served_in("half.jsonl")) == [(NEW,)] * 12 + [(OLD,)] * 12

    names(server, "fp_old")
    assert geval(*score, "old.jsonl")[0] == 0
    assert served_in("old.jsonl") == [(OLD,)] * 24
    signatures = {json.loads(line)["signature"] for name in ("half", "old") for line in lines_of(f"{name}.jsonl")}
    assert len(signatures) == 1 and "fp_" not in signatures.pop()

    code, _, err = geval("compare", "old.jsonl", "half.jsonl")
    assert code == 0
    assert f"old.jsonl: {OLD} 24 x; half.jsonl: " in err and f"{NEW} 12 x" in err
    code, out, _ = geval("gate", "old.jsonl", "-c", "coherence", "--baseline", "half.jsonl", "--unlabelled")
    assert f"the ratings: {OLD} 24 x; the baseline: " in " ".join(out.split())
    code, out, _ = geval("gate", "half.jsonl", "-c", "coherence", "--at-least", 2, "--unlabelled", "--json")
    assert any("was not rated by one served model" in note for note in json.loads(out)["notes"])


def test_one_served_model_and_none_named_give_no_warning(server: Server, geval):
    write()
    for fingerprint, name in ((None, "a"), (None, "b")):
        names(server, fingerprint)
        code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", f"{name}.jsonl")
        assert (code, err) == (0, "")
    assert served_in("a.jsonl") == [("gpt-4o-mini-2024-07-18",)] * 24
    assert geval("compare", "a.jsonl", "b.jsonl")[2] == ""
    bare = [{k: v for k, v in json.loads(line).items() if k != "served"} for line in lines_of("a.jsonl")]
    Path("bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    assert geval("compare", "bare.jsonl", "b.jsonl")[::2] == (0, "")  # files of before go on working


def test_samples_of_one_item_keep_each_model_and_a_cache_remembers_it(server: Server, geval):
    write(2)

    def handler(request: dict) -> dict:
        return completion("Rating: 4") | {"model": "m", "system_fingerprint": f"fp_{len(server.requests) % 2}"}

    server.handler = handler
    command = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--readout", "samples", "--n", 4)
    command = (*command, "--cache", "replies", "--json")
    first = json.loads(geval(*command)[1])["ratings"]
    assert [row["served"] for row in first] == [["m (fp_0)", "m (fp_1)"]] * 2
    asked = len(server.requests)
    again = json.loads(geval(*command)[1])["ratings"]
    assert [row["served"] for row in again] == [row["served"] for row in first]
    assert len(server.requests) == asked


def test_verdicts_keep_what_was_served_also_when_they_are_resumed(server: Server, geval):
    write(24)
    names(server, "fp_old", after=12)
    command = ("rank", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "ranks.jsonl")
    assert geval(*command, "--max-requests", 16)[0] == 1
    assert geval(*command)[0] == 0
    assert sorted(served_in("ranks.verdicts.jsonl")) == [(NEW,)] * 12 + [(OLD,)] * 12


def test_what_a_server_calls_itself_is_taken_for_no_more_than_text(server: Server, geval):
    write(24)
    strange = [None, 7, ["x"], {"a": 1}, "x" * 10_000, f"m {KEY}", "\x1b[31mred", ""]

    def handler(request: dict) -> dict:
        odd = strange[len(server.requests) % len(strange)]
        rating = completion("Rating: 4", logprobs=[{"Rating": 1.0}, {":": 1.0}, {" 4": 1.0}])
        return rating | {"model": odd, "system_fingerprint": odd}

    server.handler = handler
    code, out, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl")
    assert code == 0
    assert "\x1b" not in out + err
    assert KEY not in Path("out.jsonl").read_text()
    assert max(len(each) for row in served_in("out.jsonl") for each in row) < 1000
