"""The tables of evidence, line by line: each rule applies to its own example."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_adapters import Scale, read_text, read_verdict
from geval_adapters.reading.candidates import Candidates
from geval_adapters.reading.evidence import BARS, DENOMINATORS, OTHER_SCALES, SUPPORTS, UNNAMED
from geval_adapters.reading.lexer import Lexer, symbols
from geval_adapters.reading.verdict_evidence import VERDICT_BARS, VERDICT_SUPPORTS
from geval_adapters.reading.visible import visible

WORDS = {"Yes": Scale.of("0-1"), "dull": Scale.of({1: "dull", 2: "lively"}), "Good": Scale.of({1: "bad", 2: "good"})}
"""The scales of the examples whose rating is a word."""


def marked(example):
    """An example without its marks, and where the marked values begin."""
    places, plain = [], ""
    for character in example:
        if character == "‹":
            places.append(len(plain))
        elif character != "›":
            plain += character
    return visible(plain), places


def scale_of(text):
    return next((scale for word, scale in WORDS.items() if word in text and not text[0].isdigit()), Scale.of("1-5"))


@pytest.mark.parametrize("rule", BARS, ids=lambda rule: f"{rule.name}: {rule.example}")
def test_what_a_bar_is_about_is_no_rating(rule):
    text, places = marked(rule.example)
    found = Candidates.of(text, scale_of(text), "coherence")
    kinds = {found.line.place(index): symbol for index, symbol in enumerate(found.symbols)}
    assert places
    assert all(kinds[place] == symbols()["BARRED"] for place in places)


@pytest.mark.parametrize("rule", [*SUPPORTS, UNNAMED], ids=lambda rule: f"{rule.name}: {rule.example}")
def test_a_support_finds_its_rating(rule):
    text, places = marked(rule.example)
    found = Candidates.of(text, scale_of(text), "" if rule is UNNAMED else "coherence")
    hits = [found.line.place(match.start("rating")) for match in rule.regex.finditer(found.symbols)]
    assert hits
    if places:
        assert places[0] in hits


@pytest.mark.parametrize("rule", [*DENOMINATORS, *OTHER_SCALES], ids=lambda rule: rule.example)
def test_the_top_of_a_scale_is_seen(rule):
    text, places = marked(rule.example)
    line = Lexer.of(criterion="coherence").line(text)
    group = "percent" if "percent" in rule.regex.groupindex else "top"
    assert [line.place(match.start(group)) for match in rule.regex.finditer(line.symbols)] == places


@pytest.mark.parametrize("rule", VERDICT_SUPPORTS, ids=lambda rule: f"{rule.name}: {rule.example}")
def test_a_verdict_is_found(rule):
    text, places = marked(rule.example)
    line = Lexer.of(labels=("A", "B", "C")).line(text)
    group = "against" if "against" in rule.regex.groupindex else "rating"
    assert places[0] in [line.place(match.start(group)) for match in rule.regex.finditer(line.symbols)]


@pytest.mark.parametrize("rule", VERDICT_BARS, ids=lambda rule: f"{rule.name}: {rule.example}")
def test_what_a_bar_is_about_is_no_verdict(rule):
    text, places = marked(rule.example)
    assert read_verdict(text).score not in [float(text[place] == "A") for place in places]


PIECES = st.sampled_from([
    "“ ", "” ", '" ', "' ", "* ", "( ", "[[", '{"', '{"a":', "{", "<think>", "</think>", "[THINK]", "a ", "A ", "1 ",
    "1, ", "1-", "not 1 ", "if 1 ", "Rating: 1 ", "1/5 ", "\n", "\n1. ", "1\n", "out of 5 ", "so ", "I give ", "than ",
    "★", "分", "4 or ", "4 and ", "+ 1 ", "= ", "| ", "A is ", "neither ", "score: 1 ", "\\boxed{", "('1', ", "é",
])  # fmt: skip


def seconds(read, text):
    took = []
    for _ in range(3):
        began = time.process_time()
        read(text)
        took.append(time.process_time() - began)
    return min(took)


@settings(max_examples=25, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=3).map("".join), st.booleans())
def test_no_reply_takes_more_than_linear_time(piece, compares):
    def read(text):
        return read_verdict(text) if compares else read_text(text, "1-5", "free_text")

    read(piece * 9)
    short, long = (piece * (size // len(piece)) for size in (2_000, 16_000))
    assert seconds(read, long) < 8 * 4 * seconds(read, short) + 0.1  # a square would be 64 times


def test_a_reply_beyond_all_forms_is_not_read():
    reading = read_text("word " * 20_000, "1-5")
    assert reading.score is None
    assert "50,000" in reading.error
    thought = f"<think>{'word ' * 20_000}</think>Rating: 4"
    assert read_text(thought, "1-5").score == 4, "thinking may be as long as it likes"
