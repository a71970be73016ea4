"""The command line, run as a user runs it, against a server on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KEY, Server, completion, refusal

MODEL = "openai/gpt-4o-mini"
FOUR = [{"Rating": 1.0}, {":": 1.0}, {" 4": 0.75, " 5": 0.25}]


def lines(path: Path | str, *rows: object) -> Path:
    path = Path(path)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


ROW = {"id": "a", "source": "A long article.", "output": "A summary.", "scores": {"coherence": 3.5}}


def test_a_file_is_rated_to_the_last_row(server: Server, geval):
    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR)
    lines("in.jsonl", ROW, ROW | {"id": "b", "doc_id": "d", "system_id": "s"})
    chosen = ("-c", "summeval/coherence", "-c", "fluency", "-m", MODEL, "--concurrency", 1)
    code, out, _ = geval("score", "in.jsonl", *chosen, "-o", "out.jsonl")
    assert code == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["criterion"]) for row in rows] == [
        (id, name) for name in ("summeval/coherence", "fluency") for id in ("a", "b")
    ]
    first = rows[0]
    assert first.keys() >= {
        "id", "doc_id", "system_id", "criterion", "score", "normalized", "distribution", "coverage", "bounds",
        "std_error", "method", "n_valid", "n_failed", "rationale", "error", "usage", "signature", "human",
        "output", "reference", "sample",
    }  # fmt: skip
    assert first["score"] == pytest.approx(4.25)
    assert first["normalized"] == pytest.approx(0.8125)
    assert first["distribution"] == pytest.approx({"4": 0.75, "5": 0.25})
    assert first["human"] == 3.5
    assert first["usage"]["requests"] == 1
    assert rows[1]["doc_id"] == "d"
    assert "4.250" in out
    assert "logprobs" in out
    assert "model:openai/gpt-4o-mini|criterion:summeval/coherence@" in out


def test_json_is_one_document_with_ratings_and_summary(server: Server, geval):
    server.handler = lambda request: completion(*["Rating: 4"] * request.get("n", 1))
    lines("in.jsonl", ROW, ROW | {"id": "b"})
    code, out, _ = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--json")
    result = json.loads(out)
    assert code == 0
    assert [rating["score"] for rating in result["ratings"]] == [4, 4]
    (summary,) = result["criteria"]
    assert (summary["n"], summary["mean"], summary["std_error"], summary["failed"]) == (2, 4, 0, 0)
    assert summary["methods"] == {"samples": 2}


def test_what_is_not_rated_is_counted_with_its_reason_and_is_no_zero(server: Server, geval):
    def handler(request):
        refuses = "naughty" in request["messages"][0]["content"]
        return completion("I'm sorry, I can't rate that." if refuses else "Rating: 4")

    server.handler = handler
    lines("in.jsonl", ROW, ROW | {"id": "b", "output": "naughty"})
    code, out, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--readout", "samples", "--n", 1)
    assert code == 1
    assert "4.000" in out
    assert "1 not rated: the judge refused" in err


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"output": "x"', "in.jsonl:2: is not valid JSON"),
        ("[1, 2]", "in.jsonl:2: expected an object"),
        ('{"text": "x"}', "in.jsonl:2: no output (the columns are text); name the column with --field output=COLUMN"),
        ('{"output": {"a": 1}}', "in.jsonl:2: output: must be text"),
        ('{"output": "x", "scores": "high"}', "in.jsonl:2: scores: must be a valid number"),
    ],
)
def test_a_bad_line_is_named_before_anything_is_asked(server: Server, geval, row: str, said: str):
    lines("in.jsonl", ROW, row, ROW | {"id": "c"})
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL)
    assert code == 2
    assert said in err
    assert server.requests == []
    code, out, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--skip-bad-lines", "--json")
    assert code == 0
    assert len(json.loads(out)["ratings"]) == 2
    assert f"1 bad lines were passed over, the first: {said}" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["in.jsonl", "-c", "coherense"], "unknown criterion 'coherense': did you mean coherence"),
        (
            ["in.jsonl", "-c", "correctness"],
            "in.jsonl:1: no reference (the columns are id, source, output, scores); name",
        ),
        (["none.jsonl", "-c", "coherence"], "none.jsonl: No such file"),
        (["empty.jsonl", "-c", "coherence"], "empty.jsonl: is empty"),
        (["binary.jsonl", "-c", "coherence"], "binary.jsonl: is not text in UTF-8"),
        (["broken.parquet", "-c", "coherence"], "broken.parquet: is not a readable Parquet file"),
        (["in.jsonl", "-c", "coherence", "--scale", "3-3"], "at least two different values"),
        (["in.jsonl", "-c", "coherence", "--scale", "low"], "not a scale: 'low'"),
        (["in.jsonl", "-c", "coherence", "--form", "prose"], "unknown form 'prose'"),
        (["in.jsonl", "-c", "coherence", "--recipe", "best"], "'best' is not one of rate_explain, geval"),
        (["in.jsonl", "-c", "coherence", "--readout", "guess"], "'guess' is not one of auto, logprobs, samples"),
        (["in.jsonl", "-c", "coherence", "--field", "output"], "write FIELD=COLUMN"),
        (["in.jsonl", "-c", "coherence", "--field", "text=output"], "unknown field text"),
        (["in.jsonl", "-c", "coherence", "-o", "in.jsonl"], "in.jsonl:1: is no row of a run; name another --output"),
        (["in.jsonl", "-c", "coherence", "-o", "x.csv"], "x.csv: a run is kept as JSON lines, from which it can go on"),
        (["in.jsonl", "-c", "coherence", "-o", "x.parquet"], "name it x.jsonl"),
        (["in.jsonl", "-c", "coherence", "-m", "local/none.gguf"], "local/none.gguf: no such file"),
    ],
)
def test_bad_usage_is_one_line_that_says_what_to_do(server: Server, geval, arguments: list[str], said: str):
    lines("in.jsonl", ROW)
    Path("empty.jsonl").touch()
    Path("binary.jsonl").write_bytes(bytes(range(128, 256)))
    Path("broken.parquet").write_bytes(b"PAR1 and no more")
    code, _, err = geval("score", *([] if "-m" in arguments else ["-m", MODEL]), *arguments)
    assert code == 2
    assert said in " ".join(err.replace("│", " ").split())
    assert server.requests == []


def test_a_missing_key_is_one_line(monkeypatch, geval):
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    lines("in.jsonl", ROW)
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL)
    assert code == 2
    assert "openai/gpt-4o-mini: no API key: set OPENAI_API_KEY" in err


def test_what_was_done_is_kept_when_the_judge_goes_away(server: Server, geval):
    def handler(request):
        if len(server.requests) > 3:
            raise refusal(401, f"Incorrect API key provided: {KEY}")
        return completion("Rating: 4", logprobs=FOUR)

    server.handler = handler
    lines("in.jsonl", *(ROW | {"id": str(i)} for i in range(40)))
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", "--concurrency", 1)
    assert code == 2
    assert "Incorrect API key provided: [key]" in err
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert sum(row["error"] is None for row in rows) == 3
    assert len(server.requests) <= 3 + 21, "twenty refusals in a row end the run"


def test_huge_and_broken_text_is_rated(server: Server, geval):
    lines("in.jsonl", {"output": "x" * 5_000_000}, '{"output": "a\\u0000b\\ud800c"}')
    code, out, err = geval(
        "score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--json", "--n", 1, "--readout", "samples"
    )
    assert code == 0
    assert len(json.loads(out)["ratings"]) == 2
    assert "1 samples hold NUL or lone surrogates, which the judge was shown as U+FFFD" in err


@pytest.mark.parametrize("name", ["in.json", "in.csv", "in.tsv", "in.parquet", "in.jsonl.gz"])
def test_every_file_format_gives_the_same_samples(server: Server, geval, name: str):
    import gzip

    import pandas

    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR)
    rows = [{"input": 'A, "B"\nC', "my_text": "Ünï", "id": "1"}, {"input": "D", "my_text": "E", "id": "2"}]
    frame = pandas.DataFrame(rows)
    {
        "in.json": lambda: Path(name).write_text(json.dumps(rows, indent=1)),
        "in.csv": lambda: frame.to_csv(name, index=False),
        "in.tsv": lambda: frame.to_csv(name, index=False, sep="\t"),
        "in.parquet": lambda: frame.to_parquet(name),
        "in.jsonl.gz": lambda: Path(name).write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode())),
    }[name]()
    arguments = ("-c", "helpfulness", "-m", MODEL, "--field", "output=my_text", "--concurrency", 1, "--json")
    code, out, _ = geval("score", name, *arguments)
    assert code == 0
    assert [rating["id"] for rating in json.loads(out)["ratings"]] == ["1", "2"]
    assert '<input>\nA, "B"\nC\n</input>' in server.requests[0]["messages"][0]["content"]
    assert "<output>\nÜnï\n</output>" in server.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    "row",
    [
        {"input": "Q", "actual_output": "A", "expected_output": "R", "retrieval_context": ["C1", "C2"]},  # DeepEval
        {"inputs": "Q", "outputs": "A", "reference_outputs": "R", "context": "C1\n\nC2"},  # openevals
        {"user_input": "Q", "response": "A", "reference": "R", "retrieved_contexts": ["C1", "C2"]},  # RAGAS
        {"question": "Q", "answer": "A", "ground_truth": "R", "contexts": ["C1", "C2"]},  # RAGAS before .2
        {"prompt": {"raw": "Q"}, "response": {"output": "A"}, "__expected": "R", "context": "C1\n\nC2"},  # promptfoo
    ],
)
def test_the_columns_of_other_tools_are_known(row: dict, tmp_path: Path):
    from geval_adapters import read_samples

    (sample,) = read_samples(lines(tmp_path / "in.jsonl", row))
    assert (sample.source, sample.output, sample.reference) == ("Q", "A", "R")
    assert sample.context in ("C1\n\nC2", "[1] passage:\n    C1\n[2] passage:\n    C2")


def test_text_from_a_file_does_nothing_to_the_terminal(server: Server, geval):
    lines("in.jsonl", {"id": "[red]x\x1b[2J", "output": "\x1b]0;owned\x07 [bold]hi"})
    _, out, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL)
    assert "\x1b" not in out + err
    assert "[bold]hi" in out


def test_criteria_lists_what_can_be_rated(geval):
    code, out, _ = geval("criteria")
    assert code == 0
    for name in ("coherence", "correctness", "harmlessness", "summeval/fluency", "topical_chat/groundedness"):
        assert name in out
    _, out, _ = geval("criteria", "--json")
    scales = {row["criterion"]: row["scale"] for row in json.loads(out)}
    assert scales["qags/consistency"] == "0-1"
    assert scales["topical_chat/naturalness"] == "1-3"


def test_prompt_prints_exactly_what_is_sent(server: Server, geval):
    lines("in.jsonl", ROW)
    _, out, _ = geval("prompt", "summeval/coherence", "in.jsonl", "--form", "analyze_rate", "--json")
    geval("score", "in.jsonl", "-c", "summeval/coherence", "--form", "analyze_rate", "-m", MODEL)
    assert json.loads(out) == server.requests[0]["messages"]
    _, out, _ = geval("prompt", "Is the reply polite?")
    assert "Is the reply polite?" in out
    assert "{output}" in out


def test_an_interrupted_run_keeps_what_was_done(server: Server, tmp_path: Path):
    import os
    import signal
    import time

    server.handler = lambda request: time.sleep(0.2) or completion("Rating: 4", logprobs=FOUR)
    lines(tmp_path / "in.jsonl", *(ROW | {"id": str(i)} for i in range(200)))
    arguments = ["score", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", "--concurrency", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from geval_adapters.cli import main; main()", *arguments],
        cwd=tmp_path, env=os.environ, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    while len(server.requests) < 10:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert 0 < len(rows) < 200
    assert "coherence" in out


def test_the_version_is_said(geval):
    import geval_adapters

    code, out, _ = geval("--version")
    assert code == 0
    assert out == f"geval-adapters {geval_adapters.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "geval_adapters", "--version"], capture_output=True, text=True)
    assert done.stdout == out


def test_a_run_that_ends_before_it_began_shows_no_table(server: Server, geval):
    def handler(request):
        raise refusal(401, "no such key")

    server.handler = handler
    lines("in.jsonl", ROW)
    code, out, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL)
    assert (code, out) == (2, "")
    assert "no such key" in err


@pytest.mark.parametrize("verb", ["score", "rank", "meta-eval", "audit"])
def test_help_lists_what_an_option_can_be(geval, verb: str):
    _, out, _ = geval(verb, "--help")
    for allowed in {
        "score": ("rate_explain|geval|llm_eval", "auto|logprobs|samples", "local|ray", "keep|floor|reject"),
        "rank": ("full|random|no_repeat|symmetric|chain|active", "win-ratio|average|bradley-terry", "bare|instructed"),
        "meta-eval": ("dataset|document|system", "score_only|free_text|rate_explain|analyze_rate"),
        "audit": ("position",),
    }[verb]:
        assert allowed in out.replace("\n", "")


def test_help_loads_no_heavy_library():
    heavy = ("litellm", "scipy", "numpy", "langchain_core", "langchain_classic", "lm_eval", "aiohttp", "jinja2", "yaml")
    probe = f"""
