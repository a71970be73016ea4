"""Ratings on Ray Data, on a Ray of two CPUs that is started once for all tests here."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import KEY, Server, completion, refusal
from hypothesis import given
from hypothesis import strategies as st

from geval_adapters import Comparer, GEval, JudgeError, LiteLLMJudge, Sample, read_samples
from geval_adapters.errors import StopError
from ray_geval import RANKING, RATING, rank_dataset, rate_dataset
from ray_geval.dataset import _cut
from ray_geval.engine import _DocumentRanker, _packed, _unpacked

pytestmark = pytest.mark.heavy  # each start of a cluster takes half a minute

MODEL = "openai/gpt-4o-mini"


def scripted(request: dict) -> dict:
    """A rating, or a verdict, that depends on the texts alone."""
    text = request["messages"][0]["content"]
    if "naughty" in text:
        refused = "I'm sorry, I can't rate that."
        return completion(refused, logprobs=[{refused: 1.0}])
    drawn = int(hashlib.md5(text.encode()).hexdigest(), 16)
    p = 0.05 + drawn % 90 / 100
    if "Rating:" not in text:
        return completion("A", logprobs=[{"A": p, "B": 1 - p}])
    low = drawn % 4 + 1
    return completion(f"Rating: {low}", logprobs=[{"Rating": 1.0}, {":": 1.0}, {f" {low}": p, f" {low + 1}": 1 - p}])


def refused(request: dict) -> dict:
    raise refusal(401, f"Incorrect API key provided: {KEY}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Where the workers of the one Ray find OpenAI."""
    started = Server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", started.base)
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # else each worker compiles Ray anew, for seconds
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        patch.setenv("RAY_BACKEND_LOG_LEVEL", "fatal")
        import ray.data

        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        # What pytest keeps of its log would hold on to the workers of an execution that failed.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        yield started
        ray.shutdown()
    started.close()


@pytest.fixture(autouse=True)
def _fresh(server: Server) -> None:
    server.handler = scripted
    server.requests.clear()


def row(index: int) -> dict[str, Any]:
    return {"id": f"i{index}", "source": f"Article {index // 7}.", "output": f"Summary {index}.", "mine": index}


def as_json(table: pa.Table) -> list[dict[str, Any]]:
    from ray_geval.schema import to_row

    return [to_row(stored) for stored in table.select(RATING.names).to_pylist()]


def workers(server: Server) -> list[int]:
    """The processes of this test's Ray that rate."""
    mine = server.base.encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"_Rater" in (process / "cmdline").read_bytes() and mine in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_rows_are_those_of_one_process_though_workers_are_killed(server: Server) -> None:
    import ray.data

    killed: list[int] = []

    def handler(request: dict) -> dict:
        if len(server.requests) > 60 and not killed:
            killed.extend(workers(server))  # the one that waits for this reply among them
            for process in killed:
                os.kill(process, signal.SIGKILL)
        return scripted(request)

    server.handler = handler
    rows = [row(index) for index in range(400)]
    rows[3]["output"] = None
    rows[5]["output"] = "naughty"
    geval = GEval("summeval/coherence", MODEL)
    rated = rate_dataset(ray.data.from_items(rows), geval, concurrency=2, batch_size=25)
    tables = list(rated.iter_batches(batch_size=None, batch_format="pyarrow"))
    assert killed
    assert len(server.requests) > 399  # what the dead had asked is asked again
    for table in tables:
        assert [table.schema.field(name) for name in RATING.names] == list(RATING)
    table = pa.concat_tables(tables)
    assert table["mine"].to_pylist() == list(range(400))
    assert table.column_names == ["source", "mine", *RATING.names]
    found = as_json(table)
    missing = found.pop(3)
    assert (missing["id"], missing["score"], missing["error"].partition(" (")[0]) == ("i3", None, "no output")
    assert found[4]["score"] is None and "the judge refused" in found[4]["error"]
    samples = [Sample(each["output"], source=each["source"], id=each["id"]) for each in rows if each["output"]]
    alone = [rating.to_dict() for rating in geval.rate_many(samples)]
    assert found == alone


