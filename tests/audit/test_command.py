"""`geval audit` on the command line, and its page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic
from audits import BOTH, fast, run  # noqa: F401
from conftest import Server, completion

from geval_adapters import load_criteria, report
from geval_adapters.agreement.alpha import krippendorff_alpha
from geval_adapters.agreement.judged import read_judged
from geval_adapters.audit import SideBySide, audit_ratings

# --- the command line ------------------------------------------------------------------------------------------------


def scripted(request: dict) -> dict:
    """A server's judge whose ratings depend on the prompt alone; with log-probabilities."""
    prompt = request["messages"][0]["content"]
    if "<summary_A>" in prompt:
        return completion(" A", logprobs=[{" A": 0.6, " B": 0.4}])
    if "Evaluation criteria:" in prompt:
        return completion("- Coherence: 3\n- Fluency: 4")
    if "<summary>" not in prompt:
        return completion("1. Read.\n2. Rate.")
    score = zlib.crc32(prompt.encode()) % 5 + 1
    if not request.get("logprobs"):
        return completion(*[f"Rating: {score}"] * request.get("n", 1))
    return completion(f"Rating: {score}", logprobs=[{"Rating:": 1.0}, {f" {score}": 0.7, " 3": 0.2, " 2": 0.1}])


def write_samples(path: Path) -> Path:
    rows = [
        {
            "id": sample.id,
            "doc_id": sample.doc_id,
            "system_id": sample.system_id,
            "source": sample.source,
            "output": sample.output,
            "scores": {"coherence": sample.human["summeval/fluency"], "fluency": sample.human["summeval/fluency"]},
        }
        for sample in synthetic.samples(5, 4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_an_audit_resumes_where_it_was_killed(geval, server: Server, tmp_path: Path):
    server.handler = scripted
    command = (
        *("audit", write_samples(tmp_path / "in.jsonl"), "-c", "summeval/coherence", "-c", "summeval/fluency"),
        *(
            "-m",
            "openai/judge",
            "--checks",
            "length,position,anchoring,attack,inconsistency",
            "--budget",
            "160",
            "--output",
            "log.jsonl",
            "--json",
        ),
    )
    code, out, _ = geval(*command)
    assert code == 0
    whole, asked = json.loads(out), len(server.requests)
    assert whole["usage"]["requests"] == asked <= 160
    log = tmp_path / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:60]) + lines[60][:40])  # killed while writing
    known = sum(json.loads(line)["usage"]["requests"] for line in lines[:60])
    server.requests.clear()
    code, out, _ = geval(*command)
    assert code == 0
    assert len(server.requests) == asked - known
    assert json.loads(out) == whole
    server.requests.clear()
    failed = [row for line in log.read_text().splitlines() if (row := json.loads(line))["error"]]
    assert geval(*command)[0] == 0
    assert len(server.requests) == sum(row["usage"]["requests"] for row in failed) < asked / 3  # only these once more
    code, out, _ = geval(*command[:2], "-c", "summeval/fluency", *command[6:])
    assert code == 0
    assert 100 < json.loads(out)["usage"]["requests"] <= 160  # what the log holds of the other criterion does not count


def test_the_recipe_runs_as_it_is_printed(geval, server: Server, tmp_path: Path):
    server.handler = scripted
    code, out, _ = geval("audit", write_samples(tmp_path / "in put.jsonl"), "-c", "summeval/coherence",
                         "-m", "openai/judge", "--checks", "length,inconsistency", "--budget", "60")  # fmt: skip
    assert code == 0
    assert "recommended for summeval/coherence" in out
    line = next(line for line in out.splitlines() if line.startswith("geval score"))
    code, out, _ = geval(*shlex.split(line)[1:], "--json")
    assert code == 0
    assert json.loads(out)["criteria"][0]["n"] == 20


def test_the_recipe_repeats_what_the_audit_was_given(geval, server: Server, tmp_path: Path):
    server.handler = scripted
    rows = [json.loads(line) for line in write_samples(tmp_path / "in.jsonl").read_text().splitlines()]
    named = [{"text" if key == "output" else key: value for key, value in row.items()} for row in rows]
    (tmp_path / "named.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    code, out, _ = geval("audit", "named.jsonl", "-c", "summeval/coherence", "-m", "openai/judge", "--field",
                         "output=text", "--limit", "12", "--timeout", "30", "--checks", "length")  # fmt: skip
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("geval score"))
    assert "--field output=text --limit 12 --timeout 30" in line
    code, out, _ = geval(*shlex.split(line)[1:], "--json")
    assert code == 0
    assert json.loads(out)["criteria"][0]["n"] == 12


