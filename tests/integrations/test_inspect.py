"""Inspect AI: real evaluations with our scorers, and their logs read back by Inspect's own reader."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from conftest import KEY, Server, completion, refusal
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.solver import generate

from geval_adapters import GEval
from inspect_geval import geval

SAMPLES = [Sample(input=f"Question {n}?", target="Paris.", id=n, metadata={"doc_id": f"d{n % 4}"}) for n in range(8)]
GRADER = "openai/gpt-4o-mini"


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "inspect_cache"))


@pytest.fixture
def openai(server: Server, monkeypatch) -> Server:
    """A server where Inspect's OpenAI provider looks for one."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    return server


def weighted(request: dict) -> dict:
    """Half a four, half a three, where log-probabilities are asked for."""
    four = [{"Rating": 1.0}, {":": 1.0}, {" 4": 0.5, " 3": 0.5}]
    return completion(*["Rating: 4"] * request.get("n", 1), logprobs=four if request.get("logprobs") else None)


def answer(messages, *_) -> ModelOutput:
    return ModelOutput.from_content("mockllm/model", f"An answer to: {messages[-1].text}")


def run(*scorers, samples=SAMPLES, **options):
    """An evaluation of a model that repeats the question; its log, as it stands on disk."""
    answering = get_model("mockllm/model", custom_outputs=answer)
    (log,) = eval(Task(samples, solver=generate(), scorer=list(scorers)), model=answering, **options)
    log = read_eval_log(log.location)
    assert log.status == "success", log.error and log.error.traceback
    return log


def said(log, name: str = "geval"):
    return [sample.scores[name] for sample in log.samples]


def test_a_models_rating_is_weighted_and_its_log_tells_all_of_it(openai: Server):
    openai.handler = weighted
    log = run(geval("coherence"), model_roles={"grader": GRADER})
    scores = said(log)
    assert [each.value for each in scores] == [3.5] * 8
    by_hand = GEval("coherence", GRADER, api_base=openai.base).rate("An answer to: Question 0?")
    assert scores[0].metadata["signature"] == str(by_hand.signature)  # the same judge by another way
    about = scores[0].metadata
    assert about["method"] == "logprobs" and about["coverage"] == 1 and about["bounds"] == [3.5, 3.5]
    assert about["usage"]["requests"] == 1 and about["usage"]["cost"] > 0
    assert log.results.scores[0].metrics["mean"].value == 3.5
    assert KEY not in Path(log.location.removeprefix("file://")).read_bytes().decode("latin-1")
    assert log.stats.role_usage["grader"].output_tokens == 24


def test_the_standard_error_is_clustered_by_document(openai: Server):
    openai.handler = lambda request: completion(f"Rating: {1 + int(request['messages'][-1]['content'].count('odd'))}")
    samples = [Sample(input="odd" * (n % 2) + f" {n}", metadata={"doc_id": n % 2}) for n in range(8)]
    plain = [Sample(input=each.input) for each in samples]
    options = {"model_roles": {"grader": GRADER}}
    clustered, alone = (
        run(geval("coherence", n=1), samples=each, **options).results.scores[0].metrics["clustered_stderr"].value
        for each in (samples, plain)
    )
    values = [1 + n % 2 for n in range(8)]
    assert alone == pytest.approx(math.sqrt(sum((v - 1.5) ** 2 for v in values) / 7 / 8))
    assert clustered == pytest.approx(math.sqrt(2 * 2**2 * 2) / 8)  # two documents, each off by four halves: the sum


def test_what_is_not_rated_is_unscored_with_its_reason_and_in_no_mean(openai: Server):
    def some(request: dict) -> dict:
        text = request["messages"][-1]["content"]
        if "Question 1" in text:
            raise refusal(400, "that text is flagged")
        return completion(*["I would rather not." if "Question 2" in text else "Rating: 4"] * request.get("n", 1))

    openai.handler = some
    log = run(geval("coherence", n=2, readout="samples"), model_roles={"grader": GRADER})
    result = log.results.scores[0]
    assert (result.scored_samples, result.unscored_samples) == (6, 2)
    assert result.metrics["mean"].value == 4
    one, two = said(log)[1:3]
    assert math.isnan(one.value) and one.metadata["unscored_reason"] == "grader_failed" and "flagged" in one.explanation
    assert math.isnan(two.value) and two.metadata["n_failed"] == 2 and two.metadata["unread"]
