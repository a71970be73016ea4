"""The tasks with a real model: the embedded one, over the OpenAI protocol, and as the judge."""

from __future__ import annotations

import json
import math

import pytest
from harness import TASKS, evaluate, figures
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from geval_adapters.judge import local

pytestmark = pytest.mark.skipif(not local.is_installed(), reason="the embedded model is not installed (extra: local)")

TALK = {"source": "Do you like tea ?", "context": "Green tea is healthy ."}
REPLIES = [("yes , i drink green tea every day !", 3.0), ("the the the", 1.0)]


@pytest.fixture
def talks(tmp_path):
    rows = [
        {
            **TALK,
            "system_output": reply,
            "system_id": str(score),
            "scores": {"coherence": score},
        }
        for reply, score in REPLIES
    ]
    file = tmp_path / "topical_chat.json"
    file.write_text(json.dumps(rows))
    return file


def test_a_model_behind_a_chat_server_is_a_judge_like_any_other(talks, monkeypatch):
    base, key = local.serve(local.SMOLLM2)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    task = "topical_chat_geval_coherence"
    result = simple_evaluate(
        "local-chat-completions",
        model_args={"model": local.SMOLLM2, "base_url": f"{base}/chat/completions", "num_concurrent": 2},
        tasks=[task],
        task_manager=TaskManager(include_path=str(TASKS), include_defaults=False, metadata={"data": str(talks)}),
        apply_chat_template=True,
        bootstrap_iters=0,
    )
    readings = [sample["filtered_resps"][0] for sample in result["samples"][task]]
    assert len(readings) == 2
    assert all(reply.strip() for sample in result["samples"][task] for reply in sample["resps"][0])
    assert any(reading["n_valid"] for reading in readings)
    assert all(reading["score"] is None or 1 <= reading["score"] <= 3 for reading in readings)
    assert figures(result, task)["unread"] == sum(reading["n_failed"] for reading in readings) / 2


def test_the_embedded_model_judges_outputs_by_its_log_probabilities(talks):
    result = evaluate("geval_outputs", "dummy", data=talks, criterion="topical_chat/coherence", judge="local/smollm2")
    found = figures(result, "geval_outputs")
    assert found["geval_unrated"] < 1 and 1 <= found["geval"] <= 3 and not math.isnan(found["geval"])
    ratings = [sample["geval"]["score_of"] for sample in result["samples"]["geval_outputs"]]
    assert {rating["method"] for rating in ratings} == {"logprobs"}
    assert all("model:local/smollm2" in rating["signature"] for rating in ratings)