def test_the_command_line_stops_resumes_and_comes_to_the_same_numbers(server: Server, geval) -> None:
    rows = [row(index) | {"scores": {"coherence": 3}} for index in range(120)]
    Path("in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    arguments = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL)
    on_ray = (*arguments, "--engine", "ray", "-o", "out")

    server.handler = refused
    code, _, err = geval(*on_ray)
    assert (code, err) == (2, f"error: {MODEL}: Incorrect API key provided: [key] (is OPENAI_API_KEY right?)\n")
    server.handler = scripted
    code, _, err = geval(*on_ray, "--max-requests", 100)
    assert code == 1
    assert err.startswith("stopped: of the worker's part of the budget, 100 requests were sent")
    assert len(list(read_samples("out"))) == 100

    server.requests.clear()
    code, out, err = geval(*on_ray)
    assert (code, err) == (0, "100 of 120 had been rated before\n")
    assert len(server.requests) == 20
    assert out == geval(*arguments, "-o", "out.jsonl")[1]  # summary and signature
    alone = sorted(map(json.loads, Path("out.jsonl").read_text().splitlines()), key=lambda each: each["id"])
    found = sorted(as_json(pa.parquet.read_table("out")), key=lambda each: each["id"])
    assert found == alone

    server.requests.clear()
    code, _, err = geval(*on_ray, "--n", 2)
    assert code == 2
    assert "holds ratings that this run's cannot stand beside: n is 1 there, 2 here" in err
    assert geval(*on_ray)[0] == 0
    assert not server.requests


KILLED = """
import os, signal, sys
from geval_adapters import cli
from ray_geval.folder import RatingsFolder

class Mortal(RatingsFolder):
    ROWS = 10
    def _flush(self):
        super()._flush()
        if len(list(self.path.glob("part-*.parquet"))) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

import ray_geval.engine
ray_geval.engine.RatingsFolder = Mortal
sys.argv = ["geval", *sys.argv[1:]]
cli.main()
"""


def test_a_kill_after_part_of_the_folder_was_written_loses_and_doubles_nothing(server: Server, geval) -> None:
    Path("in.jsonl").write_text("".join(json.dumps(row(index)) + "\n" for index in range(60)))
    arguments = ["score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--engine", "ray", "-o", "out"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2000:]
    written = list(read_samples("out"))
    assert len(written) == 30

    server.requests.clear()
    code, _, err = geval(*arguments)
    assert (code, err) == (0, "30 of 60 had been rated before\n")
    assert len(server.requests) == 30
    assert sorted(each.id for each in read_samples("out")) == sorted(f"i{index}" for index in range(60))

    Path("out/part-000099.parquet").write_bytes(Path("out/part-000001.parquet").read_bytes())
    before = {file.name: file.read_bytes() for file in Path("out").glob("*.parquet")}
    code, _, err = geval(*arguments)
    assert code == 2
    assert re.search(r"part-000099.parquet: row 1: sample 'i\d+' has a rating by 'coherence' already", err)
    assert before == {file.name: file.read_bytes() for file in Path("out").glob("*.parquet")}
    assert len(server.requests) == 30


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address", "127.0.0.1:1"], "--address is that of a Ray cluster: it needs --engine ray"),
        (["--engine", "ray", "-o", "in.jsonl"], "in.jsonl: is a file; with --engine ray, --output is a folder"),
        (["--engine", "ray", "-o", "other"], "part-000000.parquet: is no file of ratings"),
        (["--engine", "ray", "-o", "other", "--no-resume"], "other: holds ratings already"),
    ],
)
def test_bad_usage_is_one_line(server: Server, geval, arguments: list[str], said: str) -> None:
    Path("in.jsonl").write_text(json.dumps(row(0)) + "\n")
    Path("other").mkdir()
    Path("other/part-000000.parquet").write_bytes(b"PAR1 and no more")
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, *arguments)
    assert code == 2
    assert said in err and err.count("\n") == 1
    assert not server.requests


def test_documents_are_ranked_as_in_one_process(server: Server) -> None:
    import ray.data

    rows = [row(index) for index in (0, 7, 14, 1, 8, 15, 2, 9, 16)]
    comparer = Comparer("coherence", MODEL)
    ranked = rank_dataset(ray.data.from_items(rows), comparer, concurrency=1, budget=4).take_all()
    alone = []
    for document in range(3):
        samples = [Sample(each["output"], source=each["source"], id=each["id"]) for each in rows[document::3]]
        alone += comparer.rank(samples, budget=4).rows(comparer.criterion)
    assert len(ranked) == 9
    assert sorted(({name: each[name] for name in RANKING.names} for each in ranked), key=lambda each: each["id"]) == (
        sorted(alone, key=lambda each: each["id"])
    )
    assert [each["rank"] for each in ranked] == [1, 2, 3] * 3
    assert all(each["output"] == f"Summary {each['mine']}." and each["id"] == f"i{each['mine']}" for each in ranked)


