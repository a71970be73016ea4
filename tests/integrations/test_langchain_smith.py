"""Evaluators for LangSmith."""

import asyncio
import re
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_models import TEXT, Preferring, Scripted, scripted, server, uploaded, weighted  # noqa: F401
from langchain_core.language_models import BaseChatModel
from langsmith import aevaluate, evaluate, schemas
from langsmith.evaluation import evaluate_comparative
from langsmith.run_helpers import tracing_context

from geval_adapters import GEval, InputError, JudgeError
from langchain_geval import (
    ChatModelJudge,
    geval_evaluator,
    load_evaluator,
    pairwise_geval_evaluator,
)

pytest_plugins = ["pytester"]


def examples() -> list[schemas.Example]:
    return [
        schemas.Example(id=uuid.uuid4(), inputs={"question": question}, outputs={"answer": answer})
        for question, answer in (("Capital of France?", "Paris"), ("Capital of Italy?", "Rome"))
    ]


def answer(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"answer": f"An answer to: {inputs['question']}"}


def test_langsmith_evaluate_takes_it_as_it_is() -> None:
    llm = scripted(weighted())
    results = evaluate(
        answer,
        data=examples(),
        evaluators=[geval_evaluator("correctness", llm=llm), geval_evaluator(["coherence", "fluency"], llm=llm)],
        upload_results=False,
    )
    rows = list(results)
    assert len(rows) == 2
    for row in rows:
        feedback = {each.key: each for each in row["evaluation_results"]["results"]}
        assert set(feedback) == {"correctness", "coherence", "fluency"}
        assert all(each.score == pytest.approx(4.1) for each in feedback.values())
        assert feedback["correctness"].metadata["method"] == "logprobs"
    prompts = [request["messages"][0].content for request in llm.seen]
    correctness = [prompt for prompt in prompts if "Correctness" in prompt]
    assert any("Rome" in p and "An answer to: Capital of Italy?" in p for p in correctness)


def test_each_examples_rubric_is_taken_from_the_dataset_and_never_from_the_run() -> None:
    llm = scripted("Answer: yes")
    rubrics = [["Names Paris.", {"criterion": "Is rude.", "points": -0.5}], ["Names Rome.", "Is short."]]
    data = [
        schemas.Example(id=uuid.uuid4(), inputs={"question": "?"}, outputs={"answer": "Paris", "rubric": rubrics[0]}),
        schemas.Example(id=uuid.uuid4(), inputs={"question": "?", "rubrics": rubrics[1]}, outputs={"answer": "Rome"}),
    ]
    results = evaluate(
        lambda inputs: {"answer": "An answer.", "rubric": ["Is it text?"]},
        data=data,
        evaluators=[geval_evaluator("rubric", llm=llm)],
        upload_results=False,
    )
    scores = {row["example"].id: row["evaluation_results"]["results"][0].score for row in results}
    assert [scores[each.id] for each in data] == [0.5, 1.0]
    asked = "".join(request["messages"][0].content for request in llm.seen)
    assert all(item in asked for item in ("Names Paris.", "Is rude.", "Names Rome.", "Is short."))
    assert "Is it text?" not in asked


def test_nothing_is_uploaded_where_langsmith_was_told_not_to(uploaded: list[str]) -> None:
    evaluator = geval_evaluator("coherence", llm=scripted(weighted()))
    list(evaluate(answer, data=examples(), evaluators=[evaluator], upload_results=False))
    assert uploaded == []


def test_where_tracing_is_on_the_evaluator_and_its_judge_are_traced(uploaded: list[str]) -> None:
    with tracing_context(enabled=True):
        geval_evaluator("coherence", llm=scripted(weighted()))(outputs=TEXT)
    assert uploaded == ["geval", "Scripted"]


def test_langsmith_aevaluate_takes_it_as_it_is() -> None:
    async def target(inputs: dict[str, Any]) -> dict[str, Any]:
        return answer(inputs)

    async def rows() -> list[Any]:
        evaluators = [geval_evaluator("coherence", llm=scripted(weighted()))]
        results = await aevaluate(target, data=examples(), evaluators=evaluators, upload_results=False)
        return [row async for row in results]

    scores = [row["evaluation_results"]["results"][0].score for row in asyncio.run(rows())]
    assert scores == pytest.approx([4.1, 4.1])


