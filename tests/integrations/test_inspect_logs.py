"""Inspect's logs as input: what its samples hold is rated, and what its scorers said is held against people."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import correlation

import pytest
from conftest import Server, completion
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, edit_score, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, get_model
from inspect_ai.scorer import Score, ScoreEdit, mean, scorer
from inspect_ai.solver import generate, solver, user_message

from inspect_geval import geval as geval_scorer

MODEL = "openai/gpt-4o-mini"


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))


def run(samples, *scorers, more=(), **options) -> str:
    """A log of a model that repeats what it is told."""

    def answer(messages, *_) -> ModelOutput:
        return ModelOutput.from_content("mockllm/model", f"An answer to: {messages[-1].text}")

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = eval(Task(samples, solver=[generate(), *more], scorer=list(scorers)), model=model, **options)
    return log.location


@scorer(metrics=[mean()])
def coherence():
    async def score(state, target):
        return Score(value=1 + int(state.sample_id) % 5)

    return score


def rows(name: str = "out.jsonl") -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def test_the_samples_of_a_log_are_rated(server: Server, geval):
    log = run(
        [Sample(input=f"Question {n}?", target="Paris.", id=n, metadata={"human": 4}) for n in range(3)], epochs=2
    )
    code, _, err = geval("score", log, "-c", "relevance", "-m", MODEL, "-o", "out.jsonl")
    assert code == 0, err
    made = rows()
    assert sorted(each["id"] for each in made) == sorted(f"{n}/{epoch}" for n in range(3) for epoch in (1, 2))
    assert {each["doc_id"] for each in made} == {"0", "1", "2"}
    assert made[0]["reference"] == "Paris." and made[0]["human"] == 4 and made[0]["system_id"] == "mockllm/model"
    assert made[0]["output"] == f"An answer to: Question {made[0]['doc_id']}?"
    assert f"Question {made[0]['doc_id']}?" in json.dumps(server.requests[0]["messages"])


def test_a_sample_that_failed_is_named_and_passed_over_only_when_told(server: Server, geval):
    @solver
    def fails():
        async def solve(state, generate):
            if state.sample_id == 1:
                raise RuntimeError("out of paper")
            return state

        return solve

    log = run([Sample(input="What?", id=n) for n in range(3)], more=[fails()], fail_on_error=False)
    code, _, err = geval("score", log, "-c", "coherence", "-m", MODEL, "-o", "out.jsonl")
    assert code == 2 and "the sample 1 failed in Inspect" in " ".join(err.split())
    code, *_ = geval("score", log, "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", "--skip-bad-lines")
    assert sorted(each["id"] for each in rows()) == ["0", "2"]


def test_turns_are_a_conversation(server: Server, geval):
    log = run([Sample(input=[ChatMessageUser(content="Hello?")], id=1)], more=[user_message("And then?"), generate()])
    assert geval("score", log, "-c", "relevance", "-m", MODEL, "-o", "out.jsonl")[0] == 0
    told = json.dumps(server.requests[0]["messages"])
    assert "Hello?" in told and "An answer to: And then?" in rows()[0]["output"]


def test_a_scorer_is_held_against_peoples_scores(geval):
    judge = [1 + n % 5 for n in range(20)]
    people = [min(5, 1 + n % 5 + n // 10) for n in range(20)]
    samples = [Sample(input="Q", id=n, metadata={"human": {"coherence": people[n]}}) for n in range(20)]
    code, out, err = geval("meta-eval", run(samples, coherence()), "-c", "coherence", "--json", "--resamples", "0")
    assert code == 0, err
    assert f"{correlation(judge, people):.6f}"[:6] in out


def test_what_a_person_changed_in_inspect_is_the_persons_and_the_judges_stays_the_judges(server: Server, geval):
    server.handler = lambda request: completion("Rating: 2")
    log = read_eval_log(run([Sample(input="Q", id=n) for n in range(4)], geval_scorer("coherence", judge=MODEL, n=1)))
    for number in range(4):
        who = ProvenanceData(author="ann", reason="It hangs together.")
        edit_score(log, number, "geval", ScoreEdit(value=1 + number, provenance=who))
    write_eval_log(log, "edited.eval")
    server.handler = lambda request: completion("Rating: 3")
    geval("score", "edited.eval", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl")
    assert sorted(each["human"] for each in rows()) == [1, 2, 3, 4]
    code, out, err = geval("meta-eval", "edited.eval", "out.jsonl", "-c", "coherence", "--resamples", "0")
    assert code == 0 and "constant" in (out + err), out + err  # 2 for each: what the judge had said


def test_what_is_no_log_is_said_in_one_line(geval):
    Path("broken.eval").write_bytes(b"PK not really")
    for name in ("broken.eval", "absent.eval"):
        code, _, err = geval("score", name, "-c", "coherence", "-m", MODEL)
        assert code == 2 and name in err