def test_the_command_line_ranks_as_without_ray_and_goes_on(server: Server, geval) -> None:
    rows = [row(index) | {"scores": {"coherence": index % 5}} for index in range(28)]
    Path("in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    arguments = ("rank", "in.jsonl", "-c", "coherence", "-m", MODEL, "--select", "active", "--budget", 12, "--json")
    assert geval(*arguments, "-o", "ray.jsonl", "--max-requests", 20)[0] == 1

    def log(path: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in Path(path).read_text().splitlines()]
        return sorted(found, key=lambda each: (each["first"], each["second"]))

    assert len(log("ray.verdicts.jsonl")) == len(server.requests) == 20
    code, out, err = geval(*arguments, "-o", "ray.jsonl", "--engine", "ray")
    assert (code, err, len(server.requests)) == (0, "", 4 * 12)
    assert (code, out) == geval(*arguments, "-o", "here.jsonl")[:2]
    assert Path("ray.jsonl").read_text() == Path("here.jsonl").read_text()
    assert log("ray.verdicts.jsonl") == log("here.verdicts.jsonl")

    server.requests.clear()
    assert geval(*arguments, "-o", "ray.jsonl")[:2] == (0, out)  # what Ray has done is done
    assert not server.requests


def test_a_document_that_a_worker_cannot_finish_gives_the_verdicts_that_were_paid_for(server: Server) -> None:
    samples = [Sample(f"Summary {index}.", doc_id="d", id=str(index)) for index in range(4)]
    worker = _DocumentRanker(Comparer("coherence", MODEL, max_requests=3, api_base=server.base), 1, {})
    ((name, document, verdicts, error),) = _unpacked(worker(_packed(("d", samples, {}))))
    assert (name, document) == ("d", None)
    assert [verdict.error for verdict in verdicts] == [None] * 3 == [None] * len(server.requests)
    assert isinstance(error, StopError) and str(error).startswith("3 requests were sent")


def test_the_example_of_the_docs_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    (snippet,) = (block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "import ray" in block)
    exec(snippet.replace("local/smollm2", MODEL), {})
    assert [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()] == ["None", "None"]
    assert len(server.requests) == 2


@given(st.lists(st.sampled_from("aabcd") | st.none(), min_size=1), st.integers(1, 8))
def test_a_batch_ends_where_a_source_does(sources: list[str | None], size: int) -> None:
    table = pa.table({"source": pa.array(sources, pa.string()), "place": list(range(len(sources)))})
    batches = [pa.ipc.open_stream(each["batch"][0].as_buffer()).read_all() for each in _cut(table, size)]
    assert pa.concat_tables(batches) == table
    assert all(batch.num_rows >= size for batch in batches[:-1])
    for one, other in itertools.pairwise(batches):
        last = one["source"].to_pylist()
        if last[-1] is not None and last[-1] == other["source"][0].as_py():
            assert len(last) == 2 * size and set(last[size - 1 :]) == {last[-1]}  # longer than a batch


def test_a_pickled_judge_has_no_key_and_asks_for_the_one_that_is_there(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-explicit-9876543210"
    geval = GEval("coherence", MODEL, api_base=server.base, api_key=secret)
    alone = geval.rate("Some text.")
    pickled = pickle.dumps(geval)
    assert secret.encode() not in pickled and KEY.encode() not in pickled
    assert pickle.loads(pickled).rate("Some text.").to_dict() == alone.to_dict()
    assert [headers["Authorization"] for headers in server.headers[-2:]] == [f"Bearer {secret}", f"Bearer {KEY}"]
    for name in ("OPENAI_API_BASE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(JudgeError, match="set OPENAI_API_KEY"):
        pickle.loads(pickle.dumps(GEval("coherence", MODEL, api_key=secret))).rate("Some text.")


def test_a_pickled_router_has_no_keys_either(tmp_path: Path) -> None:
    keyed, named = {"api_key": "sk-explicit-9876543210"}, {"api_key": "os.environ/AZURE_API_KEY"}
    models = [{"model_name": "judge", "litellm_params": {"model": MODEL, "rpm": 60} | each} for each in (keyed, named)]
    (tmp_path / "router.json").write_text(json.dumps({"model_list": models, "router_settings": {"num_retries": 1}}))
    judge = LiteLLMJudge(router=tmp_path / "router.json")
    pickled = pickle.dumps(judge)
    assert b"sk-explicit" not in pickled
    assert b"os.environ/AZURE_API_KEY" in pickled
    assert pickle.loads(pickled).name == judge.name
