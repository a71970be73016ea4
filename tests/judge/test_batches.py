"""Asking in batches: the same rows as without, nothing sent twice, nothing lost, whatever happens in between."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import batch_server
import pytest
from batch_server import MODELS, TEXTS, BatchServer, Refused, assert_right, number_in, rate, rate_by_number
from conftest import KEY, completion

from geval_adapters import JudgeError
from geval_adapters.errors import UnderWay
from geval_adapters.judge.batches import BatchJudge

KILLS = int(os.environ.get("GEVAL_TEST_KILLS", "4"))
server = batch_server.server


def test_ratings_are_those_of_ordinary_requests_and_only_the_first_few_are_asked_so(
    server: BatchServer, tmp_path: Path
) -> None:
    server.answer = rate_by_number
    assert_right(rate(tmp_path))
    assert len(server.ordinary) == 8
    assert [len(batch["rows"]) for batch in server.batches.values()] == [32]


def test_equal_texts_are_asked_each_on_its_own(server: BatchServer, tmp_path: Path) -> None:
    ratings = rate(tmp_path, ["Text number 3."] * 30)
    assert len(ratings) == 30
    assert len(server.asked) + len(server.ordinary) == 30


def test_a_run_that_does_not_wait_goes_on_where_it_was(server: BatchServer, tmp_path: Path) -> None:
    server.answer, server.instant = rate_by_number, False
    with pytest.raises(UnderWay, match="32 requests are under way in 1 batches"):
        rate(tmp_path, wait=False)
    with pytest.raises(UnderWay):
        rate(tmp_path, wait=False)
    assert len(server.batches) == 1
    server.finish()
    assert_right(rate(tmp_path, wait=False))
    assert len(server.batches) == 1


def test_what_a_model_refuses_is_learnt_from_the_first_few(server: BatchServer, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if "temperature" in body:
            raise Refused(400, "Unsupported parameter: 'temperature' is not supported with this model.")
        return rate_by_number(body)

    server.answer, server.instant = answer, False
    with pytest.raises(UnderWay):
        rate(tmp_path, wait=False)
    assert all("temperature" not in body for body in server.asked)
    server.finish()
    assert_right(rate(tmp_path, wait=False))
    assert len(server.batches) == 1, "what was learnt is known to the process that goes on, too"


def test_a_model_without_log_probabilities_is_asked_for_samples_in_one_batch(
    server: BatchServer, tmp_path: Path
) -> None:
    server.answer, server.instant = rate_by_number, False
    with pytest.raises(UnderWay):
        rate(tmp_path, wait=False, readout="auto", n=None)
    server.finish()
    ratings = rate(tmp_path, wait=False, readout="auto", n=None)
    assert_right(ratings)
    assert {rating.method for rating in ratings} == {"samples"}
    assert len(server.batches) == 1


def test_adaptive_sampling_makes_a_batch_of_each_round(server: BatchServer, tmp_path: Path) -> None:
    server.answer = lambda body: completion(*(["Rating: 1", "Rating: 5"] * 20)[: body.get("n", 1)])
    ratings = rate(tmp_path, n=12, adaptive=0.1)
    assert len(ratings) == len(TEXTS)
    assert 2 <= len(server.batches) <= 4


@pytest.mark.parametrize("model", MODELS)
def test_a_lost_answer_to_a_submission_sends_nothing_twice(server: BatchServer, tmp_path: Path, model: str) -> None:
    server.answer, server.lose = rate_by_number, 1
    assert_right(rate(tmp_path, model=model, n=1))
    assert Counter(number_in(body) for body in server.asked + server.ordinary).most_common(1)[0][1] == 1


def test_rows_in_any_order_strange_doubled_failed_and_missing(server: BatchServer, tmp_path: Path) -> None:
    server.answer = rate_by_number
    spoilt: list[int] = []

    def spoil(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if spoilt:
            return rows
        spoilt.append(1)
        rows = rows[::-1]
        rows[0]["response"] |= {"status_code": 500, "body": {"error": {"message": "overloaded"}}}
        rows[1] = {"custom_id": rows[1]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
        del rows[2:6]
        strange = {"custom_id": "somebody-else", "response": {"status_code": 200, "body": completion("Rating: 1")}}
        return [strange, *rows, rows[-1], {"no": "id"}]

    server.spoil = spoil
    assert_right(rate(tmp_path))
    first, *again = (len(batch["rows"]) for batch in server.batches.values())
    assert (first, sum(again)) == (32, 6)


def test_a_filtered_row_is_that_items_failure(server: BatchServer, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if number_in(body) == 20:
            raise Refused(400, "The response was filtered due to the prompt triggering content management policy.")
        return rate_by_number(body)

    server.answer = answer
    ratings = rate(tmp_path)
    unrated = [rating for rating in ratings if rating.score is None]
    assert [rating.sample.output for rating in unrated] == [TEXTS[20]]
    assert "filtered" in unrated[0].error


def test_a_full_queue_takes_smaller_batches_one_after_the_other(server: BatchServer, tmp_path: Path) -> None:
    server.answer = rate_by_number
    began = server._begin

    def begin(sent: dict[str, Any], anthropic: bool) -> dict[str, Any]:
        batch = began(sent, anthropic)
        if len(batch["rows"]) > 10:
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
            batch |= {"status": "failed", "done": True, "errors": {"object": "list", "data": [error]}}
        return batch

    server._begin = begin
    assert_right(rate(tmp_path))
    taken = [len(batch["rows"]) for batch in server.batches.values() if batch["status"] != "failed"]
    assert taken == [8, 8, 8, 8]


def test_a_refused_key_ends_the_run_and_says_so(server: BatchServer, tmp_path: Path) -> None:
    server.answer = rate_by_number
    server.fault = lambda number, method, path: (401, "Incorrect API key") if path.endswith("/files") else None
    with pytest.raises(JudgeError, match="Incorrect API key"):
        rate(tmp_path)


def test_a_provider_without_batches_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="no batch interface is known for 'ollama'"):
        BatchJudge("ollama/llama3", batch=tmp_path / "x.db")


def run_geval(tmp_path: Path, *options: str) -> tuple[int, str]:
    """`geval score --batch` in a process of its own, hurried."""
    code = (
        "from geval_adapters.judge import post; post.PAUSES = (0.02, 0.1); post.SETTLE = 0.05; post.LAG = 0.1;"
        "from geval_adapters.cli import main; main()"
    )
    files = ["score", "in.jsonl", "--criterion", "fluency", "-m", MODELS[0], "-o", "out.jsonl", "--readout", "samples"]
    done = subprocess.run(
        [sys.executable, "-c", code, *files, "--n", "1", "--batch", *options],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
    return done.returncode, done.stderr


def rows(tmp_path: Path) -> list[tuple[str, float]]:
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    return sorted((row["id"], row["score"]) for row in map(json.loads, lines))


def test_killed_at_every_step_it_goes_on_with_equal_rows_and_sends_nothing_twice(
    server: BatchServer, tmp_path: Path
) -> None:
    server.answer = lambda body: completion(f"Rating: {number_in(body) % 3 + 1}")
    given = [{"id": str(number), "output": text} for number, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    victims: list[int] = []
    pids: list[int] = []

    def victim(number: int) -> tuple[int, bool] | None:
        if number in victims or len(victims) >= KILLS:
            return None
        pid = int(
            subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "out.jsonl"], capture_output=True, text=True
            ).stdout.split()[0]
        )
        if pids.count(pid):
            return None
        step = server.requests
        if (step * 7) % 3 == 0:
            return None
        victims.append(number)
        pids.append(pid)
        return pid, len(victims) % 2 == 0

    server.victim = victim
    codes = []
    for _ in range(40):
        codes.append(run_geval(tmp_path, "--wait")[0])
        if codes[-1] == 0:
            break
    assert codes[-1] == 0
    assert codes.count(-signal.SIGKILL) == len(victims)
    assert rows(tmp_path) == sorted((str(number), number % 3 + 1.0) for number in range(len(TEXTS)))
    in_batches = Counter(number_in(body) for body in server.asked)
    assert max(in_batches.values()) == 1, "no request is in two batches"


def test_the_command_says_what_is_under_way_and_how_to_come_back(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, geval: Any
) -> None:
    server.answer, server.instant = rate_by_number, False
    given = [{"id": str(number), "output": text} for number, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    command = ["score", "in.jsonl", "--criterion", "fluency", "--criterion", "coherence", "-m", MODELS[0], "--n", "1",
               "--readout", "samples", "--batch", "-o", "out.jsonl"]  # fmt: skip
    code, _, said = geval(*command)
    assert code == 4
    assert re.search(r"64 requests are under way in \d batches, 0 of them done", said)
    code, shown, _ = geval("batches", "out.batches.db")
    assert code == 4
    assert "under way" in shown
    server.finish()
    code, _, said = geval(*command)
    assert code == 0
    assert len(rows(tmp_path)) == 80
    code, shown, _ = geval("batches", "out.batches.db", "--json")
    assert code == 0
    assert [batch["stage"] for batch in json.loads(shown)["batches"]] == ["ended"] * len(server.batches)
    assert KEY.encode() not in (tmp_path / "out.batches.db").read_bytes()


def test_batches_need_an_output(server: BatchServer, geval: Any, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"output": "A text."}\n')
    code, _, said = geval("score", "in.jsonl", "--criterion", "fluency", "-m", MODELS[0], "--batch")
    assert code == 2
    assert "--output" in said


def test_what_is_under_way_can_be_cancelled(server: BatchServer, tmp_path: Path, geval: Any) -> None:
    server.instant = False
    with pytest.raises(UnderWay):
        rate(tmp_path, wait=False)
    _, _, said = geval("batches", "run.batches.db", "--cancel")
    assert "is being cancelled" in said
    assert server.batches["batch_1"]["status"] == "cancelled"