import sys
from geval_adapters.cli.app import app
try:
    app(["--help"])
finally:
    print([name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("bars", "code", "last"),
    [
        (("--at-least", 4.2, "--each-at-least", 4), 0, ""),
        (("--at-least", 4.3), 1, "coherence: the mean of 2, 4.250, is under --at-least 4.3"),
        (("--each-at-least", 4.3), 1, "coherence: 2 of 2 scores are under --each-at-least 4.3"),
    ],
)
def test_a_bar_that_is_missed_is_exit_code_one_and_the_last_line(server: Server, geval, bars, code: int, last: str):
    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR)
    lines("in.jsonl", ROW, ROW | {"id": "b"})
    ended, out, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, *bars, "--html", "page.html")
    assert ended == code
    assert "4.250" in out
    assert (err.strip().splitlines() or [""])[-1] == last
    assert "Mean coherence: 4.250" in Path("page.html").read_text()


def test_two_criteria_of_one_name_are_two_on_the_page(server: Server, geval):
    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR)
    lines("in.jsonl", ROW)
    for name, text in (("one.yaml", "Is it kind?"), ("two.yaml", "Is it short?")):
        Path(name).write_text(f"name: quality\ndefinition: {text}\nscale: 1-5\n")
    code, _, _ = geval("score", "in.jsonl", "-c", "one.yaml", "-c", "two.yaml", "-m", MODEL, "--html", "page.html")
    assert code == 0
    import re

    assert len(set(re.findall(r"Mean (quality@\w+): 4.250", Path("page.html").read_text()))) == 2


