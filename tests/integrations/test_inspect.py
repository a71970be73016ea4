"""Inspect AI: real evaluations with our scorers, and their logs read back by Inspect's own reader."""

from __future__ import annotations

import math
import sys
from importlib.metadata import entry_points

import pytest
from conftest import KEY, Server, completion, refusal
from inspect_ai import Task, eval, score
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.solver import generate

from geval_adapters import GEval, InputError, LiteLLMJudge
from inspect_geval import geval, geval_criteria, geval_pairwise

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
    assert KEY not in read_eval_log(log.location).model_dump_json()
    assert log.stats.role_usage["grader"].output_tokens == 24


def test_a_key_that_a_server_echoes_is_in_no_score(openai: Server):
    key = "another-key-0123456789"  # told to Inspect alone
    openai.handler = lambda request: completion(f"I cannot, Bearer {key}.")
    model = get_model(GRADER, base_url=openai.base, api_key=key)
    for each in said(run(geval("coherence", readout="samples", n=1, model=model))):
        assert "Bearer [key]" in each.explanation
        assert key not in each.model_dump_json()


@pytest.mark.parametrize("scorer", [geval, geval_criteria, geval_pairwise])
def test_a_key_cannot_be_an_argument_for_those_are_logged(scorer):
    with pytest.raises(InputError, match="api_key: Inspect writes a scorer's arguments to its log"):
        scorer("coherence", judge=GRADER, api_key=KEY)


def test_a_key_in_a_judge_of_ours_is_not_logged(openai: Server):
    judge = LiteLLMJudge(GRADER, api_base=openai.base, api_key="another-key-0123456789")
    log = run(geval("coherence", judge=judge, readout="samples", n=1), samples=SAMPLES[:1])
    assert said(log)[0].value == 4
    assert "another-key" not in read_eval_log(log.location).model_dump_json()


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


def test_several_criteria_are_one_score_with_metrics_by_name(openai: Server):
    def no_fluency(request: dict) -> dict:
        text = request["messages"][-1]["content"]
        return completion("I cannot say." if "Fluent" in text and "Question 3" in text else "Rating: 4")

    openai.handler = no_fluency
    log = run(geval_criteria(["coherence", "fluency"], n=1, value="normalized"), model_roles={"grader": GRADER})
    by_name = {each.name: each for each in log.results.scores}
    assert by_name["coherence"].scored_samples == 8 and by_name["coherence"].metrics["mean"].value == 0.75
    assert (by_name["fluency"].scored_samples, by_name["fluency"].unscored_samples) == (7, 1)
    score = log.samples[3].scores["geval_criteria"]
    assert score.value["coherence"] == 0.75 and math.isnan(score.value["fluency"])
    assert "fluency: " in score.explanation and score.metadata["coherence"]["signature"]


def test_outputs_are_compared_with_the_target_in_both_orders(openai: Server):
    openai.handler = lambda request: completion("A", logprobs=[{"A": 0.75, "B": 0.25}])
    samples = [Sample(input="Which?", target="Paris.", id=1), Sample(input="Which?", id=2)]
    log = run(geval_pairwise("coherence"), samples=samples, model_roles={"grader": GRADER})
    compared, alone = said(log, "geval_pairwise")
    assert compared.value == 0.5 and compared.metadata["flipped"] is True  # it likes what stands first
    assert compared.metadata["there"]["p_first"] == 0.75
    assert math.isnan(alone.value) and "no target" in alone.explanation


def test_replies_come_as_choices_and_from_inspects_cache(openai: Server):
    numbers = iter(range(1000))
    openai.handler = lambda request: completion(
        *[f"Rating: {1 + next(numbers) % 5}" for _ in range(request.get("n", 1))]
    )
    scorer = geval("coherence", n=4, readout="samples", config={"cache": True})
    first, again = (run(scorer, samples=SAMPLES[:2], model_roles={"grader": GRADER}) for _ in range(2))
    assert len(openai.requests) == 2 and openai.requests[0]["n"] == 4
    assert [each.value for each in said(first)] == [each.value for each in said(again)]
    assert said(again)[0].metadata["usage"]["from_cache"] == 4 and said(again)[0].metadata["usage"]["cost"] == 0


def test_a_model_that_gives_one_choice_is_asked_again_and_its_cache_keeps_the_replies_apart():
    numbers = iter(range(1, 1000))
    grader = get_model(
        "mockllm/model",
        custom_outputs=lambda *_: ModelOutput.from_content("mockllm/model", f"Rating: {next(numbers) % 5 + 1}"),
        config=GenerateConfig(cache=True, temperature=0.3),
        memoize=False,
    )
    scorer = geval("coherence", n=5, readout="samples", model=grader)
    first, again = (said(run(scorer, samples=SAMPLES[:1]))[0] for _ in range(2))
    assert first.metadata["n_valid"] == 5 and sum(p > 0 for p in first.metadata["distribution"].values()) > 1
    assert again.value == first.value
    assert "temperature" in first.metadata["signature"]  # the model's own was kept, and the signature says so


def test_a_refused_key_stops_the_evaluation_and_says_so(openai: Server, monkeypatch):
    def refused(request: dict) -> dict:
        raise refusal(401, f"Incorrect API key provided: {KEY}")

    openai.handler = refused
    answering = get_model("mockllm/model", custom_outputs=answer)
    (log,) = eval(Task(SAMPLES, solver=generate(), scorer=geval("coherence", model=GRADER)), model=answering)
    assert log.status == "error" and "JudgeError" in log.error.traceback and KEY not in log.error.message


def test_without_a_grader_nothing_judges_itself():
    answering = get_model("mockllm/model", custom_outputs=answer)
    (log,) = eval(Task(SAMPLES, solver=generate(), scorer=geval("coherence")), model=answering)
    assert log.status == "error" and "grader" in log.error.message


def test_what_is_wrong_is_said_before_anything_runs():
    with pytest.raises(InputError, match="coherense"):
        geval("coherense_")
    with pytest.raises(InputError, match="form"):
        geval("coherence", form="essay")
    with pytest.raises(InputError, match="goes past"):
        geval("coherence", judge=GRADER, model=GRADER)
    with pytest.raises(InputError, match="unknown field colour"):
        geval("coherence", fields={"colour": "hue"})


def test_a_log_is_scored_again_on_the_command_line_by_the_name_of_the_entry_point(
    openai: Server, tmp_path, monkeypatch
):
    openai.handler = weighted
    log = run(geval("fluency"), samples=SAMPLES[:2], model_roles={"grader": GRADER})
    arguments = [
        "inspect", "score", log.location, "--scorer", "inspect_geval/geval",
        "-S", "criterion=coherence", "-S", f"judge={GRADER}", "-S", "value=normalized", "--action", "append",
        "--output-file", str(tmp_path / "again.eval"), "--display", "none",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", arguments)
    (command,) = entry_points(group="console_scripts", name="inspect")
    with pytest.raises(SystemExit) as done:  # in this process: to import all of Inspect again takes half a minute
        command.load()()
    assert not done.value.code
    again = read_eval_log(str(tmp_path / "again.eval"))
    (name,) = set(again.samples[0].scores) - {"geval"}
    assert again.samples[0].scores[name].value == (3.5 - 1) / 4
    assert again.samples[0].scores[name].metadata["method"] == "logprobs"


def test_scoring_in_python_takes_a_judge_of_ours(openai: Server):
    openai.handler = weighted
    log = run(geval("fluency", judge=GRADER), samples=SAMPLES[:2])
    again = score(log, geval("coherence", judge=GRADER), action="overwrite")
    assert said(again)[0].value == 3.5
