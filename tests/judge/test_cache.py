"""Replies that were paid for once are taken from a folder by later runs, and further parameters of a request."""

from __future__ import annotations

import json
import pickle
import sqlite3
import threading
from pathlib import Path

import pytest
from conftest import KEY, Server, completion, refusal

from geval_adapters import GEval, InputError, JudgeError, LiteLLMJudge
from geval_adapters.judge import ReplyCache

MODEL = "openai/gpt-4o-mini"
TEXTS = [f"Text {place}." for place in range(12)]


def counting(server: Server) -> None:
    """Ratings that differ from reply to reply: 1, 2, 3, 4, 5, 1 …"""
    given = iter(range(10**6))

    def handler(request: dict) -> dict:
        return completion(*(f"Rating: {1 + next(given) % 5}" for _ in range(request.get("n", 1))))

    server.handler = handler


def geval(folder: Path | ReplyCache, **more: object) -> GEval:
    return GEval("coherence", MODEL, readout="samples", cache=folder, **more)


def test_a_second_run_asks_for_nothing_and_gives_the_same(server: Server, tmp_path: Path):
    counting(server)
    first = list(geval(tmp_path, n=3).rate_many(TEXTS))
    asked = len(server.requests)
    second = list(geval(tmp_path, n=3).rate_many(TEXTS))
    assert len(server.requests) == asked
    assert [each.distribution for each in second] == [each.distribution for each in first]
    assert [each.signature for each in second] == [each.signature for each in first]
    assert sum(each.usage.from_cache for each in second) == 36
    assert sum(each.usage.requests + each.usage.prompt_tokens for each in second) == 0
    assert sum(each.usage.cost for each in second) == 0
    assert {each.usage.from_cache for each in first} == {0}


def test_more_replies_than_there_are_cost_only_what_is_missing(server: Server, tmp_path: Path):
    counting(server)
    geval(tmp_path, n=3).rate("A text.")
    rating = geval(tmp_path, n=5).rate("A text.")
    assert (rating.usage.from_cache, rating.n_valid) == (3, 5)
    assert server.requests[-1]["n"] == 2
    assert rating.distribution == {1: 0.2, 2: 0.2, 3: 0.2, 4: 0.2, 5: 0.2}


def test_the_same_question_asked_twice_in_one_run_has_two_answers(server: Server, tmp_path: Path):
    counting(server)
    for _ in range(2):
        asked_before = len(server.requests)
        judge = geval(tmp_path, n=1)
        assert [judge.rate("A text.").score for _ in range(4)] == [1, 2, 3, 4]
    assert len(server.requests) == asked_before == 4


def test_a_cache_alone_gives_what_is_there_and_asks_nobody(server: Server, tmp_path: Path):
    counting(server)
    known = geval(tmp_path, n=3).rate("A text.")
    alone = pickle.loads(pickle.dumps(ReplyCache(tmp_path, only=True)))
    assert geval(alone, n=3).rate("A text.").distribution == known.distribution
    for text, n, there in (("A text.", 5, "3 of 5"), ("Another.", 1, "none")):
        with pytest.raises(JudgeError, match=rf"replies\.sqlite: {there} of the replies to this question are kept"):
            geval(ReplyCache(tmp_path, only=True), n=n).rate(text)
    assert len(server.requests) == 1


def test_what_went_wrong_is_asked_again(server: Server, tmp_path: Path):
    def handler(request):
        raise refusal(400, "no")

    server.handler = handler
    assert geval(tmp_path, n=1).rate("A text.").score is None
    counting(server)
    assert geval(tmp_path, n=1).rate("A text.").score == 1


@pytest.mark.parametrize(
    "other",
    [
        {"temperature": 0.5},
        {"form": "score_only"},
        {"options": {"top_p": 0.5}},
        {"api_base": "there"},
        {"explain": True},
    ],
)
def test_another_request_is_another_one(server: Server, tmp_path: Path, other: dict):
    counting(server)
    geval(tmp_path, n=1).rate("A text.")
    if "api_base" in other:
        other = {"api_base": server.base + "/"}
    assert geval(tmp_path, n=1, **other).rate("A text.").usage.from_cache == 0


def test_the_file_is_json_without_a_key_and_many_may_use_it_at_once(server: Server, tmp_path: Path):
    counting(server)
    judge = pickle.loads(pickle.dumps(LiteLLMJudge(MODEL, cache=tmp_path)))
    ways = [geval(tmp_path, n=2), GEval("coherence", judge, readout="samples", n=2)]
    threads = [threading.Thread(target=lambda way=way: list(way.rate_many(TEXTS))) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    (path,) = tmp_path.glob("*.sqlite")
    rows = sqlite3.connect(path).execute("SELECT answer FROM replies").fetchall()
    assert len(rows) == 24
    assert all(json.loads(answer)["reply"]["text"].startswith("Rating: ") for (answer,) in rows)
    assert KEY.encode() not in b"".join(each.read_bytes() for each in tmp_path.iterdir() if each.is_file())


def test_a_file_that_is_no_cache_is_named(server: Server, tmp_path: Path):
    (tmp_path / "replies.sqlite").write_text("no database, but long enough to be taken for one" * 30)
    with pytest.raises(InputError, match=r"replies\.sqlite: is no cache of replies"):
        geval(tmp_path)
    with pytest.raises(InputError, match="no cache can be written there"):
        geval(tmp_path / "replies.sqlite" / "below")


def test_options_go_with_each_request_and_into_the_signature(server: Server):
    options = {"reasoning_effort": "low", "extra_body": {"top_k": 5}}
    rating = GEval("coherence", MODEL, options=options).rate("A text.")
    assert server.requests[0]["reasoning_effort"] == "low"
    assert server.requests[0]["top_k"] == 5
    assert json.loads(rating.signature.parts["options"]) == {"reasoning_effort": "low", "top_k": 5}
    assert "options" not in GEval("coherence", MODEL).rate("A text.").signature.parts
    server.requests.clear()
    GEval("coherence", MODEL, direct=False, options={"top_p": 0.5}).rate("A text.")
    assert server.requests[0]["top_p"] == 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": 1}, "'temperature' is no option of a judge: use --temperature"),
        ({"extra_body": {"messages": []}}, "'messages' is no option of a judge"),
        ({"extra_headers": {"x-key": KEY}}, "'extra_headers' is no option of a judge"),
        ({"seed": object()}, "must be JSON"),
    ],
)
def test_what_is_no_option_is_refused(options: dict, said: str):
    with pytest.raises(InputError, match=said) as error:
        LiteLLMJudge(MODEL, options=options)
    assert KEY not in str(error.value)


def test_the_command_line_takes_both(server: Server, geval, tmp_path: Path):
    Path("in.jsonl").write_text('{"output": "A text."}\n')
    arguments = ("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--n", 1, "--readout", "samples")
    more = ("--option", "reasoning_effort=low", "--option", "top_p=0.5", "--cache", "kept")
    geval(*arguments, *more)
    assert (server.requests[0]["reasoning_effort"], server.requests[0]["top_p"]) == ("low", 0.5)
    code, _, err = geval(*arguments, *more)
    assert code == 0
    assert len(server.requests) == 1
    assert "coherence: 1 replies came from the cache, for nothing" in err
    code, _, err = geval("audit", "in.jsonl", "-c", "coherence", "-m", MODEL, "--cache", "kept")
    assert code == 2
    assert "--cache: an audit asks the same twice on purpose" in err
