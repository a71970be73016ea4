"""What the tasks say: refused metadata, errors of one line, arrows, and which judge it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import completion
from harness import TASKS, evaluate
from lm_eval.tasks import TaskManager

from geval_adapters import InputError
from geval_adapters.judge import local

ROWS = [
    {
        "doc_id": "a",
        "system_id": "x",
        "source": "Rain fell.",
        "system_output": "It rained.",
        "scores": {"coherence": 5},
    },
    {"doc_id": "a", "system_id": "y", "source": "Rain.", "system_output": "Rain it.", "scores": {"coherence": 1}},
]


@pytest.fixture
def rated(tmp_path):
    file = tmp_path / "summeval.json"
    file.write_text(json.dumps(ROWS))
    return file


@pytest.mark.parametrize("task", ["", "_logprobs", "_gptscore", "_pairwise"])
def test_metadata_that_a_task_does_not_take_is_refused(rated, task):
    with pytest.raises(InputError, match=r"unknown key of_grid in --metadata; known here: .*data"):
        evaluate(f"summeval_geval{task}_coherence", "dummy", data=rated, of_grid="floor")


def test_another_criterion_for_a_built_in_task_is_refused_and_says_where_they_are(rated):
    with pytest.raises(
        InputError, match=r"unknown key criterion .*this task rates summeval/coherence, others are in geval"
    ):
        evaluate("summeval_geval_coherence", "dummy", data=rated, criterion="fluency")


def test_the_model_s_arguments_are_no_metadata(rated):
    from lm_eval import simple_evaluate

    def run(**metadata):
        given = {"base_url": "http://x", "data": str(rated), **metadata}
        manager = TaskManager(include_path=str(TASKS), include_defaults=False, metadata=given)
        return simple_evaluate(
            "dummy", model_args="base_url=http://x", tasks=["summeval_geval_coherence"], task_manager=manager,
            metadata=given, bootstrap_iters=0,
        )  # fmt: skip

    assert run()["results"]["summeval_geval_coherence"]["unread,geval"] == 1
    with pytest.raises(InputError, match="unknown key sauce in"):
        run(sauce="article")


def test_what_the_user_can_mend_ends_the_program_in_one_line(tmp_path):
    code = f"""
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
manager = TaskManager(include_path={str(TASKS)!r}, include_defaults=False, metadata={{"data": "missing.json"}})
simple_evaluate("dummy", tasks=["summeval_geval_coherence"], task_manager=manager)
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: missing.json")


def test_every_figure_has_the_arrow_of_its_meaning(tmp_path, server):
    server.handler = lambda request: completion("Rating: 4", logprobs=[{"Rating": 1.0}, {":": 1.0}, {" 4": 1.0}])
    file = tmp_path / "outputs.jsonl"
    file.write_text(json.dumps({"output": "It rained."}) + "\n")
    result = evaluate("geval_outputs", "dummy", data=file, criterion="coherence", judge="openai/gpt-4o-mini")
    assert result["higher_is_better"]["geval_outputs"] == {"geval": True, "geval_unrated": False}


@pytest.mark.skipif(not local.is_installed(), reason="the embedded judge is not installed")
def test_the_embedded_judge_announces_itself(tmp_path, caplog):
    file = tmp_path / "outputs.jsonl"
    file.write_text(json.dumps({"output": "It rained."}) + "\n")
    evaluate("geval_outputs", "dummy", data=file, criterion="coherence", judge="local/smollm2")
    assert "the judge is the embedded local/smollm2" in caplog.text
