"""`geval audit`: planted biases are found, their absence is too, and what was asked is never asked again."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import Counter

import numpy as np
import pytest
import synthetic
from audits import BOTH, CONSISTENCY, fast, run, verdicts  # noqa: F401

from geval_adapters import Sample, Scale, load_criteria, report
from geval_adapters.agreement.judged import Item, JudgedFile
from geval_adapters.audit import CHECKS, AuditRun, Request, SideBySide, audit_ratings
from geval_adapters.audit.asking import Asking
from geval_adapters.judge import local
from geval_adapters.judge.base import Answer
from geval_adapters.prompts import wording

ASKING = [name for name in CHECKS if name != "familiarity"]


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
        (synthetic.Obeys(), "neighbours", "turned against others"),
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
        items.append(Item(str(place), str(place // 5), None, replies[0], None, replies))
    judged = JudgedFile("x", {item.id: item for item in items}, 0)
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


def test_too_few_documents_for_an_interval_are_named_as_the_reason():
    found = run(synthetic.Unbiased(), ["persona"], samples=synthetic.samples(4, 5))
    assert found.checks[0].verdict == "unclear"
    page = report.audit_page(SideBySide((found,), ()))
    assert "it needs 6 documents, and there are 4" in page
