"""A judge over real HTTP, through LiteLLM and past it: the same ratings either way, whatever the provider does."""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
import time

import pytest
from conftest import KEY, Server, Trouble, completion, refusal

from geval_adapters import GEval, JudgeError, LiteLLMJudge, Sample

MODEL = "openai/gpt-4o-mini"
FOUR_OR_FIVE = [{"Rating": 1.0}, {":": 1.0}, {" 4": 0.7, " 5": 0.2, " yes": 0.1}]


@pytest.fixture(params=[True, False], ids=["direct", "litellm"])
def direct(request) -> bool:
    return request.param


def flaky(*troubles: Exception, then=lambda request: completion(*["Rating: 4"] * request.get("n", 1))):
    """A handler that raises the troubles one after the other, then answers."""
    left, lock = list(troubles), threading.Lock()

    def handler(request):
        with lock:
            trouble = left.pop(0) if left else None
        if trouble:
            raise trouble
        return then(request)

    return handler


def test_log_probabilities_are_asked_for_and_honoured(server: Server, direct: bool):
    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR_OR_FIVE)
    rating = GEval("coherence", MODEL, direct=direct).rate("Some text.")
    assert rating.score == pytest.approx((0.7 * 4 + 0.2 * 5) / 0.9)
    assert rating.distribution == pytest.approx({4: 0.7 / 0.9, 5: 0.2 / 0.9})
    assert (rating.method, rating.coverage) == ("logprobs", pytest.approx(0.9))
    (request,) = server.requests
    assert request["logprobs"] is True
    assert request["top_logprobs"] == 20
    assert request["temperature"] == 0
    assert request["model"] == "gpt-4o-mini"
    assert rating.usage.prompt_tokens == 100
    assert rating.usage.cached_tokens == 40
    assert rating.usage.cost == pytest.approx((60 * 0.15 + 40 * 0.075 + 3 * 0.6) / 1e6)


def test_both_routes_make_the_same_rating(server: Server):
    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR_OR_FIVE)
    one, other = (GEval("coherence", MODEL, direct=direct).rate("Some text.") for direct in (True, False))
    assert one == other
    first, second = server.requests
    assert first == second


def test_without_log_probabilities_twenty_samples_come_in_one_request(server: Server, direct: bool, caplog):
    server.handler = lambda request: completion(
        *(["Rating: 4"] * 15 + ["Rating: 1"] * 4 + ["?"])[: request.get("n", 1)]
    )
    with caplog.at_level(logging.WARNING, "geval_adapters"):
        geval = GEval("coherence", MODEL, direct=direct)
        rating = geval.rate("Some text.")
        geval.rate("Another text.")
    assert [request.get("n", 1) for request in server.requests] == [1, 20, 20]
    assert server.requests[1]["temperature"] == 1
    assert rating.method == "samples"
    assert rating.score == pytest.approx((15 * 4 + 4) / 19)
    assert (rating.n_valid, rating.n_failed) == (19, 1)
    assert rating.coverage == pytest.approx(0.95)
    assert rating.std_error == pytest.approx(1.2566 / 19**0.5, abs=1e-3)
    assert len([record for record in caplog.records if "log-probabilities" in record.message]) == 1
    assert rating.signature.parts["readout"] == "samples"
    assert rating.signature.parts["n"] == "20"


def test_a_server_that_ignores_n_gets_twenty_requests(server: Server, direct: bool):
    server.handler = lambda request: completion("Rating: 3")
    rating = GEval("coherence", MODEL, readout="samples", direct=direct).rate("Some text.")
    assert rating.n_valid == 20
    assert len(server.requests) == 20


def test_a_server_that_refuses_n_gets_twenty_requests_after_the_refusal(server: Server, direct: bool):
    def handler(request):
        if request.get("n", 1) > 1:
            raise refusal(400, "Unsupported parameter: 'n' must be 1")
        return completion("Rating: 3")

    server.handler = handler
    assert GEval("coherence", MODEL, readout="samples", direct=direct).rate("Some text.").n_valid == 20
    assert len(server.requests) == 21


def test_a_server_that_refuses_log_probabilities_is_sampled(server: Server, direct: bool):
    def handler(request):
        if "logprobs" in request:
            raise refusal(400, "logprobs is not supported with this model")
        return completion(*["Rating: 2"] * request.get("n", 1))

    server.handler = handler
    rating = GEval("coherence", MODEL, direct=direct).rate("Some text.")
    assert (rating.score, rating.method) == (2, "samples")


