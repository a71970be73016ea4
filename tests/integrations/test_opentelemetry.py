"""Ratings as OpenTelemetry's events, collected by the real SDK."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import KEY, Server, completion, refusal
from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from geval_adapters import GEval
from opentelemetry_geval import EVENT, rate, record

MODEL = "openai/gpt-4o-mini"
tracer = TracerProvider().get_tracer("test")
collected = InMemoryLogRecordExporter()


@pytest.fixture(autouse=True, scope="module")
def provider():
    provider = _logs.get_logger_provider()
    if not isinstance(provider, LoggerProvider):  # it can be set once in a process: another test may have
        provider = LoggerProvider()
        _logs.set_logger_provider(provider)
    provider.add_log_record_processor(SimpleLogRecordProcessor(collected))


@pytest.fixture(autouse=True)
def emptied():
    collected.clear()


def events() -> list:
    return [each.log_record for each in collected.get_finished_logs()]


def test_a_rating_is_an_event_on_the_current_span(server: Server):
    tops = [{"Rating": 1.0}, {":": 1.0}, {" 4": 0.5, " 3": 0.5}, {"\nRationale: It hangs together.": 1.0}]
    server.handler = lambda request: completion("Rating: 4\nRationale: It hangs together.", logprobs=tops)
    with tracer.start_as_current_span("chat") as span:
        rating = rate(GEval("coherence", MODEL, explain=True), "A private text.")
    (event,) = events()
    assert event.event_name == EVENT and event.span_id == span.get_span_context().span_id
    told = dict(event.attributes)
    assert told["gen_ai.evaluation.name"] == "coherence" and told["gen_ai.evaluation.score.value"] == 3.5
    assert told["gen_ai.evaluation.explanation"] == "It hangs together."
    assert told["geval.method"] == "logprobs" and told["geval.coverage"] == pytest.approx(1)
    assert told["geval.signature"] == str(rating.signature) and tuple(told["geval.bounds"]) == rating.bounds
    assert told["geval.cost"] > 0 and "error.type" not in told
    assert "private" not in str(told) and KEY not in str(told)


def test_a_span_that_has_ended_is_named_by_its_context(server: Server):
    with tracer.start_as_current_span("chat") as span:
        pass
    record(GEval("coherence", MODEL).rate("Text."), span.get_span_context(), response_id="r-1", label="pass")
    (event,) = events()
    assert event.trace_id == span.get_span_context().trace_id and event.span_id == span.get_span_context().span_id
    assert event.attributes["gen_ai.response.id"] == "r-1"
    assert event.attributes["gen_ai.evaluation.score.label"] == "pass"


def test_what_is_not_rated_has_an_error_type_and_no_value(server: Server):
    def flagged(request: dict) -> dict:
        raise refusal(400, f"that text is flagged, {KEY}")

    server.handler = flagged
    rate(GEval("coherence", MODEL), "Text.")
    (event,) = events()
    assert (
        event.attributes["error.type"] == "unrated" and "flagged" in event.attributes["gen_ai.evaluation.explanation"]
    )
    assert "gen_ai.evaluation.score.value" not in event.attributes and KEY not in str(dict(event.attributes))


def test_many_at_once_each_meet_their_own_span(server: Server):
    gevals = [GEval(name, MODEL) for name in ("coherence", "fluency")]

    def one(number: int) -> int:
        with tracer.start_as_current_span(f"chat {number}") as span:
            for geval in gevals:
                rate(geval, f"Text {number}.")
        return span.get_span_context().span_id

    with ThreadPoolExecutor(8) as pool:
        spans = list(pool.map(one, range(16)))
    found = {(each.span_id, each.attributes["gen_ai.evaluation.name"]) for each in events()}
    assert found == {(span, name) for span in spans for name in ("coherence", "fluency")}
