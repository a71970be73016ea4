"""Runs that are killed, refused, throttled and cut short: nothing is lost, nothing is twice, nothing is made up."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import KEY, Server, Trouble, completion, refusal

from geval_adapters import GEval, JudgeError, Sample, read_samples, read_text
from geval_adapters.criteria import find_criterion
from geval_adapters.errors import StopError
from geval_adapters.judge.client import LiteLLMJudge
from geval_adapters.judge.pace import Pace
from geval_adapters.judge.sampling import Sequential
from geval_adapters.messages import common_prefix
from geval_adapters.order import in_prefix_order
from geval_adapters.samples import sample_of

MODEL = "openai/gpt-4o-mini"
ONE = ("--readout", "samples", "--n", 1)


def four(share: float = 0.75) -> list[dict[str, float]]:
    return [{"Rating": 1.0}, {":": 1.0}, {" 4": share, " 5": 1 - share}]


def own_score(request: dict) -> dict:
    """A score that depends on the text alone, so that a mixed-up row would show."""
    text = request["messages"][0]["content"]
    share = 0.5 + int(text.split("number ")[1].split(".")[0]) / 1000
    return completion("Rating: 4", logprobs=four(share))


def write(path: Path | str, count: int, start: int = 0) -> Path:
    rows = [{"id": str(i), "source": f"Article {i // 5}.", "output": f"It is number {i}."} for i in range(start, count)]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Path(path)


def read(path: Path | str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def bare(rows: list[dict]) -> dict[str, dict]:
    """Rows by id, without what a run may do differently: what it cost."""
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: {key: value for key, value in row.items() if key != "usage"} for row in rows}


STARTER = """
import os, sys, json
from geval_adapters import cli
def geval(line):
    sys.argv = ["geval", *json.loads(line)]
    try:
        cli.main()
    except SystemExit as ended:
        return ended.code or 0