def test_demanded_log_probabilities_that_do_not_come_are_a_failure_not_a_fallback(server: Server):
    rating = GEval("coherence", MODEL, readout="logprobs").rate("Some text.")
    assert rating.score is None
    assert "no log-probabilities" in rating.error


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(429, b'{"error": {"message": "slow down"}}', retry_after="0.2"),
        Trouble(500, b"oops"),
        Trouble(503, b'{"error": {"message": "busy"}}'),
        Trouble(200, b'{"choices": [tru'),
        Trouble(200, b'{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'),
        Trouble(200, b"{}", hang=2.5),
    ],
    ids=["429", "500", "503", "malformed", "no choices", "hung"],
)
def test_what_passes_is_waited_for(server: Server, direct: bool, trouble: Trouble):
    server.handler = flaky(trouble)
    rating = GEval("coherence", MODEL, n=1, readout="samples", timeout=1.5, direct=direct).rate("Some text.")
    assert rating.score == 4
    assert len(server.requests) == 2


def test_retry_after_is_honoured(server: Server, direct: bool):
    server.handler = flaky(Trouble(429, b'{"error": {"message": "slow down"}}', retry_after="2"))
    geval = GEval("coherence", MODEL, n=1, readout="samples", direct=direct)
    begun = time.monotonic()
    assert geval.rate("Some text.").score == 4
    assert 1.9 < time.monotonic() - begun < 20


def test_a_text_that_is_too_long_is_one_failure_and_is_not_sent_again(server: Server, direct: bool):
    def handler(request):
        if "endless" in str(request["messages"]):
            message = "This model's maximum context length is 8192 tokens"
            raise refusal(400, message, code="context_length_exceeded")
        return completion("Rating: 4")

    server.handler = handler
    geval = GEval("coherence", MODEL, n=1, readout="samples", direct=direct)
    ratings = list(geval.rate_many(["short", "endless", "short too"]))
    assert [rating.score for rating in ratings] == [4, None, 4]
    assert "context length" in ratings[1].error
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (refusal(401, f"Incorrect API key provided: {KEY}"), "OPENAI_API_KEY"),
        (refusal(404, "The model gpt-none does not exist"), "does not exist"),
        (refusal(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
    ],
)
def test_what_no_other_item_would_survive_stops_at_once(server: Server, direct: bool, trouble: Trouble, said: str):
    def handler(request):
        raise trouble

    server.handler = handler
    geval = GEval("coherence", MODEL, concurrency=2, direct=direct)
    with pytest.raises(JudgeError) as caught:
        list(geval.rate_many(["text"] * 100))
    assert MODEL in str(caught.value)
    assert said in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) < 20


def test_an_unreachable_server_is_named(monkeypatch, direct: bool):
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(JudgeError, match="cannot reach"):
        GEval("coherence", MODEL, retries=0, direct=direct).rate("Some text.")


