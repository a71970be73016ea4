"""Models that think before they answer, each as its server is documented to behave: what is sent, and what is read."""

from __future__ import annotations

import pytest
from conftest import Server, completion, refusal

from geval_adapters import GEval

ITEMS = [f"Text number {i}." for i in range(24)]
THOUGHT = "The text is short. A 2? No, 1. Coherence: better than that."
ONE_FOR_ALL = {"n": 1, "concurrency": 8}


def rated(geval: GEval) -> list:
    return list(geval.rate_many(ITEMS))


def thinking(content, **message) -> dict:
    """A completion whose message has more than text."""
    response = completion("")
    response["choices"][0]["message"] = {"role": "assistant", "content": content, **message}
    return response


def like_openai(request: dict) -> dict:
    """A reasoning model of OpenAI's: one refusal at a time, and tokens for thinking count."""
    for name, message in {
        "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model."
        " Use 'max_completion_tokens' instead.",
        "stop": "Unsupported parameter: 'stop' is not supported with this model.",
        "logprobs": "You are not allowed to request logprobs from this model",
    }.items():
        if name in request:
            raise refusal(400, message, param=name, code="unsupported_parameter")
    if request.get("temperature", 1) != 1:
        raise refusal(
            400,
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is"
            " supported.",
            param="temperature",
            code="unsupported_value",
        )
    if request.get("max_completion_tokens", 5000) < 500:
        return completion("", finish="length")
    return completion(*["Rating: 4"] * request.get("n", 1))


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "litellm"])
@pytest.mark.parametrize("model", ["openai/o3", "openai/gpt-5-mini", "openai/o9-preview"])
def test_a_reasoning_model_of_openai_loses_nothing(server: Server, model: str, direct: bool):
    server.handler = like_openai
    ratings = rated(GEval("coherence", model, direct=direct, **ONE_FOR_ALL))
    assert [rating.score for rating in ratings] == [4] * 24
    assert all(rating.n_failed == 0 for rating in ratings)
    assert {rating.signature.parts["temperature"] for rating in ratings} == {"default"}
    assert len(server.requests) <= 24 + 2 * 8 + 8


@pytest.mark.parametrize(
    ("model", "reply", "reasoning"),
    [
        ("openai/deepseek-reasoner", thinking("Rating: 4", reasoning_content=THOUGHT), THOUGHT),
        ("hosted_vllm/Qwen/Qwen3-8B", thinking("\n\nRating: 4", reasoning_content=THOUGHT), THOUGHT),
        ("hosted_vllm/Qwen/Qwen3-8B", thinking("Rating: 4", reasoning=THOUGHT), THOUGHT),
        ("hosted_vllm/Qwen/Qwen3-8B", thinking(f"<think>\n{THOUGHT}\n</think>\n\nRating: 4"), None),
        ("hosted_vllm/deepseek-ai/DeepSeek-R1", thinking(f"{THOUGHT}\n</think>\n\nRating: 4"), None),
        (
            "openai/magistral",
            thinking(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
                    {"type": "text", "text": "Rating: 4"},
                ]
            ),
            THOUGHT,
        ),
    ],
    ids=["deepseek", "vllm-parser", "vllm-new-parser", "vllm-no-parser", "vllm-only-closed", "parts"],
)
def test_thinking_is_never_the_rating(server: Server, monkeypatch, model, reply, reasoning):
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.base)
    server.handler = lambda request: reply
    ratings = rated(GEval("coherence", model, readout="samples", **ONE_FOR_ALL))
    assert [rating.score for rating in ratings] == [4] * 24
    if reasoning:
        assert {rating.rationale for rating in ratings} == {reasoning}


def test_claude_with_thinking_is_read_through_litellm(server: Server, monkeypatch):
    """Anthropic's own protocol: thinking and text are blocks, and thinking admits only temperature 1."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")

    def handler(request):
        if request.get("thinking") and request.get("temperature", 1) != 1:
            raise refusal(400, "`temperature` may only be set to 1 when thinking is enabled", type="invalid_request")
        blocks = [{"type": "thinking", "thinking": THOUGHT, "signature": "x"}, {"type": "text", "text": "Rating: 4"}]
        usage = {"input_tokens": 100, "output_tokens": 50}
        head = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
        return head | {"content": blocks, "usage": usage}

    server.handler = handler
    base = server.base.removesuffix("/v1")
    options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    geval = GEval("coherence", "anthropic/claude-sonnet-4-20250514", api_base=base, options=options, **ONE_FOR_ALL)
    ratings = rated(geval)
    assert [rating.score for rating in ratings] == [4] * 24
    assert {rating.rationale for rating in ratings} == {THOUGHT}
    assert len(server.requests) <= 24 + 2 * 8 + 2, "no log-probabilities are asked for, and temperature is learnt once"


def test_log_probabilities_of_what_was_thought_are_not_the_ratings(server: Server, monkeypatch):
    """vLLM cuts the thinking out of the text, but not out of the tokens."""
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.base)
    steps = [{"<think>": 1.0}, {"2": 1.0}, {"</think>": 1.0}, {"Rating": 1.0}, {":": 1.0}, {" 4": 0.6, " 5": 0.4}]

    def handler(request):
        response = completion("Rating: 4", logprobs=steps)
        response["choices"][0]["message"]["reasoning_content"] = "2"
        return response

    server.handler = handler
    ratings = rated(GEval("coherence", "hosted_vllm/Qwen/Qwen3-8B", concurrency=8))
    assert [rating.score for rating in ratings] == [pytest.approx(4.4)] * 24


def test_what_ends_before_the_rating_for_lack_of_room_says_so(server: Server):
    server.handler = lambda request: completion("<think>Let me see, and see", finish="length")
    rating = GEval("coherence", "openai/gpt-4o-mini", n=1, readout="samples").rate("Some text.")
    assert rating.score is None
    assert "length" in rating.error


def test_a_refusal_is_no_rating_whatever_number_it_names(server: Server):
    server.handler = lambda request: thinking(None, refusal="I cannot give this a 5")
    ratings = rated(GEval("coherence", "openai/gpt-4o-mini", readout="samples", **ONE_FOR_ALL))
    assert {rating.score for rating in ratings} == {None}
    assert all("I cannot give this a 5" in rating.error for rating in ratings)


def test_a_rationale_that_was_stopped_is_none(server: Server):
    server.handler = lambda request: completion("Rating: 4\nThe output is a short", finish="length")
    rating = GEval("coherence", "openai/gpt-4o-mini", n=1, readout="samples").rate("Some text.")
    assert (rating.score, rating.rationale) == (4, None)
    server.handler = lambda request: completion("Rating: 4\nRationale: It holds together.")
    rating = GEval("coherence", "openai/gpt-4o-mini", n=1, readout="samples", explain=True).rate("Some text.")
    assert rating.rationale == "It holds together."