def test_a_failed_rating_is_feedback_without_a_score_and_the_comment_says_why() -> None:
    evaluator = geval_evaluator("coherence", llm=scripted("I will not say."), n=1)
    (row, _) = list(evaluate(answer, data=examples(), evaluators=[evaluator], upload_results=False))
    (feedback,) = row["evaluation_results"]["results"]
    assert (feedback.key, feedback.score) == ("coherence", None)
    assert "no rating in the reply" in feedback.comment


def test_the_openevals_convention_and_the_rationale_as_comment() -> None:
    llm = scripted("Rating: 4\nRationale: It holds together.")
    evaluator = geval_evaluator("correctness", llm=llm, n=1, explain=True)
    feedback = evaluator(inputs="Capital of France?", outputs="Paris.", reference_outputs="Paris")
    assert feedback["key"] == "correctness"
    assert feedback["score"] == 4.0
    assert feedback["comment"] == "It holds together."
    assert feedback["metadata"]["method"] == "single"


def test_fields_are_found_by_name_and_by_what_the_user_says() -> None:
    llm = scripted(weighted())
    grounded = geval_evaluator("groundedness", llm=llm)
    grounded(inputs={"question": "Who?", "context": "Ann did it."}, outputs={"answer": "Ann.", "tokens": 3})
    prompt = llm.seen[0]["messages"][0].content
    assert "Ann did it." in prompt and "Who?" in prompt and "tokens" not in prompt
    named = geval_evaluator("coherence", llm=llm, columns={"output": "essay"})
    named(outputs={"essay": "My essay.", "title": "No title"})
    assert "My essay." in llm.seen[1]["messages"][0].content and "No title" not in llm.seen[1]["messages"][0].content
    with pytest.raises(InputError, match="'essay', 'title'"):
        geval_evaluator("coherence", llm=llm)(outputs={"essay": "My essay.", "title": "No title"})
    with pytest.raises(InputError, match="unknown field essay"):
        geval_evaluator("coherence", llm=llm, columns={"essay": "output"})


class Comparing:
    """As much of a LangSmith client as `evaluate_comparative` asks for."""

    def __init__(self, data: list[schemas.Example], outputs: list[list[dict[str, Any]]]) -> None:
        dataset, tenant = uuid.uuid4(), uuid.uuid4()
        now = datetime.now(timezone.utc)
        self.info = SimpleNamespace(instance_flags={})
        self.data = data
        self.experiments = [
            schemas.TracerSessionResult(id=uuid.uuid4(), name=f"e{i}", tenant_id=tenant, reference_dataset_id=dataset)
            for i in range(len(outputs))
        ]
        self.runs = {
            experiment.id: [
                schemas.Run(
                    id=uuid.uuid4(), name="run", start_time=now, run_type="chain", inputs=example.inputs,
                    outputs=output, reference_example_id=example.id, session_id=experiment.id,
                    trace_id=uuid.uuid4(), dotted_order="",
                )
                for example, output in zip(data, its_outputs, strict=True)
            ]
            for experiment, its_outputs in zip(self.experiments, outputs, strict=True)
        }  # fmt: skip
        self.feedback: list[dict[str, Any]] = []

    def create_comparative_experiment(self, name: str, **about: Any) -> Any:
        return SimpleNamespace(id=about["id"], reference_dataset_id=uuid.uuid4())

    def list_runs(self, project_id: uuid.UUID, **_: Any) -> list[schemas.Run]:
        return self.runs[project_id]

    def list_examples(self, example_ids: list[uuid.UUID], **_: Any) -> list[schemas.Example]:
        return [each for each in self.data if each.id in example_ids]

    def create_feedback(self, **feedback: Any) -> None:
        self.feedback.append(feedback)


def compared(outputs: list[list[dict[str, Any]]], llm: BaseChatModel) -> tuple[Comparing, dict[uuid.UUID, Any]]:
    client = Comparing(examples(), outputs)
    evaluator = pairwise_geval_evaluator("coherence", llm=llm)
    evaluate_comparative(client.experiments, evaluators=[evaluator], client=client)  # type: ignore[arg-type]
    return client, {each["run_id"]: each for each in client.feedback}


