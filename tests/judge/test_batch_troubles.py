"""Asking in batches where something is odd: several loops and processes, a spoilt ledger, servers of many kinds."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import batch_server
import pytest
from batch_server import MODELS, TEXTS, BatchServer, Refused, assert_right, number_in, rate, rate_by_number
from conftest import KEY, completion

from geval_adapters import BusyError, GEval, InputError, JudgeError
from geval_adapters.errors import UnderWay
from geval_adapters.judge.batch_apis import batch_api
from geval_adapters.judge.batches import BatchJudge
from geval_adapters.judge.ledger import Ledger

server = batch_server.server


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


def test_the_first_few_cost_what_ordinary_requests_cost(server: BatchServer, tmp_path: Path) -> None:
    server.answer = rate_by_number
    costs = [rating.usage.cost for rating in rate(tmp_path, n=1)]
    assert all(first == pytest.approx(2 * costs[-1]) for first in costs[:8])
    assert costs[8:] == [costs[-1]] * 32


def test_a_dry_run_and_a_refused_model_leave_no_file(server: BatchServer, tmp_path: Path, geval: Any) -> None:
    (tmp_path / "in.jsonl").write_text('{"output": "A text."}\n')
    command = ["score", "in.jsonl", "--criterion", "fluency", "--batch"]
    assert geval(*command, "-m", MODELS[0], "--dry-run")[0] == 0
    code, _, said = geval(*command, "-m", "local/smollm2", "-o", "out.jsonl")
    assert code == 2
    assert "no batch interface" in said
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".db"] == []