def test_the_recipe_of_a_judge_behind_a_router_runs(geval, server: Server, tmp_path: Path):
    server.handler = scripted
    told = {"model": "openai/judge", "api_base": server.base, "api_key": "none"}
    listed = {"model_list": [{"model_name": "group", "litellm_params": told}]}
    (tmp_path / "router.json").write_text(json.dumps(listed))
    code, out, _ = geval("audit", write_samples(tmp_path / "in.jsonl"), "-c", "summeval/coherence", "--limit", "6",
                         "--router", "router.json", "--option", "top_p=0.9", "--checks", "length")  # fmt: skip
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("geval score"))
    assert "--limit 6 --router router.json --option top_p=0.9" in line
    code, out, _ = geval(*shlex.split(line)[1:], "--json")
    assert code == 0
    assert json.loads(out)["criteria"][0]["n"] == 6
    assert server.requests[-1]["top_p"] == 0.9


def test_judges_stand_side_by_side_and_a_jury_of_like_minded_ones_is_one_judge(geval, server: Server, tmp_path: Path):
    server.handler = scripted
    code, out, _ = geval("audit", write_samples(tmp_path / "in.jsonl"), "-c", "summeval/coherence", "-m", "openai/one",
                         "-m", "openai/two", "--checks", "length,persona", "--html", "page.html", "--json")  # fmt: skip
    assert code == 0
    told = json.loads(out)
    assert [audit["judge"] for audit in told["audits"]] == ["openai/one", "openai/two"]
    [shared] = told["shared"]
    assert shared["errors"][0][1] == pytest.approx(1)  # they say the same of the same prompt
    assert shared["effective"] == pytest.approx(1)
    text = Path("page.html").read_text(encoding="utf-8")
    assert "judges side by side" in text and "2 judges are worth 1.0" in text


def test_several_annotators_are_averaged_and_their_noise_is_allowed_for(geval, server: Server, tmp_path: Path):
    server.handler = scripted
    rng = np.random.default_rng(0)
    rows = [json.loads(line) for line in write_samples(tmp_path / "in.jsonl").read_text().splitlines()]
    for row in rows:
        row["scores"] = {"coherence": [row["scores"]["coherence"] + each for each in rng.normal(0, 0.5, 3)]}
    (tmp_path / "three.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("-c", "summeval/coherence", "-m", "openai/judge", "--checks", "length", "--json")
    code, out, _ = geval("audit", "three.jsonl", *command)
    assert code == 0
    assert "noise in people's scores is taken from their differences" in out
    assert "taken to be anywhere in 0.3 to 1" in geval("audit", "in.jsonl", *command)[1]
    assert "is said to be 0.5 to 0.8" in geval("audit", "in.jsonl", *command, "--reliability", "0.5-0.8")[1]


def test_the_recipe_follows_what_was_measured():
    steady, wavering = (run(judge(), ["inconsistency"]).recipes[0] for judge in (synthetic.Unbiased, synthetic.Random))
    assert "--scale 1-10 --form rate_explain --steps stored --n 1 --temperature 0 --readout samples" in steady.command
    assert "--n 20 --temperature 1 --readout samples" in wavering.command
    replies = next(choice for choice in wavering.choices if choice.option == "replies")
    assert replies.measured and "replies lie 0." in replies.reason


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-c", "fluency"), "give either INPUT or --ratings"),
        (("in.jsonl", "-c", "fluency", "-m", "openai/judge", "--checks", "lenght"), "'lenght' is not one of length"),
        (("--ratings", "in.jsonl", "-c", "fluency", "--checks", "attack"), "'attack' needs a judge"),
        (("--ratings", "in.jsonl", "-c", "fluency", "-c", "coherence"), "one --criterion at a time"),
        (("in.jsonl", "-c", "fluency", "-m", "openai/judge", "--reliability", "7"), "above 0 and up to 1"),
        (("in.jsonl", "-c", "fluency", "-m", "openai/judge", "--output", "in.jsonl"), "name another --output"),
    ],
)
def test_what_cannot_be_done_is_said(geval, server: Server, tmp_path: Path, arguments: Sequence[str], said: str):
    write_samples(tmp_path / "in.jsonl")
    code, _, err = geval("audit", *arguments)
    assert code == 2
    assert said in err
    assert not server.requests