@pytest.mark.parametrize(
    ("model", "variable"), [(MODEL, "OPENAI_API_KEY"), ("anthropic/claude-3-haiku-20240307", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_named(monkeypatch, model: str, variable: str):
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(JudgeError, match=variable) as caught:
        GEval("coherence", model, retries=0).rate("Some text.")
    assert model in str(caught.value)


def test_an_unknown_model_string_says_how_one_looks():
    with pytest.raises(JudgeError, match="PROVIDER/MODEL"):
        GEval("coherence", "nonsense").rate("Some text.")


def test_a_reply_cut_off_before_the_rating_is_asked_for_with_room(server: Server):
    def handler(request):
        if "max_tokens" in request:
            return completion("<think>Let me see", finish="length")
        return completion("<think>Let me see. A 2?</think>Rating: 4")

    server.handler = handler
    geval = GEval("coherence", MODEL, n=1, readout="samples")
    assert geval.rate("Some text.").score == 4
    assert geval.rate("Another text.").score == 4
    assert len(server.requests) == 3, "learnt once"


def test_a_failed_request_among_the_samples_is_missing_not_zero(server: Server):
    counts = iter(range(1000))

    def handler(request):
        if next(counts) % 4 == 3:
            raise refusal(400, "the content was filtered")
        return completion("Rating: 4")

    server.handler = handler
    rating = GEval("coherence", MODEL, readout="samples", n=8, concurrency=1).rate("Some text.")
    assert rating.score == 4
    assert rating.n_failed > 0
    assert rating.n_valid + rating.n_failed == 8


def test_many_are_rated_concurrently_in_order_or_as_they_are_completed(server: Server):
    def handler(request):
        index = int(request["messages"][0]["content"].split("number ")[1].split(".")[0])
        time.sleep(0.1 if index % 7 == 0 else 0.01)
        return completion(f"Rating: {1 + index % 5}")

    server.handler = handler
    geval = GEval("coherence", MODEL, n=1, readout="samples", concurrency=8)
    samples = [Sample(f"number {i}.", id=str(i)) for i in range(40)]
    ordered = list(geval.rate_many(samples))
    assert [rating.score for rating in ordered] == [1 + i % 5 for i in range(40)]
    as_they_come = list(geval.rate_many(samples, as_completed=True))
    assert {r.sample.id: r.score for r in as_they_come} == {r.sample.id: r.score for r in ordered}
    assert [r.sample.id for r in as_they_come] != [r.sample.id for r in ordered]


def test_samples_are_taken_no_faster_than_they_are_rated(server: Server):
    taken = 0

    def samples():
        nonlocal taken
        for _ in range(30_000):
            taken += 1
            yield "text"

    geval = GEval("coherence", MODEL, n=1, readout="samples", concurrency=4)
    ratings = geval.rate_many(samples())
    for _ in range(5):
        next(ratings)
    ratings.close()
    assert taken <= 4096


def test_sync_calls_work_inside_a_running_loop(server: Server):
    async def notebook():
        return GEval("coherence", MODEL, n=1, readout="samples").rate("Some text.").score

    assert asyncio.run(notebook()) == 4


def test_a_judge_survives_several_loops_and_pickling(server: Server):
    geval = GEval("coherence", MODEL, n=1, readout="samples")
    assert asyncio.run(geval.arate("Some text.")).score == 4
    assert asyncio.run(geval.arate("Some text.")).score == 4
    copy = pickle.loads(pickle.dumps(geval))
    assert copy.rate("Some text.").score == 4
    assert KEY.encode() not in pickle.dumps(geval)


def test_steps_are_written_once_per_criterion_and_model(server: Server):
    def handler(request):
        if "Write the evaluation steps" in request["messages"][0]["content"]:
            return completion("1. Read the text.\n2. Choose a score.")
        return completion("Rating: 4")

    server.handler = handler
    geval = GEval("coherence", MODEL, steps="auto", n=1, readout="samples")
    list(geval.rate_many(["one", "two", "three"]))
    again = GEval("coherence", MODEL, steps="auto", n=1, readout="samples")
    rating = again.rate("four")
    written = [r for r in server.requests if "Write the evaluation steps" in r["messages"][0]["content"]]
    assert len(written) == 1
    assert "1. Read the text.\n2. Choose a score." in server.requests[-1]["messages"][0]["content"]
    assert geval.write_steps() == ["Read the text.", "Choose a score."]
    assert rating.signature.parts["steps"].startswith("auto@")


def test_equal_settings_sign_alike_and_each_change_shows(server: Server):
    def sign(**changed) -> str:
        settings = {"n": 1, "readout": "samples"} | changed
        return GEval(settings.pop("criterion", "coherence"), MODEL, **settings).rate("Some text.").signature

    base = sign()
    assert base == sign()
    for changed in (
        {"criterion": "fluency"},
        {"scale": "1-10"},
        {"form": "analyze_rate"},
        {"steps": "stored"},
        {"steps": ["Read.", "Rate."]},
        {"persona": "hhh"},
        {"n": 2},
        {"temperature": 0.5},
        {"off_grid": "floor"},
    ):
        assert sign(**changed) != base, changed


def test_forms_joined_by_plus_share_the_samples(server: Server):
    def handler(request):
        analyzed = "Analysis:" in request["messages"][0]["content"]
        return completion(*["Analysis: fine.\nRating: 2" if analyzed else "Rating: 4"] * request.get("n", 1))

    server.handler = handler
    rating = GEval("coherence", MODEL, recipe="average").rate("Some text.")
    assert rating.score == 3
    assert [request["n"] for request in server.requests] == [10, 10]


def test_unknown_options_are_refused():
    with pytest.raises(TypeError):
        GEval("coherence", MODEL, modle="x")
    with pytest.raises(ValueError, match="readout"):
        GEval("coherence", MODEL, readout="guess")


def test_the_embedded_judge_gives_the_same_score_whatever_runs_beside_it():
    pytest.importorskip("xllamacpp")
    texts = ["The cat sat on the mat.", "Mat the on sat cat.", "It rained all day, so we stayed in and read."]
    judge = LiteLLMJudge("local/smollm2", concurrency=4)
    geval = GEval("coherence", judge)
    together = [rating.score for rating in geval.rate_many(texts * 2)]
    alone = [geval.rate(text).score for text in texts]
    assert together == alone * 2
    assert all(1 <= score <= 5 for score in alone)
    rating = geval.rate(texts[0])
    assert rating.method == "logprobs"
    assert rating.coverage > 0.8
    assert rating.usage.cost == 0


def test_the_environment_names_a_proxy_but_no_login(server: Server, monkeypatch, tmp_path):
    """A login for the host in ~/.netrc would contradict the key."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", server.base.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "")
    rating = GEval("coherence", MODEL, api_base="http://far.invalid/v1", n=1, readout="samples").rate("Some text.")
    assert rating.score == 4  # the server answered in the place of far.invalid
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
    assert server.headers[-1]["Host"] == "far.invalid"
