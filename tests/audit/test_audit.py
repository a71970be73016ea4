"""`geval audit`: planted biases are found, their absence is too, and what was asked is never asked again."""

from __future__ import annotations

import asyncio
import json
import math
import re
import shlex
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic
from conftest import Server, completion
from scipy import stats

from geval_adapters import Sample, Scale, load_criteria, report
from geval_adapters.agreement import intervals, meta_eval
from geval_adapters.agreement.alpha import krippendorff_alpha
from geval_adapters.audit import CHECKS, Audit, AuditRun, Request, SideBySide, audit_ratings, measures
from geval_adapters.audit.asking import Asking
from geval_adapters.judge import local
from geval_adapters.judge.base import Answer
from geval_adapters.prompts import wording

CONSISTENCY = {"summeval/consistency": load_criteria()["summeval/consistency"]}
BOTH = CONSISTENCY | {"summeval/fluency": load_criteria()["summeval/fluency"]}
ASKING = [name for name in CHECKS if name != "familiarity"]
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(intervals.bootstrap.__kwdefaults__, "resamples", 120)
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path / "cache"))


def run(judge: synthetic.Unbiased, checks: Sequence[str], given: dict = CONSISTENCY, **options) -> Audit:
    samples = options.pop("samples", None) or synthetic.samples()
    run = AuditRun(Request("x.jsonl", samples, given, judge, checks, **{"budget": 4000} | options))
    asyncio.run(run.ask())
    return run.result()


def verdicts(found: Audit) -> dict[str, str]:
    return {check.name: check.verdict for check in found.checks}


# --- who is accused of what ------------------------------------------------------------------------------------------


def test_an_unbiased_judge_is_not_accused_by_any_check():
    found = run(synthetic.Unbiased(), ASKING, BOTH, budget=3000)
    accused = [(check.name, check.criterion, check.telling) for check in found.faults]
    assert not accused
    assert {check.name for check in found.checks} == set(ASKING)
    assert [(check.name, check.criterion) for check in found.checks if check.reason] == [("facts", "summeval/fluency")]


FINE = ("ok", "unclear", "measured")


PERSONA, STEPS = wording("personas")["hhh"][:40], "Evaluation steps:"


