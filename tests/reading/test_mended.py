"""What was read wrongly once: worded scales, log-probabilities that are none, several samples in one reply."""

from __future__ import annotations

import math

import pytest

from geval_adapters import Scale, read_logprobs, read_many, read_text, read_verdict_logprobs


def tokens(*steps):
    """Log-probability content: each step is the reply's own token, or that and the probabilities of alternatives."""
    content = []
    for step in steps:
        own, alternatives = step if isinstance(step, tuple) else (step, {step: 1.0})
        top = [{"token": token, "logprob": math.log(p)} for token, p in alternatives.items()]
        content.append({"token": own, "logprob": math.log(alternatives[own]), "top_logprobs": top})
    return content


# --- several samples in one reply ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ("Sample1: 2.5\nSample2: 4", (2.5, 4)),
        ("Sample1: It has 3 links.\nSample2: It is dull.\n\nSample1: 2.5\nSample2: 4", (2.5, 4)),
        ("**Sample1**: 3.5 - It has 4 errors.\n**Sample2**: 1", (3.5, 1)),
        ("Sample1: Analysis: clear. Score: 4.5\nSample2: It names 3 towns.", (4.5, None)),
        ("Sample1: 4\nSample1: 3", (3, None)),
        ("sample 1: 7\nSample2: 5", (None, 5)),
        ("<think>Sample1: 1</think>Sample1: 2\nSample2: 3", (2, 3)),
        ("", (None, None)),
    ],
)
def test_several_samples_are_read_by_their_labels(reply, scores):
    found = read_many(reply, ["Sample1", "Sample2"], "1-5")
    assert tuple(reading.score for reading in found.values()) == scores
    assert all(bool(reading.error) == (reading.score is None) for reading in found.values())


LINES = ["Summary 1", "Summary 2", "Summary 3"]
NONE = (None, None, None)


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ("### Summary 1\nRating: 4\n\n### Summary 2\nRating: 3\n\n### Summary 3\nRating: 2", (4, 3, 2)),
        ("**Summary 1**\n4\n**Summary 2**\n3\n**Summary 3**\n2", (4, 3, 2)),
        (" 4\nSummary 2: 3\nSummary 3: 2", (4, 3, 2)),
        ("| Summary 1 | 4 | 5 links |\n| Summary 2 | 3 | dull |\n| Summary 3 | 2 | |", (4, 3, 2)),
        ('{"Summary 1": {"rating": 4}, "Summary 2": {"rating": 3}, "Summary 3": {"rating": 2}}', (4, 3, 2)),
        ("Summary 1: 4.5/5\nSummary 2: 3 out of 5\nSummary 3: 2", (4.5, 3, 2)),
        ("Summary 1: 4\nSummary 2: 3\nSummary 3: 2\nSummary 4: 1", (4, 3, 2)),
        ("Summary 0: 2\nSummary 1: 3\nSummary 2: 4", NONE),
        ("### Summary 0\nRating: 2\n### Summary 1\nRating: 3\n### Summary 2\nRating: 4", NONE),
        ("Summary (first)\nRating: 4\nSummary (second)\nRating: 3\nSummary (third)\nRating: 2", NONE),
        ("Summary 1 (good): 4\nSummary 2 (dull): 3\nSummary 3 (bad): 2", NONE),
        ("Summary #1: 4\nSummary #2: 3\nSummary #3: 2", NONE),
        ("| # | Rating |\n|---|---|\n| 1 | 4 |\n| 2 | 3 |\n| 3 | 2 |", NONE),
        (
            '[{"id": "Summary 1", "rating": 4}, {"id": "Summary 2", "rating": 3}, {"id": "Summary 3", "rating": 2}]',
            NONE,
        ),
        ("1. 4\n2. 3\n3. 2", NONE),
        ("Rating: 4", NONE),
        ("Summaries 1-3: 4", NONE),
    ],
)
def test_no_sample_is_given_the_rating_of_another_whatever_the_shape_of_the_reply(reply, scores):
    found = read_many(reply, LINES, "1-5", begun=True, once=True)
    assert tuple(reading.score for reading in found.values()) == scores
    assert all(bool(reading.error) == (reading.score is None) for reading in found.values())


