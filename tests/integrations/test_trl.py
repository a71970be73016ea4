"""Reward functions, called as TRL 1.16 calls them (`GRPOTrainer._calculate_rewards`); TRL itself is not needed."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import subprocess
import sys

import pytest
from conftest import Server, completion, refusal

from geval_adapters import Criterion, InputError, JudgeError, Scale
from trl_geval import AsyncReward, GEvalReward, GroupReward

MODEL = "openai/gpt-4o-mini"


class Trainer:
    """As much of a trainer as calls a reward function: keywords only, columns repeated, hooks for logging."""

    def __init__(self) -> None:
        self.extra: dict[str, list] = {}
        self.metrics: dict[str, list[float]] = {}

    def rewards(self, function, prompts: list, completions: list, **columns: list) -> list[float | None]:
        name = getattr(function, "__name__", type(function).__name__)
        keywords = {
            "trainer_state": object(),
            "log_extra": lambda column, values: self.extra.setdefault(column, []).extend(values),
            "log_metric": lambda metric, value: self.metrics.setdefault(metric, []).append(value),
            **columns,
        }
        ids = [[1, 2]] * len(prompts)
        called = function(prompts=prompts, completions=completions, completion_ids=ids, **keywords)
        rewards = asyncio.run(called) if inspect.iscoroutinefunction(function.__call__) else called
        assert isinstance(name, str) and len(rewards) == len(prompts)
        assert all(reward is None or (isinstance(reward, float) and 0 <= reward <= 1) for reward in rewards)
        assert {len(values) for values in self.extra.values()} == {len(prompts)}
        return rewards


@pytest.fixture
def judge(server: Server) -> Server:
    """Rates by the first word after the mark in the text, or not at all; prefers what holds `good`."""

    def handler(request: dict) -> dict:
        told = request["messages"][0]["content"]
        if "broken" in told:
            raise refusal(400, "no")
        if "<output_A>" in told:
            first = told.find("good") < told.find("<output_B>")
            return completion("A", logprobs=[{"A": 0.9, "B": 0.1} if first else {"A": 0.2, "B": 0.8}])
        if "silent" in told:
            return completion("I would rather not.")
        score = "4" if "good" in told else "2"
        return completion(f"Rating: {score}", logprobs=[{"Rating": 1.0}, {":": 1.0}, {f" {score}": 1.0}])

    server.handler = handler
    return server


def test_each_completion_has_a_reward_and_what_is_not_rated_has_none(judge):
    trainer = Trainer()
    reward = GEvalReward("coherence", MODEL, n=1, retries=0)
    texts = ["A good text.", "A poor text.", "A silent text.", "A broken text."]
    assert trainer.rewards(reward, ["Write."] * 4, texts) == [0.75, 0.25, None, None]
    assert trainer.extra["geval_coherence method"][:2] == ["logprobs", "logprobs"]
    assert trainer.extra["geval_coherence error"][:2] == [None, None]
    assert "no rating in the reply" in trainer.extra["geval_coherence error"][2]
    assert "no" in trainer.extra["geval_coherence error"][3]
    assert trainer.extra["geval_coherence coverage"][0] == pytest.approx(1)
    assert trainer.extra["geval_coherence signature"][0].startswith(f"model:{MODEL}|criterion:coherence")
    assert trainer.metrics.pop("geval_coherence/unrated") == [0.5]
    assert trainer.metrics["geval_coherence/dollars"][0] > 0


def test_messages_are_a_conversation_and_columns_are_fields(judge):
    reward = GEvalReward("correctness", MODEL, columns={"reference": "solution"})
    prompts = [[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Capital of France?"}]]
    said = [[{"role": "assistant", "content": "A good answer: Paris."}]]
    assert Trainer().rewards(reward, prompts, said, solution=["Paris"], answer=["not this"]) == [0.75]
    told = judge.requests[0]["messages"][0]["content"]
    assert "Paris." in told and "not this" not in told
    assert Trainer().rewards(
        GEvalReward("correctness", MODEL), ["Q?"], ["A good one."], answer=["x"], ground_truth=["y"]
    ) == [0.75]
    assert "y" in judge.requests[-1]["messages"][0]["content"]


def test_a_column_that_is_missing_is_said_at_once(judge):
    with pytest.raises(InputError, match=r"no reference, which correctness needs, among .*log_"):
        Trainer().rewards(GEvalReward("correctness", MODEL), ["Q?"] * 2, ["A."] * 2)
    assert (
        Trainer().rewards(GEvalReward("correctness", MODEL), ["Q?"] * 2, ["A."] * 2, reference=[None] * 2) == [None] * 2
    )
    with pytest.raises(InputError, match="unknown field answer"):
        GEvalReward("correctness", MODEL, columns={"answer": "x"})
    assert judge.requests == []


def test_one_odd_completion_costs_the_others_nothing(judge):
    trainer = Trainer()
    odd = [{"role": "assistant", "content": [{"type": "hologram"}]}]
    good = [{"role": "assistant", "content": "A good text."}]
    question = [{"role": "user", "content": "Hm?"}]
    assert trainer.rewards(GEvalReward("coherence", MODEL), [question] * 2, [odd, good]) == [None, 0.75]
    assert trainer.extra["geval_coherence error"][0]


def test_a_criterion_of_each_turn_rewards_the_mean_of_the_turns(judge):
    turns = Criterion("relevance", "Is it to the point?", Scale.of("1-5"), judges="each_turn")
    said = [
        {"role": role, "content": text} for role, text in [("assistant", "poor"), ("user", "x"), ("assistant", "good")]
    ]
    reward = GEvalReward(turns, MODEL)
    assert Trainer().rewards(reward, [[{"role": "user", "content": "Hm?"}]], [said]) == [0.5]


def test_a_rubric_rewards_the_share_of_its_points(judge):
    def handler(request: dict) -> dict:
        told = request["messages"][0]["content"]
        said = "yes" if "polite" in told else "no"
        return completion(f"Item1: {said}\nAnswer: {said}", logprobs=None)

    judge.handler = handler
    items = [{"criterion": "Is it polite?", "points": 3}, {"criterion": "Is it short?", "points": 1}]
    own = GEvalReward({"name": "tone", "rubric": items}, MODEL, readout="samples", n=1)
    assert Trainer().rewards(own, ["Hm?"], ["Well."]) == [0.75]
    each = GEvalReward({"name": "held", "definition": "x", "needs": ["rubric"]}, MODEL, readout="samples", n=1)
    assert Trainer().rewards(each, ["Hm?"] * 2, ["Well."] * 2, rubric=[items, items[1:]]) == [0.75, 0]


def test_a_group_is_compared_with_itself_alone(judge):
    trainer = Trainer()
    reward = GroupReward("coherence", MODEL)
    prompts = ["One?"] * 3 + ["Two?"] * 2 + ["Three?"]
    texts = ["A good text.", "A poor text.", "A plain text.", "Poor.", "A good one.", "Alone."]
    rewards = trainer.rewards(reward, prompts, texts)
    assert rewards[0] > 0.7 > 0.5 > rewards[1]
    assert rewards[4] > 0.7 > 0.3 > rewards[3]
    assert rewards[5] is None
    assert trainer.extra["geval_group_coherence error"][5] == "never compared"
    assert len(judge.requests) == 6 + 2
    assert set(trainer.extra["geval_group_coherence method"]) == {"logprobs", None}
    each = 103 / 1e6  # dollars of one request, about
    assert trainer.metrics["geval_group_coherence/dollars"] == [pytest.approx(8 * each * 0.15, rel=0.2)]
    assert trainer.extra["geval_group_coherence signature"][0].startswith(f"model:{MODEL}|")
    ratio = Trainer().rewards(GroupReward("coherence", MODEL, method="win-ratio"), prompts[3:5], texts[3:5])
    assert ratio == [0, 1]


def test_a_judge_that_fails_on_a_pair_leaves_none(judge):
    trainer = Trainer()
    assert (
        trainer.rewards(GroupReward("coherence", MODEL, retries=0), ["One?"] * 2, ["A good text.", "broken"])
        == [None] * 2
    )
    assert all(trainer.extra["geval_group_coherence error"])
    with pytest.raises(InputError, match="unknown method 'bradley-terry'; known: average, win-ratio"):
        GroupReward("coherence", MODEL, method="bradley-terry")


def test_a_judge_that_cannot_be_asked_stops_the_training(judge):
    def handler(request: dict) -> dict:
        raise refusal(401, "bad key")

    judge.handler = handler
    for reward in (GEvalReward("coherence", MODEL), GroupReward("coherence", MODEL)):
        with pytest.raises(JudgeError, match="gpt-4o-mini"):
            Trainer().rewards(reward, ["One?"] * 2, ["A.", "B."])


def test_several_criteria_are_several_functions_told_apart_by_name(judge):
    functions = [GEvalReward(name, MODEL) for name in ("coherence", "summeval/fluency")]
    functions += [GroupReward("fluency", MODEL), AsyncReward(GEvalReward("conciseness", MODEL))]
    assert [each.__name__ for each in functions] == [
        "geval_coherence", "geval_fluency", "geval_group_fluency", "geval_conciseness",
    ]  # fmt: skip
    for each in functions:
        Trainer().rewards(pickle.loads(pickle.dumps(each)), ["One?"] * 2, ["A good text.", "B."])
    assert inspect.iscoroutinefunction(functions[-1].__call__)


def test_neither_torch_nor_trl_is_imported():
    code = "import sys, trl_geval; print({'torch', 'trl', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