@pytest.mark.parametrize(
    ("judge", "check", "verdict"),
    [
        (synthetic.AlwaysFirst(), "position", "biased"),
        (synthetic.RoundNumbers(), "granularity", "biased"),
        (synthetic.CopiesPrevious(), "anchoring", "anchored"),
        (synthetic.LikesLength(), "length", "biased"),
        (synthetic.Obeys(), "attack", "manipulable"),
        (synthetic.Favours(), "self-preference", "biased"),
        (synthetic.Blind(), "source", "blind to the source"),
        (synthetic.Blind(), "facts", "takes fluency for truth"),
        (synthetic.Random(), "inconsistency", "inconsistent"),
        (synthetic.Contrary(), "contradiction", "contradicts itself"),
        (synthetic.Gullible(), "empty", "rates nothing well"),
        (synthetic.Swayed(PERSONA), "persona", "sensitive"),
        (synthetic.Swayed(STEPS), "steps", "sensitive"),
        (synthetic.Swayed("Analysis:"), "temperature", "sensitive"),
        (synthetic.Swayed("Rubric:\n5"), "rubric", "sensitive"),
        (synthetic.Swayed("Rubric:\n3"), "rubric", "sensitive"),
        (synthetic.Swayed("e | d"), "labels", "sensitive"),
        (synthetic.Swayed("of this reference: 1"), "reference", "anchored"),
        (synthetic.Swayed("written by GPT-5"), "dress", "swayed by dress"),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_a_planted_bias_is_found_where_it_is(judge: synthetic.Unbiased, check: str, verdict: str):
    given = BOTH if check == "anchoring" else CONSISTENCY
    others = [name for name in ("length", "self-preference", "position", "persona") if name != check]
    if isinstance(judge, synthetic.Random):
        others = ["position", "persona", "steps"]  # it is as random whatever it is told
    found = verdicts(run(judge, [check, *others], given))
    assert found.pop(check) == verdict
    assert set(found.values()) <= set(FINE)


def test_a_judge_with_much_noise_is_not_called_sensitive():
    found = verdicts(run(synthetic.Waverer(), ["persona", "steps", "rubric", "labels", "reference", "source", "dress"]))
    assert set(found.values()) <= set(FINE)
    assert found["source"] == "ok"


def test_a_judge_that_likes_familiar_text_is_found_and_another_is_not(monkeypatch: pytest.MonkeyPatch):
    def perplexity(text: str, name: str) -> float:
        return 20 + zlib.crc32(text.encode()) % 200

    class Familiar(synthetic.Unbiased):
        def quality(self, criterion: str, texts: dict[str, str]) -> float:
            likely = 1 - (perplexity(texts["summary"], "") - 20) / 200
            return 0.6 * super().quality(criterion, texts) + 0.4 * likely

    monkeypatch.setattr(local, "perplexity", perplexity)
    monkeypatch.setattr(local, "is_installed", lambda: True)
    assert verdicts(run(Familiar(), ["familiarity"])) == {"familiarity": "biased"}
    found = run(synthetic.Unbiased(), ["familiarity"])
    assert found.checks[0].verdict in FINE
    assert [picture.title.split(":")[0] for picture in found.checks[0].pictures] == ["output", "source"]


def test_what_the_data_do_not_allow_is_not_measured_and_says_why():
    bare = [Sample(f"word{n} here", id=str(n), doc_id=str(n)) for n in range(12)]
    fluency = {"summeval/fluency": load_criteria()["summeval/fluency"]}
    found = run(synthetic.Unbiased(), ASKING, fluency, samples=bare, budget=200)
    reasons = {check.name: check.reason for check in found.checks if check.verdict == "not measurable"}
    assert "system_id" in reasons["self-preference"]
    assert "no source" in reasons["source"]
    assert "--criterion" in reasons["anchoring"]
    assert "several candidates" in reasons["position"]
    length = next(check for check in found.checks if check.name == "length")
    assert length.verdict in ("measured", "not measurable")  # without people nothing counts


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_the_budget_holds_and_what_was_left_out_is_said():
    judge = synthetic.Unbiased()
    found = run(judge, ASKING, budget=300)
    assert judge.asked == found.usage.requests <= 300
    persona = next(check for check in found.checks if check.name == "persona")
    assert 3 <= persona.steps < persona.planned == 60
    assert any(f"{persona.steps} of 60 were asked about" in note for note in persona.notes)


def test_a_budget_too_small_for_a_check_is_a_reason_not_a_figure():
    found = run(synthetic.Unbiased(), ["granularity"], budget=60)
    assert re.search(r"only [12] of 60 were asked about, 25 calls each: raise --budget", found.checks[0].reason)
    assert not found.checks[0].statistics


def test_checks_are_interleaved_so_that_a_stop_leaves_all_of_them_partly_measured():
    class Killed(synthetic.Unbiased):
        async def ask(self, messages: list[dict[str, str]], **options: object) -> Answer:
            if self.asked > 250:
                raise KeyboardInterrupt
            return await super().ask(messages, **options)

    audit = AuditRun(Request("x.jsonl", synthetic.samples(), CONSISTENCY, Killed(), ASKING, 4000))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(audit.ask())
    result = audit.result()
    made = {check.name: check.steps for check in result.checks if check.name != "anchoring"}
    assert min(made.values()) >= 2 and max(made.values()) < 60
    assert any("stopped before its end" in note for note in result.notes)


def test_equal_questions_are_asked_once_and_a_retest_is_another_draw():
    asked: Counter[str] = Counter()

    class Listening(synthetic.Unbiased):
        def reply(self, prompt: str) -> str:
            asked[prompt] += 1
            return super().reply(prompt)

    checks = ["length", "self-preference", "dress", "attack", "empty", "facts", "persona"]
    run(Listening(), checks, samples=synthetic.samples(6, 2))
    plain = [prompt for prompt in asked if "assistant" not in prompt and asked[prompt] > 1]
    assert len(plain) == 12  # each sample's plain rating: once, and once more as a retest
    assert sum(asked.values()) == len(asked) + 12 + 1  # and one to learn whether the judge has log-probabilities


@pytest.mark.parametrize("scale", ["0-1", "1-3", "1-5"])
@pytest.mark.parametrize("one_score", [0.5, 0.95])
def test_a_judge_whose_replies_agree_in_nine_of_ten_is_not_inconsistent_whatever_the_prevalence(
    scale: str, one_score: float
):
    rng = np.random.default_rng(4)
    values = np.array(Scale.of(scale).values)
    items = []
    for place in range(100):
        usual = len(values) - 1 if rng.random() < one_score else int(rng.integers(len(values)))
        near = usual - 1 if usual else 1
        replies = tuple(float(values[near if rng.random() < 0.05 else usual]) for _ in range(4))
        items.append(meta_eval.Item(str(place), str(place // 5), None, replies[0], None, replies))
    judged = meta_eval.JudgedFile("x", {item.id: item for item in items}, 0)
    criterion = load_criteria()["summeval/consistency"].on(scale)
    assert verdicts(audit_ratings(judged, criterion, ["inconsistency"])) == {"inconsistency": "ok"}


def test_an_unclear_verdict_says_how_many_items_would_make_it_clear():
    found = run(synthetic.Waverer(), ["persona"], samples=synthetic.samples(7, 1))
    check = found.checks[0]
    assert check.verdict == "unclear"
    assert check.needed is not None and check.needed > 7
    clear = run(synthetic.Waverer(), ["persona"], samples=synthetic.samples(60, 6)).checks[0]
    assert clear.verdict == "ok"


def test_several_criteria_are_asked_for_in_turned_order():
    asked = []

    class Listening(synthetic.Unbiased):
        def reply(self, prompt: str) -> str:
            if "Evaluation criteria:" in prompt:
                asked.append(re.findall(r"(?m)^\d\. (\w+)", prompt))
            return super().reply(prompt)

    run(Listening(), ["anchoring"], BOTH)
    assert sorted(map(tuple, asked))[:: len(asked) - 1] == [("Consistency", "Fluency"), ("Fluency", "Consistency")]
    assert abs(asked.count(["Consistency", "Fluency"]) - len(asked) / 2) <= 0.5


def test_attacks_stay_between_the_tags():
    prompts = []

    class Listening(synthetic.Unbiased):
        def reply(self, prompt: str) -> str:
            prompts.append(prompt)
            return super().reply(prompt)

    run(Listening(), ["attack"], budget=40)
    assert any("binding" in prompt for prompt in prompts)
    assert all(len(re.findall(r"(?i)<\s*/\s*summary", prompt)) == 1 for prompt in prompts)


def test_the_draw_depends_on_the_seed_and_spreads_over_documents():
    first, again, other = (
        [sample.id for sample in Asking(synthetic.Unbiased(), synthetic.samples(), [], seed=seed).samples]
        for seed in (0, 0, 1)
    )
    assert first == again != other
    assert len({name.split("/")[0] for name in first[:12]}) == 12


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
    assert "--scale 1-10 --form rate_explain --steps none --n 1 --temperature 0 --readout samples" in steady.command
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
    judged = meta_eval.read_judged(path, chosen, "rate_explain")
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


# --- statistics against other ways to get them -----------------------------------------------------------------------


def test_entropy_is_that_of_scipy():
    x = RNG.integers(1, 6, size=80).astype(float)
    [entropy] = measures.entropy(x, np.ones((1, 80)))
    assert entropy == pytest.approx(stats.entropy(np.unique(x, return_counts=True)[1], base=2))


def test_the_gaps_between_systems_are_those_of_a_line_fitted_to_the_others():
    judge, people = RNG.normal(size=(2, 30))
    system = np.arange(30) % 3
    weights = np.stack([np.ones(30), RNG.integers(0, 3, 30)]).astype(float)
    gaps = measures.system_gaps(judge, people, system.astype(float), np.zeros(2), weights)
    for row, copies in zip(gaps, weights.astype(int), strict=True):
        j, p, s = (np.repeat(column, copies) for column in (judge, people, system))
        for k in range(3):
            slope, level = np.polyfit(p[s != k], j[s != k], 1)
            assert row[k] == pytest.approx((j[s == k] - level - slope * p[s == k]).mean())


def test_an_effect_beside_quality_is_that_of_a_regression_on_quality_itself():
    """With as much noise in people's scores as in quality, and lengths that go with quality."""
    rng = np.random.default_rng(1)
    quality = rng.normal(size=200_000)
    x = 0.5 * quality + rng.normal(size=quality.size)
    judge, people = 0.7 * quality + 0.2 * x, quality + rng.normal(size=quality.size)
    once = np.ones((1, quality.size))
    corrected = measures.effect_beside_quality(judge, people, x, np.ones(1), once)
    assert corrected[0] == pytest.approx(0.2 * x.std(), abs=0.01)
    naive = measures.effect_beside_quality(judge, people, x, np.zeros(1), once)
    assert naive[0] > 0.3
    mostly_noise = measures.effect_beside_quality(judge, people, x, np.full(1, 1.9), once)
    assert math.isnan(mostly_noise[0])


def test_the_interval_covers_as_often_as_it_says():
    """Means of ten documents of three items; by plain percentiles it would be about 90 %."""
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = (rng.normal(size=(10, 1)) + 0.5 * rng.normal(size=(10, 3))).ravel()
        figure = intervals.bootstrap(
            lambda weights, v=values: weights @ v / weights.sum(axis=1), np.repeat(range(10), 3)
        )
        covered += figure.low < 0 < figure.high
    assert 0.91 <= covered / 200 <= 0.98


def test_round_numbers_count_only_where_a_scale_has_others():
    def excess(scores: Sequence[float], scale: Scale) -> float:
        return float(measures.round_number_excess(np.array(scores), scale, np.ones((1, len(scores))))[0])

    assert math.isnan(excess([1.0, 5.0], Scale.of("1-5")))
    assert excess([1.0, 2.0], Scale.of([1, 1.33, 1.67, 2])) == pytest.approx(0.5)
    assert excess(range(1, 101), Scale.of("1-100")) == pytest.approx(0)


def test_scales_are_binned_to_five_levels_of_equal_width():
    for text in ("1-5", "1-10", "1-100"):
        scale = Scale.of(text)
        levels = measures.binned(np.array(scale.values), scale)
        assert np.unique(levels, return_counts=True)[1].tolist() == [len(scale.values) // 5] * 5


def test_perplexity_is_that_of_the_tokens_asked_for_one_by_one():
    if not local.is_installed():
        pytest.skip("needs the embedded model: see docs/installing.md")
    text = "The cat sat on the mat."
    endpoint = local.serve(local.SMOLLM2)
    ids = local._post(endpoint, "/tokenize", {"content": text})["tokens"]
    before = local._post(endpoint, "/tokenize", {"content": "\n"})["tokens"]
    logprobs = []
    for place, token in enumerate(ids):
        body = {"prompt": before + ids[:place], "n_predict": 1, "temperature": 0, "n_probs": 20_000}
        told = local._post(endpoint, "/completion", body)["completion_probabilities"][0]["top_logprobs"]
        logprobs.append(next(each["logprob"] for each in told if each["id"] == token))
    assert local.perplexity(text) == pytest.approx(math.exp(-np.mean(logprobs)), rel=0.02)
    shuffled = "mat on. the The sat cat"
    assert local.perplexity(shuffled) > 10 * local.perplexity(text)
    assert local.perplexity("") is None
