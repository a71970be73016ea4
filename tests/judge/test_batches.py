"""Asking in batches: the same rows as without, nothing sent twice, nothing lost, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, Refused
from conftest import KEY, completion

from geval_adapters import BusyError, GEval, InputError, JudgeError
from geval_adapters.errors import UnderWay
from geval_adapters.judge import post
from geval_adapters.judge.batch_apis import batch_api
from geval_adapters.judge.batches import BatchJudge
from geval_adapters.judge.ledger import Ledger

MODELS = ("openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5")
KILLS = int(os.environ.get("GEVAL_TEST_KILLS", "4"))
TEXTS = [f"Text number {number}." for number in range(40)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BatchServer:
    started = BatchServer()
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_BASE", started.base if name == "OPENAI" else started.base.removesuffix("/v1"))
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(post, "PAUSES", (0.02, 0.1))
    monkeypatch.setattr(post, "SETTLE", 0.05)
    monkeypatch.setattr(post, "LAG", 0.1)
    yield started
    started.close()


def number_in(body: dict[str, Any]) -> int:
    """Which of TEXTS a request is about."""
    content = (
        body["messages"][-1]["content"] if body["messages"][-1]["role"] == "user" else body["messages"][0]["content"]
    )
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    return int(text.split("Text number ")[1].split(".")[0])


def rate_by_number(body: dict[str, Any]) -> dict[str, Any]:
    """1 to 5, by the text's number, so that a mix-up shows."""
    return completion(*[f"Rating: {number_in(body) % 5 + 1}"] * body.get("n", 1))


def rate(tmp_path: Path, texts: list[str] = TEXTS, model: str = MODELS[0], **options: Any) -> list[Any]:
    options = {"readout": "samples", "n": 2, **options}
    asking = {name: options.pop(name) for name in ("wait", "retries") if name in options}
    judge = BatchJudge(model, batch=tmp_path / "run.batches.db", **asking)
    return list(GEval("fluency", judge, scale="1-5", **options).rate_many(texts))


def assert_right(ratings: list[Any]) -> None:
    assert [rating.sample.output for rating in ratings] == TEXTS
    assert [rating.score for rating in ratings] == [number % 5 + 1 for number in range(len(TEXTS))]


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


def test_what_was_not_taken_at_first_is_not_sent_again_by_the_next_process(server: BatchServer, tmp_path: Path) -> None:
    server.answer, server.instant = rate_by_number, False
    refused: list[str] = []

    def fault(number: int, method: str, path: str) -> tuple[int, str] | None:
        return refused.append(path) or (503, "busy") if path.endswith("/files") and not refused else None

    server.fault = fault
    for _ in range(2):
        with pytest.raises(UnderWay, match="32 requests"):
            rate(tmp_path, wait=False)
    assert len(server.asked) == 32


def test_the_same_judge_asked_again_after_it_did_not_wait_goes_on(server: BatchServer, tmp_path: Path) -> None:
    server.answer, server.instant = rate_by_number, False
    judge = BatchJudge(MODELS[0], batch=tmp_path / "run.db", wait=False)
    geval = GEval("fluency", judge, scale="1-5", readout="samples", n=1)
    for _ in range(2):
        with pytest.raises(UnderWay):
            list(geval.rate_many(TEXTS))
    server.finish()
    assert_right(list(geval.rate_many(TEXTS)))
    assert len(server.asked) + len(server.ordinary) == 40


def test_one_judge_is_asked_from_several_event_loops(server: BatchServer, tmp_path: Path) -> None:
    server.answer = rate_by_number
    geval = GEval("fluency", BatchJudge(MODELS[0], batch=tmp_path / "run.db"), scale="1-5", readout="samples", n=1)
    rated: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        async def all_of_them() -> list[Any]:
            return [rating async for rating in geval.arate_many(TEXTS)]

        rated[number] = asyncio.run(asyncio.wait_for(all_of_them(), 30))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rated) == 3
    for ratings in rated.values():
        assert_right(ratings)
    assert len(server.asked) + len(server.ordinary) == 120, "three questions are three draws"


def test_one_model_s_end_leaves_the_other_s_answers(server: BatchServer, tmp_path: Path) -> None:
    server.answer, server.instant = rate_by_number, False
    other = "openai/gpt-4o"
    for model in (MODELS[0], other):
        with pytest.raises(UnderWay, match="32 requests"):
            rate(tmp_path, model=model, wait=False, n=1)
    server.finish()
    assert_right(rate(tmp_path, wait=False, n=1))
    BatchJudge(MODELS[0], batch=tmp_path / "run.batches.db").finish()
    assert_right(rate(tmp_path, model=other, wait=False, n=1))
    assert len(server.asked) + len(server.ordinary) == 80


