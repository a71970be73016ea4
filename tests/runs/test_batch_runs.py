"""Runs of batch rating: servers, budgets, kills, waves of a provider's batches, and what is refused."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import batch_server
import pytest
from batch_server import BatchServer
from batched import MODEL, Rater, batched, batched_by, quality, rating_lines, shown_in, swapped, texts
from conftest import Server, Trouble, completion

from geval_adapters import GEval, InputError, StopError
from geval_adapters.errors import UnderWay
from geval_adapters.judge.batches import BatchJudge

batches_of_a_provider = batch_server.server

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_hostile_server_with_many_requests_at_once_mixes_nothing_up(server: Server):
    rng, seen = random.Random(0), Counter[str]()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        lines = rating_lines(request["messages"][0]["content"])
        kind = rng.choice(["fine", "fine", "half", "swapped", "doubled", "empty", "busy", "broken", "chatty"])
        seen[kind] += 1
        if kind == "busy":
            raise Trouble(429, b'{"error": {"message": "slow down"}}', retry_after="0")
        if kind == "broken":
            raise Trouble(200, b'{"choices": [{"message":', cut=True)
        spoilt = {
            "half": lines[: len(lines) // 2],
            "swapped": swapped(lines) if len(lines) > 1 else lines,
            "doubled": [*lines, f"Output 1: {rng.randint(1, 5)}"],
            "empty": [],
            "chatty": ["Sure! 5 of 5 for effort.", *lines, "I hope that helps: 4!"],
        }
        return completion("\n".join(spoilt.get(kind, lines)))

    server.handler = answer
    geval = batched_by(MODEL, readout="samples", rounds=3, per_request=5, concurrency=32)
    ratings = list(geval.rate_many(texts(100)))
    assert len(seen) == 8
    for text, rating in zip(texts(100), ratings, strict=True):
        assert rating.sample.output == text
        assert rating.score is None or rating.score == pytest.approx(quality(text))
        assert rating.n_valid == 3 or rating.n_failed == 3
    assert sum(rating.score is None for rating in ratings) < 25
    assert sum(rating.usage.requests for rating in ratings) >= seen.total() - seen["busy"] - seen["broken"]


def write_samples(path: Path, count: int) -> None:
    path.write_text("".join(json.dumps({"id": f"s{n}", "output": t}) + "\n" for n, t in enumerate(texts(count))))


SCORE = ("score", "in.jsonl", "-c", "Is it good?", "--scale", "1-5", "-m", MODEL, "--recipe", "batcheval",
         "--readout", "samples", "-o", "out.jsonl")  # fmt: skip


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_budget_spent_in_mid_round_leaves_whole_ratings_and_the_run_goes_on_from_them(
    server: Server, geval: Any, tmp_path: Path
):
    server.handler = lambda request: completion("\n".join(rating_lines(request["messages"][0]["content"])))
    write_samples(tmp_path / "in.jsonl", 60)
    code, _, err = geval(*SCORE, "--max-requests", 27, "--concurrency", 1)
    assert code == 1, err
    done = [row for row in rows(tmp_path / "out.jsonl") if row["error"] is None]
    assert 10 <= len(done) <= 30
    assert {row["n_valid"] for row in done} == {5}, "none is handed on with fewer rounds"
    before = len(server.requests)
    code, _, err = geval(*SCORE)
    assert code == 0, err
    again = {n for request in server.requests[before:] for n, _ in shown_in(request["messages"][0]["content"])}
    assert again == set(range(60)) - {int(row["id"][1:]) for row in done}
    assert {row["id"]: row["score"] for row in rows(tmp_path / "out.jsonl")} == {
        f"s{n}": pytest.approx(quality(text)) for n, text in enumerate(texts(60))
    }


def test_a_run_that_was_killed_goes_on_from_what_was_rated(server: Server, geval: Any, tmp_path: Path):
    killed: list[int] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if len(server.requests) == 23:  # in the last of three rounds
            time.sleep(0.5)  # for those before it to be written down
            os.kill(process.pid, signal.SIGKILL)
            killed.append(process.pid)
        return completion("\n".join(rating_lines(request["messages"][0]["content"])))

    server.handler = answer
    write_samples(tmp_path / "in.jsonl", 90)
    command = [sys.executable, "-m", "geval_adapters", *SCORE, "--rounds", "3", "--concurrency", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.wait(60)
    assert killed
    done = rows(tmp_path / "out.jsonl")
    assert 20 <= len(done) < 90
    before = len(server.requests)
    code, _, err = geval(*SCORE, "--rounds", "3")
    assert code == 0, err
    again = {n for request in server.requests[before:] for n, _ in shown_in(request["messages"][0]["content"])}
    assert again == set(range(90)) - {int(row["id"][1:]) for row in done}
    assert len(rows(tmp_path / "out.jsonl")) == 90


def test_turns_passages_and_answers_share_requests_and_images_do_not(server: Server, geval: Any):
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        tags = re.findall(r"(?m)^<(turn|passage|answer|run|conversation)_(\d+)>$", request["messages"][0]["content"])
        return completion("\n".join(f"{noun.capitalize()} {number}: {number}" for noun, number in tags))

    server.handler = answer
    how = ("-m", MODEL, "--per-request", 3, "--rounds", 2, "--readout", "samples")
    for name, criterion in {
        "conversations": "conversation/turn_relevance", "agents": "agent/tool_choice",
        "retrieval": "retrieval/context_relevance",
    }.items():  # fmt: skip
        code, out, err = geval("score", EXAMPLES / f"{name}.jsonl", "-c", criterion, *how)
        assert (code, criterion in out) == (0, True), err
    code, out, err = geval("score", EXAMPLES / "pictures.jsonl", "-c", "helpfulness", *how)
    assert (code, "helpfulness: 2 of 2 were not rated" in err) == (1, True)
    assert "images are judged in one sample at a time" in out


def test_a_dry_run_says_what_the_run_asks(server: Server, geval: Any, tmp_path: Path):
    server.handler = lambda request: completion("\n".join(rating_lines(request["messages"][0]["content"])))
    write_samples(tmp_path / "in.jsonl", 60)
    code, out, err = geval(*SCORE, "--per-request", 7, "--rounds", 2, "--dry-run", "--json")
    assert (code, server.requests) == (0, []), err
    (planned,) = json.loads(out)
    assert geval(*SCORE, "--per-request", 7, "--rounds", 2)[0] == 0
    assert (planned["ratings"], planned["requests"], planned["readout"]) == (60, len(server.requests), "2 samples")
    assert planned["cost_batch"] == pytest.approx(planned["cost"] / 2)


def test_with_a_providers_batches_every_round_is_a_wave(batches_of_a_provider: BatchServer, tmp_path: Path):
    there = batches_of_a_provider
    there.answer = lambda body: completion("\n".join(rating_lines(body["messages"][0]["content"])))
    there.instant = False

    def run() -> list[Any]:
        judge = BatchJudge(MODEL, batch=tmp_path / "run.batches.db", wait=False)
        return list(batched(judge, readout="samples", rounds=3, per_request=4).rate_many(texts(60)))

    for _ in range(3):
        with pytest.raises(UnderWay):
            run()
        there.finish()
    assert [rating.score for rating in run()] == pytest.approx([quality(text) for text in texts(60)])
    assert [len(batch["rows"]) for batch in there.batches.values()] == [7, 15, 15]
    assert len(there.ordinary) == 8, "the first few of the first round"


def test_what_cannot_go_together_is_said():
    for options, said in [
        ({"n": 5}, "set rounds, not n"),
        ({"adaptive": 0.1}, "set rounds, not n or adaptive"),
        ({"form": "json"}, "have no form 'json': score_only or rate_explain or analyze_rate"),
        ({"form": "score_only+analyze_rate"}, "rated in one form"),
        ({"rounds": 0}, "must be at least 1"),
    ]:
        with pytest.raises(InputError, match=said):
            batched(Rater(), **options)
    with pytest.raises(InputError, match="no samples share a request, by per_request or a recipe"):
        GEval("rubric", Rater(), recipe="batcheval")
    with pytest.raises(StopError):
        list(batched_by(MODEL, api_key="x", max_requests=1, api_base="http://127.0.0.1:9/v1").rate_many(texts(40)))
