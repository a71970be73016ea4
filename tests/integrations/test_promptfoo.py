"""The promptfoo assertion, called as promptfoo 0.123 calls it; and promptfoo itself, where it is on the PATH."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KEY, Server, completion, refusal

from geval_adapters import GEvalError, InputError, JudgeError
from promptfoo_geval import get_assert

MODEL = "openai/gpt-4o-mini"
PAGE = Path(__file__).parents[2] / "docs" / "promptfoo.md"


@pytest.fixture(autouse=True)
def judge(server: Server) -> Server:
    """Rates a bad text 2, an odd one not at all, any other 4."""

    def handler(request: dict) -> dict:
        told = request["messages"][0]["content"]
        if "odd text" in told:
            return completion("I would rather not say.")
        score = "2" if "bad text" in told else "4"
        rest = "\nRationale: It says so."
        steps = [{"Rating": 1.0}, {":": 1.0}, {f" {score}": 1.0}, {rest: 1.0}]
        return completion(f"Rating: {score}{rest}", logprobs=steps)

    server.handler = handler
    return server


def context(config: dict | None = None, **variables: object) -> dict:
    """What promptfoo hands over beside the output, as far as it matters here."""
    about = {"prompt": "The prompt.", "vars": variables, "test": {}, "provider": {}, "logProbs": None}
    return about if config is None else {**about, "config": {"model": MODEL, **config}}


def test_a_rating_is_a_grading_result():
    result = get_assert("A text.", context({"criterion": "coherence", "at_least": 3, "explain": True}))
    assert (result["pass"], result["score"], result["namedScores"]) == (True, 0.75, {"coherence": 0.75})
    assert result["reason"] == "coherence 4 (logprobs, n 1, coverage 1.00), at least 3: It says so."
    assert result["tokensUsed"] == {"total": 103, "prompt": 100, "completion": 3, "cached": 40, "numRequests": 1}
    rating = result["metadata"]["geval"]["coherence"]
    assert (rating["score"], rating["method"], rating["n_failed"], rating["error"]) == (4, "logprobs", 0, None)
    assert rating["signature"].startswith(f"model:{MODEL}|criterion:coherence@")
    json.dumps(result)
    low = get_assert("A bad text.", context({"criterion": "coherence", "at_least": 3}))
    assert (low["pass"], low["score"]) == (False, 0.25)
    assert "under 3" in low["reason"]
    assert get_assert("A bad text.", context({"criterion": "coherence"}))["pass"], "promptfoo's own threshold decides"


def test_a_rationale_does_nothing_to_a_terminal(judge):
    judge.handler = lambda request: completion("Rating: 4\nRationale: Fine.\x1b]0;owned\x07\x1b[31m")
    config = {"criterion": "coherence", "explain": True, "readout": "samples", "n": 1}
    assert get_assert("A text.", context(config))["reason"].endswith(": Fine.�]0;owned��[31m")


def test_several_criteria_are_components_of_which_each_must_pass():
    config = {"criterion": ["coherence", "Is it a bad text?"], "at_least": 3}
    result = get_assert("A text.", context(config))
    assert result["pass"] is False
    assert result["namedScores"] == {"coherence": 0.75, "is_it_a_bad_text": 0.25}
    assert result["score"] == 0.5
    assert [each["pass"] for each in result["componentResults"]] == [True, False]
    assert result["tokensUsed"]["numRequests"] == 2
    assert set(result["metadata"]["geval"]) == {"coherence", "is_it_a_bad_text"}


def test_what_is_not_rated_raises_and_so_does_a_judge_that_cannot_be_asked(judge):
    config = {"criterion": ["coherence", "fluency"], "n": 1}
    with pytest.raises(GEvalError, match=r"coherence was not rated: no rating in the reply.*; fluency was not rated"):
        get_assert("An odd text.", context(config))

    def handler(request: dict) -> dict:
        raise refusal(401, f"bad key {KEY}")

    judge.handler = handler
    with pytest.raises(JudgeError) as error:
        get_assert("A text.", context({"criterion": "coherence", "form": "score_only"}))
    assert KEY not in str(error.value)


def test_fields_come_from_the_variables_and_the_prompt_is_the_source(judge):
    def told(config: dict, output: object = "A text.", **variables: object) -> str:
        get_assert(output, context(config, **variables))
        return judge.requests[-1]["messages"][0]["content"]

    assert "The prompt." in told({"criterion": "relevance"})
    asked = told({"criterion": "relevance"}, question="Where to?")
    assert "Where to?" in asked and "The prompt." not in asked
    config = {"criterion": "correctness", "fields": {"reference": "key"}}
    assert "Forty-two" in told(config, key="Forty-two", reference="not this")
    assert '{"answer": "Paris"}' in told({"criterion": "conciseness"}, {"answer": "Paris"})
    with pytest.raises(InputError, match="no reference"):
        told({"criterion": "correctness"})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "no criterion"),
        ({"criterion": "cohrence"}, "unknown criterion 'cohrence'"),
        ({"criterion": "coherence", "treshold": 3}, r"'treshold'; beside keywords of GEval it has .*at_least"),
        ({"criterion": "coherence", "fields": {"text": "x"}}, "fields: unknown text; known: source"),
    ],
)
def test_a_config_that_cannot_be_used_is_said(config, said):
    with pytest.raises(InputError, match=said):
        get_assert("A text.", context(config))


@pytest.mark.heavy
def test_promptfoo_runs_what_the_page_shows(judge, tmp_path):
    if not (promptfoo := shutil.which("promptfoo")):
        pytest.skip("promptfoo is not on the PATH: npm install --global promptfoo (Node 22.22 or newer)")
    shown = PAGE.read_text(encoding="utf-8")
    for name, text in re.findall(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```$", shown, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(text.replace("openai:chat:gpt-4o-mini", "echo"), encoding="utf-8")
    told = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_PYTHON": sys.executable}
    words = [promptfoo, "eval", "--no-cache", "--no-progress-bar", "-o", "out.json"]
    environment = os.environ | told | {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "kept")}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert (tmp_path / "out.json").is_file(), done.stdout + done.stderr
    results = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]["results"]
    good, bad, odd, turned = sorted(results, key=lambda each: each["testIdx"])
    assert good["success"] and good["namedScores"] == {"relevance": 0.75}
    assert not bad["success"] and bad["namedScores"] == {"coherence": 0.25, "fluency": 0.25}
    parts = [each for each in bad["gradingResult"]["componentResults"] if "metadata" in each]
    assert parts[-1]["metadata"]["geval"]["fluency"]["method"] == "logprobs"
    for each in (odd, turned):
        assert not each["success"], "not rated is no pass, also where the assertion is turned round"
        assert each["namedScores"] == {}
        assert "coherence was not rated: no rating in the reply" in each["gradingResult"]["reason"]
    assert KEY not in (tmp_path / "out.json").read_text(encoding="utf-8")