def test_a_batch_that_was_refused_as_a_whole_is_asked_again_by_the_next_run(
    server: BatchServer, tmp_path: Path
) -> None:
    server.answer, server.instant = rate_by_number, False
    with pytest.raises(UnderWay):
        rate(tmp_path, wait=False)
    error = {"code": "billing_hard_limit_reached", "message": "Billing hard limit has been reached."}
    server.batches["batch_1"] |= {"done": True, "status": "failed", "errors": {"object": "list", "data": [error]}}
    server.instant = True
    ratings = rate(tmp_path, wait=False)
    assert {rating.error for rating in ratings[8:]} == {"Billing hard limit has been reached."}
    assert_right(rate(tmp_path))


def test_a_key_that_a_server_echoes_is_not_in_the_ledger(server: BatchServer, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if number_in(body) == 20:
            raise Refused(400, f"odd: {KEY}")
        return completion(f"Rating: 4, said {KEY}")

    server.answer = answer
    assert rate(tmp_path, n=1)[20].error == "odd: [key]"
    assert KEY.encode() not in (tmp_path / "run.batches.db").read_bytes()


def test_a_file_of_another_kind_is_refused_and_stays_as_it_is(tmp_path: Path, geval: Any) -> None:
    text, empty, other = (tmp_path / name for name in ("text.db", "empty.db", "other.db"))
    text.write_text("nothing of the kind")
    empty.touch()
    with sqlite3.connect(other) as data:
        data.execute("CREATE TABLE replies (a)")
    for file in (text, empty, other):
        before = file.read_bytes()
        code, _, said = geval("batches", str(file))
        assert code == 2
        assert str(file) in said.replace("\n", "")
        assert file.read_bytes() == before


def test_a_spoilt_ledger_is_said(server: BatchServer, tmp_path: Path) -> None:
    rate(tmp_path)
    file = tmp_path / "run.batches.db"
    file.write_bytes(file.read_bytes()[:4096] + os.urandom(8192))
    with pytest.raises(InputError, match=r"run\.batches\.db: cannot be used"):
        rate(tmp_path)


def test_two_processes_do_not_work_with_one_ledger(server: BatchServer, tmp_path: Path) -> None:
    code = (
        f"import sys; from geval_adapters.judge.ledger import Ledger\nwith Ledger({str(tmp_path / 'run.batches.db')!r})"
        ".at_work(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline()
        with pytest.raises(BusyError, match="another process"):
            rate(tmp_path)
        holder.communicate()
    assert len(rate(tmp_path)) == 40


@pytest.mark.parametrize("provider", ["hosted_vllm", "litellm_proxy"])
def test_a_server_s_batches_go_to_that_server_and_not_to_openai(
    server: BatchServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    elsewhere = BatchServer()
    monkeypatch.setenv("OPENAI_API_BASE", elsewhere.base)
    with pytest.raises(JudgeError, match=f"set {provider.upper()}_API_BASE"):
        batch_api(f"{provider}/some-model")
    monkeypatch.setenv(f"{provider.upper()}_API_BASE", server.base)
    api = batch_api(f"{provider}/some-model")
    requests = [("key-1", {"messages": [{"role": "user", "content": "Hello"}]})]

    async def send() -> None:
        reference = await api.prepare("name", requests)
        assert await api.send("name", reference, requests) == "batch_1"

    asyncio.run(send())
    assert (len(server.batches), elsewhere.requests) == (1, 0)
    elsewhere.close()


def test_a_batch_is_found_by_its_file_where_metadata_are_not_kept(server: BatchServer) -> None:
    api = batch_api(MODELS[0])
    requests = [("key-1", {"messages": [{"role": "user", "content": "Hello"}]})]
    shown = server._shown
    server._shown = lambda batch: {**shown(batch), "metadata": None, "input_file_id": "file-2"}

    async def find() -> list[str]:
        await api.prepare("one", requests)
        reference = await api.prepare("two", requests)
        await api.send("two", reference, requests)
        assert await api.find("three", "file-3", 1, 0.0, []) == []
        return await api.find("two", reference, 1, 0.0, [])

    assert asyncio.run(find()) == ["batch_1"]


def test_a_dropped_batch_is_sent_anew(server: BatchServer, tmp_path: Path, geval: Any) -> None:
    server.answer, server.instant = rate_by_number, False
    with pytest.raises(UnderWay):
        rate(tmp_path, wait=False)
    server.batches.clear()  # the provider knows nothing of it any more
    with pytest.raises(JudgeError, match="--drop 1"):
        rate(tmp_path, wait=False)
    assert geval("batches", "run.batches.db", "--drop", "1")[0] == 0
    server.instant = True
    assert_right(rate(tmp_path))
    assert Ledger(tmp_path / "run.batches.db", create=False).batches()[-1].stage == "ended"
