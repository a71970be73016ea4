"""Comparing and ranking through a judge, and from stored replies."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import Server, completion

from geval_adapters import Comparer, InputError, Sample

MODEL = "openai/gpt-4o-mini"


def quality(request: dict) -> tuple[int, int]:
    """How good the two candidates of a request are, as their texts say."""
    content = request["messages"][0]["content"]
    first, second = re.findall(r"<output_[AB]>\nquality (\d+)\n", content)
    return int(first), int(second)


def unbiased(request: dict) -> dict:
    first, second = quality(request)
    p = 0.5 + 0.08 * (first - second)
    return completion("Output A", logprobs=[{"Output": 1.0}, {" A": p, " B": 1 - p}])


def pulled_to_the_first(request: dict) -> dict:
    first, second = quality(request)
    p = min(0.98, 0.75 + 0.04 * (first - second))
    return completion("Output A", logprobs=[{"Output": 1.0}, {" A": p, " B": 1 - p}])


CANDIDATES = [Sample(f"quality {i}", id=f"c{i}", doc_id="d") for i in (3, 1, 5, 2, 4, 0)]
BEST_FIRST = ["c5", "c4", "c3", "c2", "c1", "c0"]


def test_by_a_rubric_nothing_is_compared_nor_labelled(server: Server, geval, tmp_path: Path):
    rows = [{"id": str(n), "doc_id": "d", "output": f"text {n}", "rubric": ["Is it short?"]} for n in range(2)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for command in (("rank", "in.jsonl", "-m", "openai/judge"), ("label", "in.jsonl", "-o", "labels.jsonl")):
        code, _, err = geval(*command, "-c", "rubric")
        assert (code, server.requests) == (2, [])
        assert "error: criterion 'rubric' is a rubric" in err


def test_both_orders_are_asked_and_the_position_is_taken_out(server: Server):
    server.handler = pulled_to_the_first
    comparison = Comparer("coherence", MODEL).compare("quality 4", "quality 2")
    assert comparison.p_orders == pytest.approx((0.83, 0.33))
    assert comparison.p_first == pytest.approx(0.58)
    assert comparison.flipped is True
    assert comparison.usage.requests == 2


def test_case_19_who_wins_in_both_orders_has_a_win_ratio_of_one(server: Server):
    server.handler = unbiased
    document = Comparer("coherence", MODEL).rank(CANDIDATES[:2], method="win-ratio")
    assert document.ranking.scores == {"c3": 1.0, "c1": 0.0}


@pytest.mark.parametrize("method", ["average", "bradley-terry", "gaussian", "most-likely"])
def test_candidates_come_out_in_their_order_whatever_the_position_does(server: Server, method: str):
    server.handler = pulled_to_the_first
    document = Comparer("coherence", MODEL).rank(CANDIDATES, select="full", method=method)
    ranks = document.ranking.ranks()
    assert sorted(ranks, key=lambda name: ranks[name]) == BEST_FIRST
    assert len(server.requests) == 30


def test_an_active_selection_needs_few_calls_and_keeps_to_its_budget(server: Server):
    server.handler = pulled_to_the_first
    document = Comparer("coherence", MODEL).rank(CANDIDATES, select="active", budget=14)
    assert len(server.requests) == 14
    ranks = document.ranking.ranks()
    assert ranks["c5"] < ranks["c2"] < ranks["c0"]
    assert document.ranking.bias > 0


def test_an_unread_verdict_is_missing_and_counted(server: Server):
    server.handler = lambda request: completion(*["I cannot choose."] * request.get("n", 1))
    document = Comparer("coherence", MODEL, n=2, readout="samples").rank(CANDIDATES[:3])
    assert document.ranking.missing == 6
    assert set(document.ranking.scores.values()) == {None}
    assert "no verdict" in document.verdicts[0].error


def test_samples_stand_in_for_log_probabilities(server: Server):
    replies = ["A", "Output A", "B", "I will not say"]
    server.handler = lambda request: completion(*replies[: request.get("n", 1)])
    verdict = Comparer("coherence", MODEL, n=4, readout="samples").compare("quality 1", "quality 2").there
    assert verdict.p_first == pytest.approx(2 / 3)
    assert (verdict.method, verdict.n_valid, verdict.n_failed) == ("samples", 3, 1)


def test_bad_settings_are_named(server: Server):
    comparer = Comparer("coherence", MODEL)
    for settings, said in (({"select": "best"}, "best"), ({"method": "elo"}, "elo"), ({"budget": -1}, "budget")):
        with pytest.raises(InputError, match=said):
            comparer.rank(CANDIDATES, **settings)
    with pytest.raises(InputError, match="different ids"):
        comparer.rank([CANDIDATES[0], CANDIDATES[0]])
    with pytest.raises(InputError, match="kind"):
        Comparer("coherence", MODEL, kind="curt")


def test_rank_writes_rows_that_meta_eval_reads(server: Server, geval):
    server.handler = unbiased
    rows = [
        {"id": f"{doc}{i}", "doc_id": doc, "output": f"quality {i}", "human": i + 1} for doc in "ab" for i in (2, 0, 3)
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = geval("rank", "in.jsonl", "-c", "coherence", "-m", MODEL, "-o", "out.jsonl", "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["calls"], result["unread"], result["ties"]) == (12, 0, 0)
    assert result["accuracy"] == {"one_order": 1.0, "both_orders": 1.0}
    assert result["flip_rate"] == 0
    assert result["position"]["p_first"] == 0.5
    assert [(place["document"], place["candidate"]) for place in result["ranking"]][:3] == [
        ("a", "a3"), ("a", "a2"), ("a", "a0")
    ]  # fmt: skip
    written = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["rank"] for row in written] == [1, 2, 3, 1, 2, 3]
    assert {row["calls"] for row in written} == {4}
    code, out, _ = geval("meta-eval", "out.jsonl", "-c", "coherence", "--resamples", 0, "--json")
    assert code == 0
    assert json.loads(out)["judges"][0]["document"]["spearman"]["value"] == pytest.approx(1)


@pytest.mark.parametrize("criterion", ["coherence", "relevance"])
def test_stored_replies_give_the_figures_of_an_independent_count(data: Path, geval, criterion: str):
    file = data / "responses" / f"summeval_pairwise_gpt3.5_{criterion}.jsonl.gz"
    code, out, _ = geval("rank", "--replies", file, "-c", f"summeval/{criterion}", "--json")
    assert code == 0
    result = json.loads(out)
    rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    worth = {"A": 1.0, "B": 0.0, "C": 0.5}
    p = {(row["doc_id"], row["first"], row["second"]): worth[row["response"][0]] for row in rows}
    assert result["calls"] == len(rows) == 2200
    assert result["unread"] == 0
    assert result["ties"] == sum(value == 0.5 for value in p.values())
    assert result["position"]["p_first"] == pytest.approx(sum(p.values()) / len(p))
    flips = [value != 1 - p[doc, b, a] for (doc, a, b), value in p.items()]
    assert result["flip_rate"] == pytest.approx(sum(flips) / len(flips))
    right = []
    for row in rows:
        if row["human_first"] != row["human_second"]:
            value = worth[row["response"][0]]
            right.append(value if row["human_first"] > row["human_second"] else 1 - value)
    assert result["accuracy"]["one_order"] == pytest.approx(sum(right) / len(right))
    people = defaultdict(dict)
    for row in rows:
        people[row["first"]][row["doc_id"]] = row["human_first"]
    for place in result["ranking"]:
        scores = people[place["candidate"]].values()
        assert place["human"] == pytest.approx(sum(scores) / len(scores))
    assert len(result["ranking"]) == 12
    assert result["spearman_by_method"]["bradley-terry"] > result["spearman_by_method"]["win-ratio"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either INPUT or --replies"),
        (["in.jsonl", "--replies", "in.jsonl"], "give either INPUT or --replies"),
        (["in.jsonl", "--method", "elo"], "'elo' is not one of"),
        (["--replies", "in.jsonl"], "in.jsonl:1: no first and no second and no response"),
        (["in.jsonl", "--select", "best"], "best"),
    ],
)
def test_bad_usage_is_one_line(server: Server, geval, arguments: list[str], said: str):
    Path("in.jsonl").write_text(
        '{"id": "a", "doc_id": "d", "output": "x"}\n{"id": "b", "doc_id": "d", "output": "y"}\n'
    )
    code, _, err = geval("rank", *arguments, "-c", "coherence", "-m", MODEL)
    assert code == 2
    assert said in err


def test_the_embedded_judge_ranks_the_responses_of_a_dialogue(data: Path, geval):
    pytest.importorskip("xllamacpp")
    code, out, _ = geval(
        "rank", data / "topical_chat.json", "-c", "topical_chat/engagingness", "-m", "local/smollm2", "--limit", 6,
        "--budget", 6, "--json",
    )  # fmt: skip
    result = json.loads(out)
    assert code == 0
    assert (result["calls"], result["unread"]) == (6, 0)
    assert 0 <= result["position"]["p_first"] <= 1
    assert result["position"]["low"] < result["position"]["high"]
