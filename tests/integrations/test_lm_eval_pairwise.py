"""The pairwise tasks: the unmodified harness, with models that answer by a script."""

from __future__ import annotations

import logging
import math

import pytest
from harness import DATA, Scripted, evaluate, figures, needs_data

from lm_eval_geval.data import load
from lm_eval_geval.pairwise import target

pytestmark = needs_data
TASK = "topical_chat_geval_pairwise_engagingness"
RANKINGS = ("win_ratio_document_spearman", "bradley_terry_document_spearman")


@pytest.mark.parametrize(("group", "limit"), [("topical_chat_geval_pairwise", 60), ("summeval_geval_pairwise", 240)])
def test_a_judge_that_prefers_what_people_prefer_agrees_with_them_fully(group, limit):
    result = evaluate(group, Scripted(lambda doc, repetition: target(doc)), limit=limit)
    found = figures(result, group)
    for name in (*RANKINGS, "win_ratio_document_kendall_b", "bradley_terry_document_kendall_b", "pairwise_accuracy"):
        assert found[name] == pytest.approx(1), name
    assert found["flip_rate"] == found["unread"] == 0


def test_every_pair_is_asked_in_both_orders():
    samples = evaluate(TASK, Scripted(lambda doc, repetition: "A"), limit=30)["samples"][TASK]
    asked = [(sample["doc"]["document"], sample["doc"]["first"], sample["doc"]["second"]) for sample in samples]
    assert len(set(asked)) == 30 and len({document for document, _, _ in asked}) == 1
    assert {(document, second, first) for document, first, second in asked} == set(asked)


def test_a_judge_that_looks_only_at_the_place_flips_every_verdict_and_ranks_nothing():
    found = figures(evaluate(TASK, Scripted(lambda doc, repetition: "Response A"), limit=60), TASK)
    assert found["flip_rate"] == 1
    assert found["pairwise_accuracy"] == pytest.approx(0.5)
    assert math.isnan(found["win_ratio_document_spearman"])


def test_nonsense_is_unread_and_no_preference():
    result = evaluate(TASK, Scripted(lambda doc, repetition: "lol"), limit=30)
    assert figures(result, TASK)["unread"] == 1
    assert all(math.isnan(figures(result, TASK)[name]) for name in (*RANKINGS, "pairwise_accuracy", "flip_rate"))
    assert {sample["filtered_resps"][0]["p_first"] for sample in result["samples"][TASK]} == {None}


def test_fewer_comparisons_can_be_asked_for(caplog):
    with caplog.at_level(logging.WARNING):
        result = evaluate(TASK, Scripted(lambda doc, repetition: target(doc)), comparisons=10)
    assert len(result["samples"][TASK]) == 60 * 10
    assert figures(result, TASK)["pairwise_accuracy"] == pytest.approx(1)
    assert "incomplete" not in caplog.text


def test_a_limit_that_cuts_a_document_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        evaluate(TASK, Scripted(lambda doc, repetition: target(doc)), limit=40)
    assert "1 of 2 documents are incomplete" in caplog.text
    assert "up to 30" in caplog.text


def test_both_candidates_are_shown_in_their_order():
    sample = evaluate(TASK, Scripted(lambda doc, repetition: "A"), limit=1)["samples"][TASK][0]
    (context, _) = sample["arguments"][0]
    samples = load("topical_chat", DATA)
    first, second = (samples[sample["doc"][place]].output for place in ("first", "second"))
    assert 0 < context.index(f"<response_A>\n{first}") < context.index(f"<response_B>\n{second}")
