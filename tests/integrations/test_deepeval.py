"""DeepEval's own `assert_test` and `evaluate` with our metrics, offline."""

from __future__ import annotations

import json

import pytest
from conftest import KEY, Server, completion, refusal
from deepeval import assert_test, evaluate
from deepeval.errors import MissingTestCaseParamsError
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn

from deepeval_geval import ConversationalGEvalMetric, GEvalMetric
from geval_adapters import Criterion, GEvalError, JudgeError, Scale

MODEL = "openai/gpt-4o-mini"
QUIET = DisplayConfig(show_indicator=False, print_results=False)
GOOD = LLMTestCase(name="good", input="Capital of France?", actual_output="Paris, on the Seine.")
BAD = LLMTestCase(name="bad", input="Capital of France?", actual_output="A bad text.")
ODD = LLMTestCase(name="odd", input="Capital of France?", actual_output="An odd text.")


@pytest.fixture(autouse=True)
def judge(server: Server, monkeypatch, tmp_path) -> Server:
    """Rates a bad text 2, an odd one not at all, any other 4."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPEVAL_RESULTS_FOLDER", str(tmp_path / "results"))

    def handler(request: dict) -> dict:
        told = request["messages"][0]["content"]
        judged = told[told.rfind("<output>") :]
        if "odd text" in judged:
            return completion("I would rather not say.")
        score, rest = "2" if "bad text" in judged else "4", "\nRationale: It says so."
        steps = [{"Rating": 1.0}, {":": 1.0}, {f" {score}": 1.0}, {rest: 1.0}]
        return completion(f"Rating: {score}{rest}", logprobs=steps)

    server.handler = handler
    return server


def results(cases: list, metrics: list, **errors: bool) -> dict:
    """What `evaluate` says of each test case, by its name: the metrics' data by the metrics' names."""
    found = evaluate(
        cases,
        metrics,
        display_config=QUIET,
        error_config=ErrorConfig(**errors),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
        async_config=AsyncConfig(run_async=True),
    )
    return {each.name: {data.name: data for data in each.metrics_data or []} for each in found.test_results}


def test_a_metric_has_score_reason_cost_and_the_whole_rating():
    metric = GEvalMetric("relevance", model=MODEL)
    assert metric.measure(GOOD) == metric.score == 0.75
    assert metric.success is metric.is_successful() is True
    assert metric.reason == "good: relevance 4 (logprobs, n 1, coverage 1.00): It says so."
    assert metric.score_breakdown == {"good": 4}
    assert metric.evaluation_cost > 0
    assert (metric.input_tokens, metric.output_tokens, metric.evaluation_model) == (100, 3, MODEL)
    (rating,) = json.loads(metric.verbose_logs)
    assert (rating["method"], rating["coverage"], rating["n_failed"]) == ("logprobs", 1, 0)
    assert rating["signature"] == str(metric.ratings[0].signature)
    assert GEvalMetric("relevance", model=MODEL, threshold=None).is_successful() is None


def test_what_the_judge_says_does_nothing_to_a_terminal(judge):
    metric = GEvalMetric("relevance", model=MODEL, readout="samples", n=1)
    judge.handler = lambda request: completion("Rating: 4\nRationale: Fine.\x1b[31m")
    metric.measure(GOOD)
    assert metric.reason.endswith(": Fine.�[31m")
    judge.handler = lambda request: completion("I would rather not.\x1b[31m")
    with pytest.raises(GEvalError):
        metric.measure(GOOD)
    assert metric.error.endswith("I would rather not. [31m")


@pytest.mark.parametrize("run_async", [True, False])
def test_assert_test_passes_and_fails(run_async):
    metrics = [GEvalMetric("relevance", threshold=0.7, model=MODEL), GEvalMetric("fluency", model=MODEL)]
    assert_test(GOOD, metrics, run_async=run_async)
    with pytest.raises(AssertionError) as failed:
        assert_test(BAD, metrics, run_async=run_async)
    assert "relevance (score: 0.25, threshold: 0.7" in str(failed.value)
    assert "It says so." in str(failed.value)
    assert "fluency (score: 0.25" in str(failed.value)


def test_what_is_not_rated_is_an_error_and_no_score():
    metric = GEvalMetric("coherence", model=MODEL, n=1)
    with pytest.raises(GEvalError, match="not rated: no rating in the reply"):
        metric.measure(ODD)
    assert (metric.score, metric.success) == (None, False)
    assert "no rating in the reply" in metric.error
    assert metric.evaluation_cost > 0, "it was paid for"
    with pytest.raises(GEvalError, match="not rated"):
        assert_test(ODD, [metric])
    metric.measure(GOOD)
    assert (metric.error, metric.score) == (None, 0.75)


def test_evaluate_goes_on_past_errors_and_counts_them_as_such():
    metrics = [GEvalMetric("coherence", model=MODEL, n=1), GEvalMetric("correctness", model=MODEL)]
    found = results([GOOD, BAD, ODD], metrics, ignore_errors=True)
    assert (found["good"]["coherence"].score, found["good"]["coherence"].success) == (0.75, True)
    assert (found["bad"]["coherence"].score, found["bad"]["coherence"].success) == (0.25, False)
    odd = found["odd"]["coherence"]
    assert (odd.score, odd.success) == (None, False)
    assert "not rated: no rating in the reply" in odd.error
    assert json.loads(odd.verbose_logs)[0]["n_failed"] == 1
    assert "expected_output must be there" in found["good"]["correctness"].error
    skipped = results([GOOD], metrics, skip_on_missing_params=True)
    assert set(skipped["good"]) == {"coherence"}


def test_a_judge_that_cannot_be_asked_is_an_error(judge):
    def handler(request: dict) -> dict:
        raise refusal(401, f"bad key {KEY}")

    judge.handler = handler
    metric = GEvalMetric("coherence", model=MODEL)
    with pytest.raises(JudgeError):
        metric.measure(GOOD)
    assert metric.score is None and metric.error.startswith(MODEL) and KEY not in metric.error
    found = results([GOOD], [metric], ignore_errors=True)
    assert found["good"]["coherence"].error and found["good"]["coherence"].score is None


def test_fields_of_a_test_case_are_shown_to_the_judge(judge):
    case = LLMTestCase(
        input="Where to?",
        actual_output="Home.",
        expected_output="Rome.",
        context=["no"],
        retrieval_context=["One.", "Two."],
    )
    GEvalMetric("correctness", model=MODEL).measure(case)
    assert "Rome." in judge.requests[-1]["messages"][0]["content"]
    GEvalMetric("groundedness", model=MODEL).measure(case)
    told = judge.requests[-1]["messages"][0]["content"]
    assert "One." in told and "Two." in told
    with pytest.raises(MissingTestCaseParamsError, match="retrieval_context must be there"):
        GEvalMetric("groundedness", model=MODEL).measure(GOOD)
    with pytest.raises(MissingTestCaseParamsError, match="actual_output must be there"):
        GEvalMetric("coherence", model=MODEL).measure(LLMTestCase(input="Where to?"))


def test_tool_calls_are_shown_as_turns(judge):
    call = ToolCall(name="search", input_parameters={"q": "weather"}, output={"said": "sunny"})
    case = LLMTestCase(input="How is it?", actual_output="Sunny.", tools_called=[call])
    GEvalMetric("relevance", model=MODEL).measure(case)
    told = judge.requests[-1]["messages"][0]["content"]
    assert "search" in told and "weather" in told and "sunny" in told


TURNS = Criterion("relevance", "Is each turn to the point?", Scale.of("1-5"), needs=("source",), judges="each_turn")
TALK = ConversationalTestCase(
    name="talk",
    chatbot_role="A kind clerk.",
    turns=[
        Turn(role="user", content="Where is it?"),
        Turn(role="assistant", content="A bad text."),
        Turn(role="user", content="What?"),
        Turn(role="assistant", content="In the hall."),
    ],
)


def test_a_conversation_is_rated_by_its_turns_or_its_last(judge):
    metric = ConversationalGEvalMetric(TURNS, model=MODEL)
    assert metric.measure(TALK) == 0.5
    assert list(metric.score_breakdown.values()) == [2, 4]
    assert len(metric.ratings) == 2
    last = ConversationalGEvalMetric("coherence", model=MODEL)
    assert_test(TALK, [last, metric])
    assert last.score in (None, 0.75), "DeepEval measures with copies of its own"
    assert "A kind clerk." in "".join(each["messages"][0]["content"] for each in judge.requests)
    silent = ConversationalTestCase(turns=[Turn(role="user", content="Hello?")])
    with pytest.raises(MissingTestCaseParamsError, match="no turn of the assistant's"):
        metric.measure(silent)


def test_copies_of_a_metric_share_what_rates():
    from deepeval.metrics.utils import copy_metrics

    for metric in (
        GEvalMetric("coherence", model=MODEL, n=3, name="mine"),
        ConversationalGEvalMetric(TURNS, model=MODEL),
    ):
        (copied,) = copy_metrics([metric])
        assert copied is not metric and copied.geval is metric.geval
        assert (copied.name, copied.threshold) == (metric.name, metric.threshold)


def test_deepevals_cache_tells_ways_of_rating_apart():
    from deepeval.test_run.cache import Cache

    known = Cache.create_metric_configuration(GEvalMetric("coherence", model=MODEL))
    assert Cache.same_metric_configs(GEvalMetric("coherence", model=MODEL), known)
    for other in ({"n": 5}, {"form": "score_only"}, {"scale": "1-10"}, {"model": "openai/gpt-4o"}, {"threshold": 0.7}):
        assert not Cache.same_metric_configs(GEvalMetric("coherence", **{"model": MODEL, **other}), known), other
    again = Criterion("coherence", "Something else.", Scale.of("1-5"))
    assert not Cache.same_metric_configs(GEvalMetric(again, model=MODEL), known)


def test_our_pytest_plugin_stands_beside_deepevals(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("deepeval")
    assert pytestconfig.pluginmanager.hasplugin("geval")