def test_evaluate_comparative_scores_each_run_by_the_probability_that_it_is_better() -> None:
    client, feedback = compared(
        [[{"answer": "a gold ring"}, {"answer": "one"}], [{"answer": "a ring"}, {"answer": "two"}]],
        Preferring(word="gold"),
    )
    first, second = ([run.id for run in client.runs[each.id]] for each in client.experiments)
    scores = {run: each["score"] for run, each in feedback.items()}
    assert [scores[run] for run in (*first, *second)] == pytest.approx([0.8, 0.5, 0.2, 0.5])
    assert {each["key"] for each in feedback.values()} == {"pairwise coherence"}
    assert "changes with the order" in feedback[first[1]]["comment"]


def test_three_experiments_are_compared_all_with_all_and_what_failed_has_no_score() -> None:
    three = [[{"answer": text}, {"answer": text}] for text in ("a gold ring", "a ring", "rings")]
    client, feedback = compared(three, Preferring(word="gold"))
    runs = [client.runs[each.id][0].id for each in client.experiments]
    assert [feedback[run]["score"] for run in runs] == pytest.approx([0.8, (0.2 + 0.5) / 2, (0.2 + 0.5) / 2])
    _, failed = compared(three[:2], scripted("I cannot tell you."))
    assert len(failed) == 4 and all(each["score"] is None and each["comment"] for each in failed.values())


PYTEST_FILE = """
import pytest
from langchain_core.language_models import FakeListChatModel
from langsmith import testing as t
from langchain_geval import geval_evaluator

politeness = geval_evaluator("Is the reply polite?", llm=FakeListChatModel(responses=["Rating: 4"]))


@pytest.mark.langsmith
def test_the_reply_is_polite():
    reply = "You are most welcome."
    t.log_inputs({"message": "Thank you!"})
    t.log_outputs({"reply": reply})
    feedback = politeness(inputs="Thank you!", outputs=reply)
    t.log_feedback(key=feedback["key"], score=feedback["score"])
    assert feedback["score"] >= 4
"""


def test_it_works_with_langsmiths_pytest_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TEST_TRACKING", "false")
    pytester.makepyfile(PYTEST_FILE)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.makepyfile(PYTEST_FILE.replace("Rating: 4", "Rating: 2"))
    pytester.runpytest_inprocess().assert_outcomes(failed=1)


def test_a_batch_takes_as_long_as_its_slowest_and_not_all_in_turn() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted("Rating: 4", pause=0.1), n=1, readout="samples")
    began = time.monotonic()
    geval.batch([f"text {i}" for i in range(16)])
    assert time.monotonic() - began < 0.8


def test_the_judge_can_be_used_by_the_core_alone() -> None:
    rating = GEval("coherence", ChatModelJudge(scripted(weighted()), name="acme/judge")).rate(TEXT)
    assert rating.score == pytest.approx(4.1)
    assert str(rating.signature).startswith("model:acme/judge|")


def test_the_example_for_pytest_runs_as_written_and_without_an_account(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, server: Any
) -> None:
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_TEST_TRACKING"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_BASE", server[0])
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    page = (Path(__file__).parents[2] / "docs" / "langchain.md").read_text(encoding="utf-8")
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def test_" in block)
    pytester.makepyfile(example)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)  # in here it would drop modules


def test_what_frameworks_keep_of_a_rating() -> None:
    llm = scripted(weighted())
    result = load_evaluator("geval", criteria="coherence", llm=llm).evaluate_strings(prediction="A text.")
    feedback = geval_evaluator("coherence", llm=llm)({}, {"output": "A text."}, None)
    for kept in (result, feedback["metadata"]):
        assert kept["method"] == "logprobs" and kept["coverage"] == pytest.approx(1)
        assert {"bounds", "std_error", "n_failed", "distribution"} <= set(kept)
        assert "coherence" in kept["signature"] and "cost" in kept["usage"]


def test_a_judge_that_cannot_be_asked_is_an_exception_of_the_evaluator() -> None:
    refusal = PermissionError("Incorrect API key provided")
    refusal.status_code = 401  # type: ignore[attr-defined]
    with pytest.raises(JudgeError):
        geval_evaluator("coherence", llm=scripted(refusal))({}, {"output": "A text."}, None)