def test_a_rubric_is_audited_by_what_can_be_put_to_it_within_the_budget(geval, server: Server, tmp_path: Path):
    server.handler = lambda request: completion("Answer: yes")
    write_samples(tmp_path / "in.jsonl")
    items = "[It is short., It is true., {criterion: It is rude., points: -1}]"
    (tmp_path / "by.yaml").write_text(f"name: by\nrubric: {items}\n")
    command = ("audit", "in.jsonl", "-c", "by.yaml", "-m", "openai/judge", "--budget", 90, "--json")
    code, out, err = geval(*command, "--checks", "persona,neighbours,granularity,position")
    assert code == 0, err
    assert len(server.requests) <= 91, "one call tells what the judge has"
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert checks["persona"]["statistics"]
    for name in ("neighbours", "granularity", "position"):
        assert checks[name]["verdict"] == "not measurable"
        assert "is a rubric" in checks[name]["reason"]


def test_stored_ratings_are_audited_without_a_judge(geval, server: Server, tmp_path: Path):
    server.handler = lambda request: completion(*[f"Rating: {1 + len(request['messages'][0]['content']) % 5}"] * 3)
    samples = write_samples(tmp_path / "in.jsonl")
    geval("score", samples, "-c", "summeval/coherence", "-m", "openai/judge", "--n", "3", "--readout", "samples",
          "--output", "ratings.jsonl")  # fmt: skip
    server.requests.clear()
    code, out, _ = geval("audit", "--ratings", "ratings.jsonl", "-c", "summeval/coherence", "--json")
    assert code == 0 and not server.requests
    found = {check["name"]: check for check in json.loads(out)["checks"]}
    assert set(found) == {"granularity", "inconsistency", "length", "self-preference"}
    told = {each["name"]: each["figure"]["value"] for each in found["inconsistency"]["statistics"]}
    assert (told["α"], told["exact agreement"], told["two replies lie apart"]) == (
        1,
        1,
        0,
    )  # three equal replies each
    assert found["length"]["statistics"][0]["figure"]["n"] == 20


def test_chatgpt_replies_give_the_alpha_of_the_meta_evaluation(data: Path):
    chosen = load_criteria()["topical_chat/naturalness"]
    path = data / "responses" / "topical_chat_gpt3.5_nat_rate_explain.json.gz"
    judged = read_judged(path, chosen, "rate_explain")
    found = audit_ratings(judged, chosen, ["inconsistency"])
    table = [[item.replies[k] for item in judged.items.values()] for k in range(20)]
    expected = krippendorff_alpha(table, "interval")
    figure = next(each.figure for each in found.checks[0].statistics if each.name == "α")
    assert figure.value == pytest.approx(expected)
    assert figure.low is not None and figure.high is not None and figure.low < expected < figure.high


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = synthetic.samples(6, 4)
    evil = {"system 0": "<i>evil</i> $\\frac$", "system 1": "\ud800\x1b[31m"}
    samples = [replace(each, system_id=evil.get(str(each.system_id), each.system_id)) for each in samples]
    samples[0] = replace(samples[0], output="<script>alert(1)</script>")
    checks = ["self-preference", "position", "anchoring"]
    found = run(synthetic.AlwaysFirst(), checks, BOTH, samples=samples, budget=300)
    path = tmp_path_factory.mktemp("page") / "audit.html"
    path.write_text(report.audit_page(SideBySide((found,), ())), encoding="utf-8", errors="replace")
    return path


def test_the_page_asks_for_nothing_from_outside_and_shows_untrusted_text_as_text(page: Path):
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)|url\((?!#|"#)|@import|<script|<i>evil""", text)
    assert text.count('class="card"') == 5
    assert text.count("<svg") > 8
    for name in re.findall(r'class="card" href="#([^"]+)"', text):
        assert f'id="{name}"' in text


def test_the_page_opens_in_a_browser_without_an_error(page: Path, tmp_path: Path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        " --disable-component-update --disable-sync --enable-logging=stderr --v=0"
    )
    opened = subprocess.run(
        [browser, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert opened.stdout.count('class="badge bad"') >= 2  # the card and the section of what was found
    assert "CONSOLE" not in opened.stderr
