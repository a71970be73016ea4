"""Servers that refuse, redirect, flood and lie, with many requests under way: each item bears its own, and no more."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import os
import pickle
import threading
from collections import Counter

import pytest
from conftest import KEY, Server, Trouble, completion, refusal

from geval_adapters import GEval, JudgeError, LiteLLMJudge

MODEL = "openai/gpt-4o-mini"
FOUR = [{"Rating": 1.0}, {":": 1.0}, {" 4": 0.9, " 5": 0.1}]
ITEMS = [f"Text number {i}." for i in range(24)]


@pytest.fixture(params=[True, False], ids=["direct", "litellm"])
def direct(request) -> bool:
    return request.param


def rated(geval: GEval, texts=ITEMS) -> list:
    return list(geval.rate_many(texts))


def answer(request: dict) -> dict:
    if request.get("logprobs"):
        return completion("Rating: 4", logprobs=FOUR)
    return completion(*["Rating: 4"] * request.get("n", 1))


# --- refused parameters ----------------------------------------------------------------------------------------------


def refusing(**refused: str):
    """A handler that refuses parameters one after the other, each with its message."""

    def handler(request):
        for name, message in refused.items():
            if name in request:
                raise refusal(400, message)
        return answer(request)

    return handler


def test_parameters_refused_one_after_the_other_lose_nothing(server: Server, direct: bool):
    server.handler = refusing(
        max_tokens="Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
        temperature="Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is.",
        stop="Unsupported parameter: 'stop' is not supported with this model.",
        logprobs="You are not allowed to request logprobs from this model",
        n="Invalid 'n': integer above maximum value. Expected a value <= 1, but got 20 instead.",
    )
    ratings = rated(GEval("coherence", MODEL, concurrency=8, direct=direct, n=2))
    assert [rating.score for rating in ratings] == [4] * 24
    assert {rating.method for rating in ratings} == {"samples"}
    assert {rating.signature.parts["temperature"] for rating in ratings} == {"default"}
    good = [request for request in server.requests if not {"temperature", "stop", "logprobs", "n"} & set(request)]
    assert all(request["max_completion_tokens"] > 1000 for request in good)
    assert len(server.requests) <= len(good) + 2 * 8 + 5, "learnt once, by one of those under way"


def test_fewer_alternatives_are_still_log_probabilities(server: Server, direct: bool):
    def handler(request):
        if request.get("top_logprobs", 0) > 5:
            raise refusal(400, "Invalid value for 'top_logprobs': integer above maximum value. Expected a value <= 5.")
        return answer(request)

    server.handler = handler
    ratings = rated(GEval("coherence", MODEL, concurrency=8, direct=direct))
    assert [rating.score for rating in ratings] == [pytest.approx(4.1)] * 24
    assert Counter(request["top_logprobs"] for request in server.requests)[5] == 24


@pytest.mark.parametrize(
    "trouble",
    [
        refusal(400, "Invalid request: {'temperature': 0.0, 'logprobs': True, 'stop': None} cannot be answered"),
        refusal(400, "the text says that temperature is not supported, and logprobs are not allowed"),
        refusal(403, "Your request was flagged by moderation"),
        refusal(400, "temperature and logprobs are unsupported by the content_filter", code="content_filter"),
        refusal(404, "no such thing"),
    ],
    ids=["echo", "text", "moderation", "filter", "missing"],
)
def test_one_refused_item_changes_nothing_for_the_others(server: Server, direct: bool, trouble: Trouble):
    def handler(request):
        if "number 9." in json.dumps(request):
            raise trouble
        return answer(request)

    server.handler = handler
    ratings = rated(GEval("coherence", MODEL, concurrency=4, direct=direct))
    assert [rating.sample.output for rating in ratings if rating.error] == ["Text number 9."]
    others = [rating for rating in ratings if not rating.error]
    assert {(rating.method, rating.signature.parts["temperature"]) for rating in others} == {("logprobs", "0")}
    sent = [request for request in server.requests if "number 9." not in json.dumps(request)]
    assert all("temperature" in request and "logprobs" in request for request in sent)


def test_an_odd_reply_does_not_switch_log_probabilities_off(server: Server):
    def handler(request):
        if "number 0." in json.dumps(request):
            return completion("I'm sorry, but I cannot help with that.")
        return answer(request)

    server.handler = handler
    ratings = rated(GEval("coherence", MODEL, concurrency=1))
    assert {rating.method for rating in ratings[1:]} == {"logprobs"}
    assert ratings[0].score is None


def test_what_litellm_knows_not_to_be_taken_is_not_asked_for(server: Server, monkeypatch):
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    server.handler = lambda request: completion("Rating: 4")
    geval = GEval("coherence", "mistral/mistral-small-latest", api_base=server.base, n=1, concurrency=8)
    ratings = rated(geval)
    assert {(rating.score, rating.method) for rating in ratings} == {(4, "single")}
    assert len(server.requests) == 24
    with pytest.raises(JudgeError, match="no log-probabilities"):
        GEval("coherence", geval.judge, readout="logprobs").rate("text")


# --- odd responses ---------------------------------------------------------------------------------------------------

GOOD = completion("Rating: 4")
ODD = [
    *(GOOD | {"usage": usage} for usage in (None, [], "many", {"prompt_tokens": "3"}, {"prompt_tokens": {"a": 1}})),
    *(GOOD | {"usage": {"prompt_tokens": count, "completion_tokens": 1}} for count in (-5, 10**400, 1e300, True)),
]
BROKEN = [
    *({"choices": choices} for choices in ({}, "text", [1], [None], [{}], [{"message": 5}], {"a": 1})),
    *({"choices": [{"message": {"content": content}}]} for content in (5, {"a": 1}, True)),
    *(
        {"choices": [{"message": {"content": "Rating: 4"}, "logprobs": {"content": tokens}}]}
        for tokens in ("text", [1], [{"token": 4, "logprob": -1.0}], [{"token": "4", "logprob": "high"}])
    ),
    [1, 2],
    "text",
    None,
]


@pytest.mark.parametrize("place", range(3))
def test_whatever_a_response_holds_is_its_own_items_fault(server: Server, place: int):
    """With and without counts that can be, every third kind of oddity at a time."""
    odd, broken = ODD[place::3], BROKEN[place::3]

    def handler(request):
        number = int(request["messages"][0]["content"].split("number ")[1].split(".")[0])
        return [*odd, *broken, *[GOOD] * 24][number]

    server.handler = handler
    ratings = rated(GEval("coherence", MODEL, n=1, readout="samples", retries=0, concurrency=4, max_cost=1.0))
    assert [rating.score for rating in ratings[: len(odd)]] == [4] * len(odd)
    assert {rating.usage.cost for rating in ratings[: len(odd)]} == {None}, "unknown, and never 0"
    failed = ratings[len(odd) : len(odd) + len(broken)]
    assert all(rating.error for rating in failed)
    assert all(rating.score == 4 and rating.usage.cost for rating in ratings[len(odd) + len(broken) :])


def test_an_unknown_cost_is_charged_as_it_was_estimated(server: Server):
    server.handler = lambda request: completion("Rating: 4") | {"usage": None}
    judge = LiteLLMJudge(MODEL, max_cost=0.0005, concurrency=1)
    ratings = []
    with pytest.raises(JudgeError, match="may cost"):
        ratings.extend(GEval("coherence", judge, n=1, readout="samples").rate_many(["text"] * 500))
    assert 0 < len(server.requests) < 100


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"choices": [{"message": {"content": "Rating: ' + b"4" * 400 + b'"}}]}',
        b"\xff\xfe" * 100,
    ],
    ids=["deep", "deep-but-whole", "digits", "bytes"],
)
def test_a_body_that_is_no_answer_harms_one_item(server: Server, direct: bool, body: bytes):
    def handler(request):
        if "number 7." in json.dumps(request):
            raise Trouble(200, body)
        return completion("Rating: 4")

    server.handler = handler
    ratings = rated(GEval("coherence", MODEL, n=1, readout="samples", retries=0, direct=direct))
    assert [rating.sample.output for rating in ratings if rating.score is None] == ["Text number 7."]


def test_redirects_are_not_followed(server: Server, direct: bool):
    elsewhere = Server()
    server.redirect = elsewhere.base + "/chat/completions"
    server.handler = lambda request: (_ for _ in ()).throw(Trouble(307, b"", location=server.redirect))
    rating = GEval("coherence", MODEL, n=1, readout="samples", retries=0, direct=direct).rate("Some text.")
    elsewhere.close()
    assert "redirects" in rating.error
    assert not elsewhere.requests


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_a_flood_is_cut_off(server: Server, direct: bool, encoding: str | None):
    flood = json.dumps(completion("Rating: 4" + " " * 60_000_000)).encode()
    flood = gzip.compress(flood, 1) if encoding else flood

    def handler(request):
        if "number 3." in json.dumps(request):
            raise Trouble(200, flood, encoding=encoding)
        return completion("Rating: 4")

    server.handler = handler
    ratings = rated(GEval("coherence", MODEL, n=1, readout="samples", retries=0, direct=direct))
    assert [rating.score for rating in ratings].count(4) == 23
    assert "more than" in ratings[3].error


# --- waiting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", ["0", "-5", "nan", "-inf", "inf", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "9" * 400])
def test_an_odd_retry_after_is_no_hot_loop(server: Server, monkeypatch, told: str):
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    refused = iter(range(40))

    def handler(request):
        if next(refused, None) is not None:
            raise Trouble(429, b"{}", retry_after=told)
        return completion("Rating: 4")

    server.handler = handler
    monkeypatch.setattr("geval_adapters.judge.client.asyncio.sleep", sleep)
    rating = GEval("coherence", MODEL, n=1, readout="samples").rate("Some text.")
    assert len(server.requests) <= 41
    assert pauses[0] >= 0.2
    assert max(pauses) <= 60
    assert sum(pauses) >= 300 or rating.score == 4


def test_a_wait_longer_than_anyone_has_patience_for_is_a_failure_that_says_so(server: Server):
    def handler(request):
        raise Trouble(429, b'{"error": {"message": "slow down"}}', retry_after="86400")

    server.handler = handler
    rating = GEval("coherence", MODEL, n=1, readout="samples").rate("Some text.")
    assert "86400 s" in rating.error
    assert len(server.requests) == 1


# --- keys ------------------------------------------------------------------------------------------------------------

LOGIN, QUERY = "hunter2-password", "query-key-0123456789"


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, None), (200, b"{"), (400, b""), (401, b""), (429, b""), (500, b"")],
    ids=["success", "malformed", "400", "401", "429", "500"],
)
def test_no_key_is_told_whatever_the_server_does(server: Server, direct: bool, monkeypatch, caplog, status, body):
    """The server gives back every header and the address, as text and as base64."""
    argument = "argument-key-0123456789"
    monkeypatch.setenv("OTHER_TOKEN", "other-token-0123456789")
    secrets = [argument, LOGIN, QUERY, "other-token-0123456789"]
    secrets += [base64.b64encode(each.encode()).decode() for each in secrets]

    def handler(request):
        echo = f"{server.headers[-1]} {server.paths[-1]} {' '.join(secrets)}"
        if status == 200 and body is None:
            return completion(f"Rating: 4\nRationale: {echo}")
        raise Trouble(status, body or json.dumps({"error": {"message": echo}}).encode())

    server.handler = handler
    base = server.base.replace("http://", f"http://user:{LOGIN}@") + f"?api_key={QUERY}" * direct
    told: list[str] = []
    with caplog.at_level(logging.DEBUG):
        geval = GEval(
            "coherence", MODEL, api_base=base, api_key=argument, n=1, readout="samples", retries=0, direct=direct,
            explain=True,
        )  # fmt: skip
        monkeypatch.setattr("geval_adapters.judge.client.PATIENCE", 0.0)
        try:
            ratings = rated(geval, ITEMS[:8])
            told += [json.dumps(rating.to_dict(), default=str) + repr(rating) for rating in ratings]
            if status == 200 and body is None:
                assert {rating.score for rating in ratings} == {4}
        except JudgeError as error:
            told.append(str(error))
        told.append(repr(pickle.dumps(geval)))
    told += [record.getMessage() for record in caplog.records]
    assert told
    for secret in [*secrets, KEY]:
        assert not [text for text in told if secret in text], secret


# --- descriptors -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors as Linux shows them")
def test_no_descriptor_is_left_by_event_loops_that_have_ended(server: Server, direct: bool):
    geval = GEval("coherence", MODEL, n=1, readout="samples", direct=direct)

    async def some() -> int:
        return len([rating async for rating in geval.arate_many(ITEMS[:4])])

    for _ in range(5):
        asyncio.run(some())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        assert asyncio.run(some()) == 4
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_the_first_rating_does_not_stall_the_callers_loop(server: Server, direct: bool):
    async def longest_gap() -> float:
        gaps, loop = [0.0], asyncio.get_running_loop()

        async def tick() -> None:
            last = loop.time()
            while True:
                await asyncio.sleep(0.005)
                gaps.append(loop.time() - last)
                last = loop.time()

        ticking = asyncio.ensure_future(tick())
        assert (await GEval("coherence", MODEL, n=1, readout="samples", direct=direct).arate("text")).score == 4
        ticking.cancel()
        return max(gaps)

    assert asyncio.run(longest_gap()) < 1.0


def test_several_loops_and_threads_ask_one_judge(server: Server, direct: bool):
    judge = LiteLLMJudge(MODEL, direct=direct, concurrency=4)
    geval, ratings = GEval("coherence", judge), []
    server.handler = refusing(temperature="Unsupported parameter: 'temperature'")

    async def some() -> None:
        ratings.extend([rating async for rating in geval.arate_many(ITEMS)])

    works = [lambda: ratings.extend(geval.rate_many(ITEMS)), lambda: asyncio.run(some())] * 2
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [rating.score for rating in ratings] == [pytest.approx(4.1)] * 96