print("ended", geval(sys.stdin.readline()), flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os._exit(geval(line))
    print("begun", child, flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs the command line once, then again and again in processes of their own that need not import it anew."""


@pytest.mark.parametrize("verb", ["score", "rank"])
def test_a_run_that_is_killed_again_and_again_ends_with_the_undisturbed_rows(server: Server, tmp_path: Path, verb: str):
    def handler(request):
        time.sleep(0.01)
        if verb == "score":
            return own_score(request)
        return completion("Summary A", logprobs=[{"Summary": 1.0}, {" A": 0.75, " B": 0.25}])

    server.handler = handler
    data = write(tmp_path / "in.jsonl", 300 if verb == "score" else 75)  # 15 x 20 ordered pairs
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )

    def run(output: str, kill_after: int | None) -> int:
        """Run to the end, or kill it at a moment after so many requests; the exit code."""
        arguments = [verb, data, "-c", "summeval/coherence", "-m", MODEL, "-o", output, "--concurrency", 6]
        starter.stdin.write(json.dumps(list(map(str, arguments))) + "\n")
        starter.stdin.flush()
        for line in starter.stdout:
            word, _, number = line.strip().partition(" ")
            if word == "ended":
                return int(number)
            if word == "begun" and kill_after is not None:
                until = len(server.requests) + kill_after
                while len(server.requests) < until:
                    time.sleep(0.002)
                time.sleep(dice.uniform(0, 0.02))
                os.kill(int(number), signal.SIGKILL)
        raise AssertionError("the starter is gone")

    assert run("undisturbed.jsonl", None) == 0
    assert len(server.requests) == 300
    dice = random.Random(4)
    log = tmp_path / ("killed.jsonl" if verb == "score" else "killed.verdicts.jsonl")
    kills = 20 if verb == "score" else 5
    for _ in range(kills):
        assert run("killed.jsonl", dice.randint(1, 12)) == -signal.SIGKILL
        if dice.random() < 0.3 and log.exists():  # torn in the middle of a line
            log.write_bytes(log.read_bytes()[:-7])
    assert run("killed.jsonl", None) == 0
    starter.stdin.close()
    assert starter.wait(10) == 0
    assert bare(read(tmp_path / "killed.jsonl")) == bare(read(tmp_path / "undisturbed.jsonl"))
    assert len(read(log)) == 300
    assert len(server.requests) < 600 + kills * 14  # what was done was not asked for again


def test_a_second_process_on_one_output_is_refused(server: Server, geval):
    import fcntl

    write("in.jsonl", 3)
    with open("out.jsonl", "a+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", *ONE)
    assert code == 4
    assert "out.jsonl: another process is writing to it" in err
    assert server.requests == []


def test_only_what_is_missing_and_what_failed_is_asked_for(server: Server, geval):
    refused = {"number 3."}

    def handler(request):
        text = request["messages"][0]["content"]
        return completion("I cannot rate that." if any(each in text for each in refused) else "Rating: 4")

    server.handler = handler
    write("in.jsonl", 6)
    command = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", *ONE)
    assert geval(*command, "--limit", 5)[0] == 1
    assert [row["id"] for row in read("out.jsonl") if row["error"]] == ["3"]
    refused.clear()
    del server.requests[:]
    code, _, err = geval(*command)
    assert code == 0
    assert len(server.requests) == 2
    assert sorted(bare(read("out.jsonl"))) == ["0", "1", "2", "3", "4", "5"]
    assert "4 of 6 had been rated before" in err
    (summary,) = json.loads(geval(*command, "--json")[1])["criteria"]
    assert (summary["n"], summary["failed"]) == (6, 0)
    code, _, err = geval(*command, "--limit", 2)
    assert code == 0
    assert "4 rows of the output are of other samples" in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["-m", "openai/gpt-4o"], "model is openai/gpt-4o-mini there, openai/gpt-4o here"),
        (["--form", "score_only"], "form is rate_explain there, score_only here"),
        (["--n", 2], "n is 1 there, 2 here"),
        (["--temperature", 0.5], "temperature is 0 there, 0.5 or default here"),
        (["--off-grid", "floor"], "off_grid is keep there, floor here"),
        (["--scale", "1-10"], "criterion is coherence@"),
        (["--no-resume"], "out.jsonl: exists already; name another --output, or let it be resumed"),
    ],
)
def test_ratings_of_another_kind_are_not_mixed_in(server: Server, geval, change: list, said: str):
    write("in.jsonl", 2)
    command = ("score", "in.jsonl", "-c", "coherence", "-o", "out.jsonl", *ONE)
    assert geval(*command, "-m", MODEL)[0] == 0
    before, asked = Path("out.jsonl").read_bytes(), len(server.requests)
    code, _, err = geval(*command, *([] if "-m" in change else ["-m", MODEL]), *change)
    assert code == 2
    assert said in err
    assert Path("out.jsonl").read_bytes() == before
    assert len(server.requests) == asked


def test_a_text_that_changed_under_its_id_is_noticed(server: Server, geval):
    write("in.jsonl", 2)
    command = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", *ONE)
    assert geval(*command)[0] == 0
    Path("in.jsonl").write_text(Path("in.jsonl").read_text().replace("number 1", "number 7"))
    code, _, err = geval(*command)
    assert code == 2
    assert re.search(r"out.jsonl:\d: sample '1' has another text there", err)


def test_a_full_disk_is_said_and_nothing_is_torn(server: Server, geval):
    import resource

    server.handler = own_score
    write("in.jsonl", 30)
    command = ("score", "in.jsonl", "-c", "summeval/coherence", "-m", MODEL, "-o", "out.jsonl")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        code, _, err = geval(*command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert "out.jsonl: cannot be written: File too large" in err
    assert geval(*command)[0] == 0
    assert len(bare(read("out.jsonl"))) == 30


@pytest.mark.parametrize("path", ["/dev/null", ".", "nowhere/out.jsonl"])
def test_an_output_that_cannot_be_resumed_is_refused(server: Server, geval, path: str):
    write("in.jsonl", 2)
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", path, *ONE)
    assert code == 2
    assert f"{path}: " in err
    assert server.requests == []


# --- faults ----------------------------------------------------------------------------------------------------------


def test_what_goes_wrong_is_survived_and_counted(server: Server, geval):
    dice = random.Random(1)
    told: Counter[str] = Counter()

    def handler(request):
        luck = dice.random()
        for share, what, trouble in (
            (0.05, "HTTP 429", Trouble(429, b"{}", retry_after="0.05")),
            (0.08, "HTTP 500", Trouble(500, b"oh no")),
            (0.10, "malformed response", Trouble(200, b'{"choices": [{"mess')),
            (0.11, "no answer in time", Trouble(200, b"{}", hang=4)),
            (0.12, "no choices", Trouble(200, b'{"choices": []}')),
            (0.13, "connection broke", Trouble(cut=True)),
        ):
            if luck < share:
                told[what] += 1
                raise trouble
        return own_score(request)

    server.handler = handler
    write("in.jsonl", 300)
    command = ("score", "in.jsonl", "-c", "summeval/coherence", "-m", MODEL, "--timeout", 3)
    code, out, err = geval(*command, "-o", "out.jsonl", "--json")
    (summary,) = json.loads(out)["criteria"]
    assert (code, summary["n"], summary["failed"]) == (0, 300, 0)
    assert len(told) == 6
    assert json.loads(out)["faults"] == told
    for what, count in told.items():
        assert f"{count} x {what}" in err
    rows = bare(read("out.jsonl"))
    assert len(rows) == 300
    for number in range(300):
        assert rows[str(number)]["score"] == pytest.approx(4.5 - number / 1000)


def test_a_text_that_is_too_long_is_one_failure_and_not_tried_again(server: Server, geval):
    def handler(request):
        if "number 1." in request["messages"][0]["content"]:
            raise refusal(400, "This model's maximum context length is 8 tokens (max_tokens counted in)", code="x")
        return own_score(request)

    server.handler = handler
    write("in.jsonl", 3)
    code, _, err = geval("score", "in.jsonl", "-c", "summeval/coherence", "-m", MODEL)
    assert code == 1
    assert "1 not rated: This model's maximum context length is 8 tokens" in err
    assert len(server.requests) == 3
    assert all(request["max_tokens"] for request in server.requests)


@pytest.mark.parametrize(
    "content",
    [[], [{}], [{"token": "Rating"}], [{"token": None, "logprob": None, "top_logprobs": None}], "text", [7]],
)
def test_log_probabilities_that_make_no_sense_are_a_failure_with_a_reason(server: Server, content):
    reply = completion("Rating: 4", logprobs=four())
    reply["choices"][0]["logprobs"]["content"] = content
    server.handler = lambda request: reply
    rating = GEval("coherence", MODEL, readout="logprobs", retries=0).rate("Some text.")
    assert rating.score is None
    assert rating.error


def test_log_probabilities_that_end_before_the_rating_are_a_failure(server: Server):
    reply = completion("Rating: 4", logprobs=four())
    del reply["choices"][0]["logprobs"]["content"][2:]
    server.handler = lambda request: reply
    rating = GEval("coherence", MODEL).rate("Some text.")
    assert (rating.score, rating.method) == (None, "logprobs")
    assert rating.error


def test_a_run_in_which_hardly_anything_succeeds_is_stopped(server: Server, geval):
    server.handler = lambda request: completion("I cannot rate that.")
    write("in.jsonl", 200)
    command = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", *ONE)
    code, out, err = geval(*command)
    assert code == 1
    assert "stopped: 50 of the last 50 failed" in err
    assert "coherence" in out
    assert len(server.requests) < 100
    assert geval(*command, "--max-failures", 1)[0] == 1
    assert len(read("out.jsonl")) == 200


# --- pace and budget -------------------------------------------------------------------------------------------------


def test_fewer_requests_are_under_way_where_the_provider_bears_fewer(server: Server):
    """A provider that takes four at a time and refuses the rest without a hint."""
    lock, now, most = threading.Lock(), [0], [0]

    def handler(request):
        with lock:
            if now[0] >= 4:
                raise Trouble(429, b'{"error": {"message": "slow down"}}')
            now[0] += 1
        time.sleep(0.03)
        with lock:
            now[0] -= 1
            most[0] = max(most[0], now[0])
        return own_score(request)

    server.handler = handler
    judge = LiteLLMJudge(MODEL, concurrency=32, retries=0)
    ratings = list(GEval("coherence", judge).rate_many(Sample(f"It is number {i}.") for i in range(120)))
    assert all(rating.score is not None for rating in ratings)
    refused = judge.faults["HTTP 429"]
    assert 0 < refused < 120  # at full width each would be refused several times over


def test_pace_falls_with_refusals_and_slow_replies_and_rises_again():
    async def steps() -> list[float]:
        pace, limits = Pace(8), []
        for _ in range(8):
            await pace.enter(0)
        sent = time.monotonic()
        for _ in range(4):
            pace.leave_refused(sent)  # all of them were under way at once: one cut
        limits.append(pace.limit)
        for _ in range(4):
            pace.leave(sent, "short")
        limits.append(pace.limit)
        for seconds in (0.01, 5.0):
            for _ in range(32):
                await pace.enter(0)
                pace.leave(time.monotonic() - seconds, "long")
            limits.append(pace.limit)
        return limits

    cut, grown, full, slow = asyncio.run(steps())
    assert cut == 4
    assert 4 < grown < 8
    assert full == 8
    assert slow < 8


@pytest.mark.parametrize(("limits", "requests"), [({"rpm": 600}, 8), ({"tpm": 60_000}, 8)])
def test_requests_and_tokens_per_minute_are_kept(server: Server, limits: dict, requests: int):
    server.handler = own_score
    judge = LiteLLMJudge(MODEL, **limits)
    geval = GEval("coherence", judge)
    began = time.monotonic()
    assert all(rating.score for rating in geval.rate_many(Sample(f"It is number {i}.") for i in range(requests)))
    # 10 requests a second; or 1,000 tokens a second, where each turns out to take 103
    assert time.monotonic() - began > 0.09 * (requests - 1)


def test_a_budget_of_requests_stops_the_run_which_can_be_resumed(server: Server, geval):
    server.handler = own_score
    write("in.jsonl", 30)
    command = ("score", "in.jsonl", "-c", "summeval/coherence", "-m", MODEL, "-o", "out.jsonl", "--max-requests", 12)
    code, _, err = geval(*command)
    assert code == 1
    assert "stopped: 12 requests were sent, which is all that max_requests allows; what was done is kept" in err
    assert len(server.requests) == len(read("out.jsonl")) == 12  # what was under way was waited for
    assert geval(*command)[0] == 1
    assert geval(*command)[0] == 0
    assert len(server.requests) == len(bare(read("out.jsonl"))) == 30


def test_a_budget_of_dollars_is_not_overrun(server: Server):
    server.handler = own_score
    price = 60 * 0.15e-6 + 40 * 0.075e-6 + 3 * 0.6e-6  # what the server counts, at gpt-4o-mini's prices
    judge = LiteLLMJudge(MODEL, max_cost=8.5 * price)
    ratings = GEval("coherence", judge).rate_many(Sample(f"It is number {i}.") for i in range(50))
    done = []
    with pytest.raises(StopError, match="max_cost"):
        done += ratings
    assert 0 < len(server.requests) <= 8
    assert judge.budget.cost == pytest.approx(len(server.requests) * price)


def test_a_budget_of_dollars_needs_a_price():
    with pytest.raises(JudgeError, match="hosted_vllm/mine: its price is not known"):
        LiteLLMJudge("hosted_vllm/mine", max_cost=1)


# --- several deployments ---------------------------------------------------------------------------------------------


def test_a_router_falls_back_and_the_signature_says_who_answered(server: Server, geval):
    def handler(request):
        if request["model"] == "gpt-4o":
            raise refusal(500, "down")
        return own_score(request) | {"model": request["model"]}

    server.handler = handler
    deployments = [
        {"model_name": name, "litellm_params": {"model": f"openai/{model}", "api_base": server.base, "api_key": KEY}}
        for name, model in (("judge", "gpt-4o"), ("spare", "gpt-4o-mini"))
    ]
    settings = {"fallbacks": [{"judge": ["spare"]}], "num_retries": 0}
    Path("router.json").write_text(json.dumps({"model_list": deployments, "router_settings": settings}))
    write("in.jsonl", 2)
    code, out, _ = geval("score", "in.jsonl", "-c", "summeval/coherence", "--router", "router.json", "--json")
    ratings = json.loads(out)["ratings"]
    assert code == 0
    for rating in ratings:
        assert rating["signature"].startswith("model:router/judge@")
        assert "|answered:gpt-4o-mini|" in rating["signature"]
        assert rating["usage"]["cost"] == pytest.approx(60 * 0.15e-6 + 40 * 0.075e-6 + 3 * 0.6e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be a mapping of names to values, found NoneType"),
        ("model_list: [{model_name: a}]", "model_list.0.litellm_params: is missing"),
        (
            "model_list: [{model_name: a, litellm_params: {api_key: sk-1}}]",
            "model_list.0.litellm_params.model: is missing",
        ),
        ("model_list: {api_key: sk-1234567890abcdef}", "model_list: must be a list, found {}"),
        ("router_settings: {num_retries: 1}", "model_list: is missing"),
        ("{", "cannot be read as YAML"),
        ("[api_key: sk-1234567890abcdef]", "must be a mapping of names to values, found list"),
        ("model_list: [{model_name: a, litellm_params: {model: openai/x}}]", "has no model_name 'b', but a"),
    ],
)
def test_a_bad_router_file_is_one_line(geval, text: str, said: str):
    Path("router.yaml").write_text(text)
    write("in.jsonl", 1)
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", "b", "--router", "router.yaml")
    assert code == 2
    assert re.search(rf"router.yaml(:\d+)?: {re.escape(said)}", err)
    assert "sk-" not in err


# --- what is cheap ---------------------------------------------------------------------------------------------------


def shuffled_samples() -> list[Sample]:
    samples = [Sample(f"It is number {i}.", source=f"{i % 6} {'text ' * 40}") for i in range(48)]
    random.Random(0).shuffle(samples)
    return samples


def test_shuffled_samples_are_asked_about_source_by_source(server: Server):
    server.handler = own_score
    samples = shuffled_samples()
    ratings = list(GEval("summeval/coherence", MODEL, concurrency=1).rate_many(samples))
    assert sorted(rating.sample.output for rating in ratings) == sorted(sample.output for sample in samples)
    asked = [request["messages"][0]["content"] for request in server.requests]
    sources = [content.split("<article>\n")[1][0] for content in asked]
    assert len([1 for one, other in pairwise(sources) if one != other]) == 5


def test_with_many_under_way_the_first_of_a_source_is_answered_before_the_others_are_sent():
    placed = in_prefix_order(shuffled_samples(), find_criterion("summeval/coherence"), at_once=4)
    sources = [each.sample.source for each in placed]
    for source in set(sources[1:]) - {sources[0]}:
        first, second, *_ = [place for place, each in enumerate(sources) if each == source]
        assert second - first >= 4


def test_summaries_in_any_order_reach_what_a_prefix_cache_can_serve(data: Path):
    samples = list(read_samples(data / "summeval.json"))
    geval = GEval("summeval/coherence", MODEL)

    def share(samples: list[Sample]) -> float:
        placed = in_prefix_order(samples, geval.criterion)
        contents = [geval.way.prompts[0].messages(each.sample)[0]["content"] for each in placed]
        return sum(common_prefix(*pair) for pair in pairwise(contents)) / sum(map(len, contents))

    possible = share(samples)
    random.Random(0).shuffle(samples)
    assert share(samples) >= 0.98 * possible
    assert possible > 0.7


def test_marks_are_set_where_the_provider_needs_them(server: Server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_BASE", server.base)
    usage = {"input_tokens": 10, "output_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70}
    server.handler = lambda request: {
        "id": "x", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Rating: 4"}], "usage": usage,
    }  # fmt: skip
    samples = [Sample(f"Summary {i}.", source=source) for i, source in enumerate(("One.", "Two.", "One."))]
    model = "anthropic/claude-sonnet-4-5"
    ratings = list(GEval("summeval/coherence", model, n=1, readout="samples").rate_many(samples))
    contents = [request["messages"][0]["content"] for request in server.requests]
    (two,) = [content for content in contents if len(content) == 1]
    one, three = [content for content in contents if len(content) == 2]
    assert "Summary 1." in two[0]["text"]
    assert "cache_control" not in two[0]  # nothing else has its source: no mark to pay for
    assert one[0]["cache_control"] == {"type": "ephemeral"}
    assert one[0] == three[0]
    assert "cache_control" not in one[1]
    assert one[0]["text"].endswith("<summary>\n")
    (price,) = {rating.usage.cost for rating in ratings}
    assert price == pytest.approx(10 * 3e-6 + 20 * 3.75e-6 + 70 * 0.3e-6 + 3 * 15e-6)


def test_a_rating_before_its_rationale_costs_a_few_tokens(server: Server):
    GEval("coherence", MODEL, n=1, readout="samples").rate("Some text.")
    assert server.requests[-1]["max_tokens"] <= 8
    assert server.requests[-1]["stop"] == ["Rationale:"]


def test_adaptive_sampling_stops_where_replies_agree(server: Server, geval):
    dice = random.Random(0)

    def handler(request):
        clear = "number 0." in request["messages"][0]["content"]
        return completion(*[f"Rating: {4 if clear else dice.randint(1, 5)}" for _ in range(request.get("n", 1))])

    server.handler = handler
    write("in.jsonl", 2)
    command = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--readout", "samples", "--adaptive", "--json")
    _, out, _ = geval(*command)
    clear, unclear = sorted(json.loads(out)["ratings"], key=lambda row: row["id"])
    assert 3 <= clear["n_valid"] <= 8
    assert 12 <= unclear["n_valid"] <= 20
    assert "|n:3-20@0.1|" in clear["signature"]
    assert 0 < clear["std_error"] <= 0.1 * 4, "three replies that agree are no certainty"
    assert clear["signature"] == unclear["signature"]
    assert {request.get("temperature") for request in server.requests} == {1}
    (summary,) = json.loads(out)["criteria"]
    assert summary["replies_saved"] == 40 - clear["n_valid"] - unclear["n_valid"]


def test_adaptive_sampling_keeps_the_agreement_with_people_at_half_the_price(data: Path):
    """On the raw replies in the default form; the mean over ten orders in which they could have come."""
    dice = random.Random(0)
    asked = stored = 0
    for name in ("coherence", "engagingness", "groundedness", "naturalness"):
        criterion = find_criterion(f"topical_chat/{name}")
        span = criterion.scale.high - criterion.scale.low
        rule = Sequential(0.1 * span, span)
        with gzip.open(data / "responses" / f"topical_chat_gpt3.5_{name[:3]}_rate_explain.json.gz") as file:
            rows = json.load(file)
        human = [sample_of(row).human_score(criterion) for row in rows]
        replies = [
            [read_text(reply, criterion.scale, "rate_explain").score for reply in row["all_responses"]] for row in rows
        ]
        every = [mean(scores) for scores in replies]
        lost = []
        for _ in range(10):
            some = []
            for scores in replies:
                dice.shuffle(scores)
                taken = 0
                while more := rule.wanted([each for each in scores[:taken] if each is not None], taken, 20):
                    taken += more
                some.append(mean(scores[:taken]))
                asked, stored = asked + taken, stored + len(scores)
            lost.append(np.corrcoef(every, human)[0, 1] - np.corrcoef(some, human)[0, 1])
        assert abs(np.mean(lost)) < 0.01, name
    assert asked <= stored / 2


def test_adaptive_sampling_reports_an_error_that_covers(data: Path):
    """Of 20 real replies in random order, how often those asked for lie around the mean of all as the error says."""
    dice = random.Random(0)
    held = {"regularised": [], "plain": []}
    for name in ("coherence", "engagingness", "groundedness", "naturalness"):
        criterion = find_criterion(f"topical_chat/{name}")
        span = criterion.scale.high - criterion.scale.low
        rule = Sequential(0.1 * span, span)
        with gzip.open(data / "responses" / f"topical_chat_gpt3.5_{name[:3]}_rate_explain.json.gz") as file:
            rows = json.load(file)
        for row in rows[::4]:
            read = (read_text(reply, criterion.scale, "rate_explain").score for reply in row["all_responses"])
            scores = [score for score in read if score is not None]
            dice.shuffle(scores)
            taken = 0
            while more := rule.wanted(scores[:taken], taken, len(scores)):
                taken += more
            if taken < 20:
                off = abs(mean(scores[:taken]) - mean(scores))
                held["regularised"].append(off <= 1.96 * rule.std_error(scores[:taken]))
                held["plain"].append(off <= 1.96 * np.std(scores[:taken], ddof=1) / taken**0.5)
    assert np.mean(held["regularised"]) > 0.96
    assert np.mean(held["plain"]) < 0.85


def mean(scores: list[float | None]) -> float:
    return float(np.mean([score for score in scores if score is not None]))


def test_a_dry_run_says_what_the_run_then_takes(server: Server, geval):
    server.handler = own_score
    write("in.jsonl", 20)
    command = ("score", "in.jsonl", "-c", "summeval/coherence", "-m", MODEL, "--concurrency", 1)
    _, out, _ = geval(*command, "--dry-run", "--json")
    assert json.loads(out)[0]["cacheable_tokens"] == 0  # OpenAI caches nothing of prompts that short
    Path("in.jsonl").write_text(Path("in.jsonl").read_text().replace("Article", "word " * 1500 + "Article"))
    code, out, _ = geval(*command, "--dry-run", "--json")
    assert code == 0
    assert server.requests == []
    (told,) = json.loads(out)
    geval(*command)
    contents = [request["messages"][0]["content"] for request in server.requests]
    assert told["requests"] == len(contents) == 20
    assert told["readout"] == "log-probabilities"
    assert told["prompt_tokens"] == pytest.approx(sum(len(content) / 4 for content in contents), rel=0.25)
    assert 0.5 < told["cacheable_tokens"] / told["prompt_tokens"] < 1
    assert told["cost"] == pytest.approx(told["prompt_tokens"] * 0.15e-6 + 20 * 8 * 0.6e-6)
    assert told["cost_cached"] < told["cost"]
    _, out, _ = geval(*command[:4], "-m", "anthropic/claude-sonnet-4-5", "--dry-run", "--json")
    (told,) = json.loads(out)
    assert (told["requests"], told["readout"]) == (20 * 20, "20 samples")


def test_a_dry_run_of_a_model_that_thinks_states_no_ceiling_and_the_samples_that_it_will_take(server: Server, geval):
    write("in.jsonl", 20)
    command = ("score", "in.jsonl", "-c", "summeval/coherence", "-m", "openai/gpt-5-mini", "--dry-run")
    _, out, _ = geval(*command, "--json")
    (told,) = json.loads(out)
    assert (told["readout"], told["thinks"]) == ("20 samples", True)
    _, out, _ = geval(*command)
    assert out.count("+ thinking") == 3
    assert server.requests == []
