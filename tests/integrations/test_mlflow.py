"""MLflow: real evaluations with our scorers, read back through its client; people's feedback as labels."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import stdev

import mlflow
import pytest
from conftest import KEY, Server, completion, refusal
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Document, SpanType

from geval_adapters import GEval
from mlflow_geval import geval, labels, samples

MODEL = "openai/gpt-4o-mini"
ROWS = [{"inputs": {"question": f"Question {n}?"}, "outputs": f"Answer {n}."} for n in range(8)]


@pytest.fixture(autouse=True, scope="module")
def store(tmp_path_factory):
    """One database for all tests here: to make one takes seconds."""
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


@pytest.fixture
def experiment(request) -> str:
    mlflow.set_experiment(request.node.name)
    return request.node.name


def rated(request: dict) -> dict:
    """A rating by the answer's number; half of its mass a step lower."""
    number = next(n for n in range(9) if f"Answer {n}" in request["messages"][-1]["content"])
    score = 2 + number % 4
    tops = [{"Rating": 1.0}, {":": 1.0}, {f" {score}": 0.5, f" {score - 1}": 0.5}]
    return completion(f"Rating: {score}", logprobs=tops if request.get("logprobs") else None)


def feedback(trace, name: str = "coherence"):
    return next(each for each in trace.info.assessments if each.name == name)


def evaluated(rows, *scorers):
    """The run's metrics and its traces, as the client finds them in the store, by their questions."""
    result = mlflow.genai.evaluate(data=rows, scorers=list(scorers))
    client = MlflowClient()
    run = client.get_run(result.run_id)
    traces = client.search_traces(locations=[run.info.experiment_id], run_id=result.run_id)
    return run.data.metrics, sorted(traces, key=lambda trace: trace.data.request)


def test_a_run_read_back_by_the_client_tells_all_of_each_rating(server: Server, experiment):
    server.handler = rated
    metrics, traces = evaluated(ROWS, geval("coherence", MODEL), geval("fluency", MODEL, value="normalized"))
    scores = [1.5 + n % 4 for n in range(8)]
    assert [feedback(each).value for each in traces] == scores
    assert feedback(traces[0], "fluency").value == (1.5 - 1) / 4
    assert metrics["coherence/mean"] == sum(scores) / 8
    assert metrics["coherence/std_error"] == pytest.approx(stdev(scores) / math.sqrt(8))
    assert metrics["coherence/rated"] == 8
    one = feedback(traces[0])
    assert one.source.source_type == "LLM_JUDGE" and one.source.source_id == MODEL
    assert one.metadata["method"] == "logprobs" and json.loads(one.metadata["coverage"]) == 1
    assert one.metadata["signature"] == str(GEval("coherence", MODEL).rate("Answer 0.").signature)
    assert json.loads(one.metadata["usage"])["requests"] == 1 and float(one.metadata["mlflow.assessment.judgeCost"]) > 0
    assert KEY not in str([each.to_dict() for each in traces])


def test_what_is_not_rated_is_an_error_and_in_no_mean(server: Server, experiment):
    def some(request: dict) -> dict:
        if "Answer 1" in (text := request["messages"][-1]["content"]):
            raise refusal(400, "that text is flagged")
        return completion("I would rather not.") if "Answer 2" in text else rated(request)

    server.handler = some
    metrics, traces = evaluated(ROWS[:4], geval("coherence", MODEL))
    assert [feedback(each).value for each in traces] == [1.5, None, None, 4.5]
    assert metrics["coherence/mean"] == 3 and metrics["coherence/rated"] == 2
    assert feedback(traces[1]).error.error_code == "UNRATED" and "flagged" in feedback(traces[1]).error.error_message
    assert json.loads(feedback(traces[2]).metadata["n_failed"]) > 0


def test_a_refused_key_is_an_error_of_each_and_no_metric(server: Server, experiment):
    def refused(request: dict) -> dict:
        raise refusal(401, f"Incorrect API key provided: {KEY}")

    server.handler = refused
    metrics, traces = evaluated(ROWS[:2], geval("coherence", MODEL))
    assert "coherence/mean" not in metrics
    assert all(feedback(each).value is None and feedback(each).error for each in traces)
    assert KEY not in str([each.to_dict() for each in traces])


def test_expectations_and_retrieved_documents_reach_the_judge(server: Server, experiment):
    server.handler = lambda request: completion("Rating: 1")
    grounded = {"name": "grounded", "definition": "Rests on the context.", "scale": "0-1"}

    @mlflow.trace(span_type=SpanType.RETRIEVER)
    def retrieve(question: str) -> list[Document]:
        return [Document(page_content="Paris is the capital.")]

    @mlflow.trace
    def answer(question: str) -> str:
        retrieve(question)
        return "The one on the Seine."

    mlflow.genai.evaluate(
        data=[{"inputs": {"question": "Capital?"}, "expectations": {"expected_response": "Lutetia."}}],
        predict_fn=answer,
        scorers=[geval({**grounded, "needs": ["context", "reference"]}, MODEL, n=1)],
    )
    told = server.requests[-1]["messages"][-1]["content"]
    assert "Paris is the capital." in told and "Lutetia." in told and "The one on the Seine." in told


def test_a_scorer_that_is_registered_rates_traces_that_exist(server: Server, experiment, monkeypatch):
    server.handler = rated
    monkeypatch.setenv(
        "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS", "true"
    )  # MLflow runs stored source only where this is set

    @mlflow.genai.scorer
    def coherence(inputs, outputs, trace):
        from mlflow_geval import geval

        return geval("coherence", "openai/gpt-4o-mini")(inputs=inputs, outputs=outputs, trace=trace)

    traced(range(2))
    coherence.register()
    stored = mlflow.genai.get_scorer(name="coherence")
    mlflow.genai.evaluate(data=mlflow.search_traces(), scorers=[stored])
    traces = mlflow.search_traces(return_type="list")
    assert sorted(feedback(each).value for each in traces) == [1.5, 2.5]


def traced(numbers) -> list[str]:
    """Traces of an application, by their ids."""

    @mlflow.trace
    def answer(question: str) -> str:
        return f"Answer {question}."

    found = []
    for number in numbers:
        answer(str(number))
        found.append(mlflow.get_last_active_trace_id())
    mlflow.flush_trace_async_logging()
    return found


def test_peoples_feedback_is_labels_for_an_estimate(server: Server, experiment, request, tmp_path: Path):
    server.handler = rated
    command = request.getfixturevalue("geval")
    ids = traced(range(8))
    for number, trace in enumerate(ids):
        people = AssessmentSource("HUMAN", "ann@example.org")
        mlflow.log_feedback(trace_id=trace, name="coherence", value=2 + number % 4, source=people, rationale="So.")
        mlflow.log_feedback(trace_id=trace, name="coherence", value=5, source=AssessmentSource("LLM_JUDGE", "other"))
    mlflow.log_feedback(trace_id=ids[0], name="coherence", value="nice", source=AssessmentSource("HUMAN", "bob"))
    rows = labels(experiment)
    assert sorted((row["id"], row["score"]) for row in rows) == sorted((t, 2.0 + n % 4) for n, t in enumerate(ids))
    assert rows[0]["annotator"] == "ann@example.org" and rows[0]["note"] == "So."
    for name, written in {"traces": samples(experiment), "labels": rows}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    assert command("score", "traces.jsonl", "-c", "coherence", "-m", MODEL, "-o", "ratings.jsonl")[0] == 0
    code, out, err = command("estimate", "ratings.jsonl", "--labels", "labels.jsonl")
    assert code == 0 and "8 labels" in " ".join(out.split()), out + err