ANCHORED = """
name: tone
definition: How kind is the answer?
scale: 1-3
anchors: {1: "rude, or mocking", 3: warm}
"""


def test_what_a_score_means_is_told_to_the_judge_and_in_the_list(server: Server, geval):
    lines("in.jsonl", ROW)
    Path("tone.yaml").write_text(ANCHORED)
    geval("score", "in.jsonl", "-c", "tone.yaml", "-m", MODEL)
    assert "How kind is the answer?\n1: rude, or mocking\n3: warm\n" in server.requests[0]["messages"][0]["content"]
    code, out, _ = geval("criteria", "tone.yaml")
    assert code == 0
    assert "anchors:\n  1: rude, or mocking\n  3: warm\n" in out
    _, out, _ = geval("criteria", "tone.yaml", "--json")
    assert json.loads(out)["anchors"] == {"1": "rude, or mocking", "3": "warm"}
    code, _, err = geval("score", "in.jsonl", "-c", "tone.yaml", "-m", MODEL, "--scale", "1-10")
    assert code == 2
    assert "criterion 'tone' has anchors for 1-3, and none for 1-10" in err
    Path("tone.yaml").write_text(ANCHORED.replace("3: warm", "4: warm"))
    code, _, err = geval("criteria", "tone.yaml")
    assert code == 2
    assert "criterion 'tone' has an anchor for 4, not on 1-3" in err


def test_anchors_change_what_a_criterion_is_and_their_absence_does_not(geval):
    from geval_adapters import load_criteria
    from geval_adapters.criteria import find_criterion

    Path("tone.yaml").write_text(ANCHORED)
    with_anchors = find_criterion("tone.yaml")
    Path("tone.yaml").write_text(ANCHORED.partition("anchors")[0])
    assert find_criterion("tone.yaml").hash != with_anchors.hash
    assert load_criteria()["coherence"].hash == "84d4d681"


def test_an_empty_reply_says_how_it_ended(server: Server, geval):
    server.handler = lambda request: completion("", finish="content_filter")
    lines("in.jsonl", ROW)
    code, _, err = geval("score", "in.jsonl", "-c", "coherence", "-m", MODEL, "--readout", "samples", "--n", 1)
    assert code == 1
    assert "1 not rated: the reply is empty (finish reason: content_filter)" in err