def test_two_lines_with_the_same_digit_are_each_read_at_their_own_token():
    head = [("Summary", {"Summary": 1.0}), (" 2", {" 2": 1.0}), (":", {":": 1.0})]
    content = tokens(
        *head, (" 2", {" 2": 0.75, " 3": 0.25}), "\n", *[("Summary", {"Summary": 1.0}), (" 3", {" 3": 1.0}), ":"],
        (" 2", {" 2": 0.5, " 1": 0.5}),
    )  # fmt: skip
    text = "Summary 2: 2\nSummary 3: 2"
    found = read_many(text, LINES, "1-5", logprobs=content, begun=True, once=True)
    assert [reading.score for reading in found.values()] == [None, pytest.approx(2.25), pytest.approx(1.5)]


# --- what used to be read wrongly ------------------------------------------------------------------------------------

THIRDS = Scale.of(
    {f"{m}{v}": v + s for v in range(1, 6) for m, s in (("weak ", -1 / 3), ("", 0.0), ("strong ", 1 / 3))}
)


def test_a_worded_scale_is_read_in_full_in_text_and_token_by_token():
    for reply in ("weak 3", " weak 3", "Rating: weak 3", "- Coherence: weak 3"):
        assert read_text(reply, THIRDS, "score_only", "coherence").score == pytest.approx(3 - 1 / 3)
    content = tokens((" weak", {" weak": 0.6, " ": 0.4}), (" 3", {" 3": 0.75, " 4": 0.25}))
    reading = read_logprobs(content, THIRDS, "score_only")
    assert reading.distribution == pytest.approx({3 - 1 / 3: 0.75, 4 - 1 / 3: 0.25})


@pytest.mark.parametrize("logprob", [0.5, float("inf"), float("nan"), None, "-1"])
def test_a_log_probability_that_is_none_gives_no_score(logprob):
    for entry in (
        {"token": "4", "logprob": logprob, "top_logprobs": []},
        {"token": "4", "logprob": -0.1, "top_logprobs": [{"token": "3", "logprob": logprob}]},
    ):
        reading = read_logprobs([entry], "1-5", "score_only")
        assert reading.score is None
        assert "its log-probabilities are none" in reading.error


def test_minus_infinity_is_no_mass_and_a_mass_beyond_one_is_none():
    none = {"token": "3", "logprob": float("-inf")}
    entry = {"token": "4", "logprob": math.log(0.9)}
    assert read_logprobs([{**entry, "top_logprobs": [entry, none]}], "1-5", "score_only").score == 4
    much = {"token": "3", "logprob": math.log(0.2)}
    assert "1.1 in all" in read_logprobs([{**entry, "top_logprobs": [entry, much]}], "1-5", "score_only").error


def test_log_probabilities_of_another_text_are_not_read():
    content = tokens(("4", {"4": 0.9, "3": 0.1}))
    assert read_logprobs(content, "1-5", "score_only", text="4").score == pytest.approx(3.9)
    assert "another text" in read_logprobs(content, "1-5", "score_only", text="5").error
    thought = tokens("<think>", "2", "</think>", ("4", {"4": 0.9, "3": 0.1}))
    assert read_logprobs(thought, "1-5", "score_only", text="4").score == pytest.approx(3.9), (
        "kept apart by the provider"
    )


def test_what_was_not_listed_behind_a_score_widens_the_bounds():
    stopped = tokens(("1", {"1": 0.9, "9": 0.1}), ("\n", {"\n": 0.7}))
    reading = read_logprobs(stopped, "1-10", "score_only")
    assert reading.coverage == pytest.approx(0.9 * 0.7 + 0.1)
    assert reading.bounds == pytest.approx((0.63 + 0.9 + 0.27 * 1, 0.63 + 0.9 + 0.27 * 10))
    tail = tokens("3", ".", ("33", {"33": 0.6, "67": 0.2}))
    reading = read_logprobs(tail, [1, 2, 3, 3.33, 3.5, 3.67, 4], "score_only")
    assert reading.coverage == pytest.approx(0.8)
    assert reading.bounds[0] <= reading.score <= reading.bounds[1]
    assert reading.bounds[1] >= 0.6 * 3.33 + 0.2 * 3.67 + 0.2 * 3.5 - 1e-9


def test_two_alternatives_of_one_spelling_are_added_up():
    four = {"token": "4", "logprob": math.log(0.3)}
    three = {"token": "3", "logprob": math.log(0.3)}
    entry = {**four, "top_logprobs": [four, four, three]}
    assert read_logprobs([entry], "1-5", "score_only").distribution == pytest.approx({4: 2 / 3, 3: 1 / 3})


def test_a_verdict_that_names_the_worse_one_turns_the_masses_round():
    content = tokens("Summary", (" B", {" B": 0.8, " A": 0.2}), " is", " worse")
    assert read_verdict_logprobs(content).score == pytest.approx(0.8)
