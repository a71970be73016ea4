"""A cascade: the dear judge is asked where the cheap one is unsure, who decided is told, and what it saved and cost."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Server, completion, refusal

from geval_adapters import InputError, ItemRating
from geval_adapters.criteria import find_criterion
from geval_adapters.jury import Ballots, When, cascade_signature, cost_of, decide, everywhere

CHEAP, DEAR = "openai/cheap", "openai/dear"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spread", "expected spread>0.2"),
        ("speed>0.2", "expected spread>0.2"),
        ("spread<0.2", "a rating is unsure where spread is high: spread>0.2"),
        ("spread>0.2 and unrated", "expected spread>0.2"),
        ("coverage<7", "the limit is a share, from 0 to 1"),
        ("spread>0.2 or spread>0.3", "spread stands there twice"),
        ("", "expected spread>0.2"),
    ],
)
def test_what_is_no_condition_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        When.parse(text)


def test_a_rating_is_unsure_by_what_is_known_of_it() -> None:
    row = {"score": 3.0, "method": "logprobs", "distribution": {"2": 0.5, "4": 0.5}, "coverage": 0.6, "std_error": None}
    assert When.parse("spread>0.2").why(row, 4) == "spread 0.25 > 0.2"
    assert When.parse("spread>0.3").why(row, 4) == ""
    assert When.parse("spread > .3 or coverage < .7").why(row, 4) == "coverage 0.60 < 0.7"
    assert When.parse("std_error>0.1").why(row, 4) == ""
    assert When.parse("std_error>0.1").why(row | {"std_error": 0.5}, 4) == "std_error 0.12 > 0.1"
    assert When.parse("spread>0").unknown(row | {"method": "single"}, 4)
    assert When.parse("spread>0.2").why(row | {"score": None}, 4) == ""
    assert When.parse("spread>0.2 or unrated").why(row | {"score": None}, 4) == "unrated"


def test_a_rubrics_rating_is_unsure_where_its_items_are() -> None:
    items = [ItemRating("Polite.", 3, p=0.5, coverage=1), ItemRating("Rude.", -4, p=0.1), ItemRating("Short.", 1)]
    row = {"score": 0.4, "method": "samples", "distribution": {}, "items": [each.to_dict() for each in items]}
    spread = (9 * 0.25 + 16 * 0.09 + 0.25) ** 0.5 / 4
    assert When.parse("spread>0.2").why(row, 1) == f"spread {spread:.2f} > 0.2"
    assert not When.parse("spread>0.2").unknown(row, 1)
    sure = row | {"items": [ItemRating("Polite.", 3, p=1.0).to_dict()]}
    assert When.parse("spread>0.2").why(sure, 1) == ""
    assert When.parse("spread>0.2").unknown(row | {"method": "single"}, 1)


def test_the_probe_puts_the_cheap_scores_on_the_dear_scale_and_tells_what_was_lost() -> None:
    off = np.array([_off(seed) for seed in range(3)])
    assert (np.abs(off.mean(axis=0)) < [0.02, 0.03, 0.03]).all()


def _off(seed: int) -> tuple[float, float, float]:
    """By how much what a cascade says of its cost is off: r with the dear judge, distance from it, r lost."""
    rng = np.random.default_rng(seed)
    n = 600
    quality = rng.normal(3, 0.5, n)
    cheap, dear = 1 + 0.5 * quality + rng.normal(0, 0.1, n), quality + rng.normal(0, 0.1, n)
    unsure, asked = rng.random(n) < 0.3, rng.random(n) < 0.3
    seen = np.where(unsure | asked, dear, np.nan)
    ballots = Ballots(
        ("cheap", "dear"), np.array([cheap, seen]), [i // 5 for i in range(n)], quality, np.full(n, np.nan), (1, 5)
    )
    made = decide(ballots, unsure, asked, 0.3)
    assert made.calibration == "mapped"
    np.testing.assert_allclose(made.score[unsure], dear[unsure])
    assert abs((made.score - dear)[~unsure].mean()) < 0.08
    found = cost_of(made)
    lost = np.corrcoef(dear, quality)[0, 1] - np.corrcoef(made.score, quality)[0, 1]
    price = np.where(np.isnan(seen), np.nan, np.where(unsure, 2.0, 1.0))
    assert everywhere(made, {"tokens": price}, n)["tokens"] == pytest.approx(n * 1.3, rel=0.06)
    return (
        found.with_dear.value - np.corrcoef(made.score, dear)[0, 1],
        found.difference.value - np.abs(made.score - dear).mean(),
        found.lost.value - lost,
    )


def test_without_probe_and_people_nothing_is_known_of_the_cost() -> None:
    scores = np.array([[3.0, 4.0, 2.0] * 10, [3.0, np.nan, np.nan] * 10])
    nobody = np.full(30, np.nan)
    unsure = np.array([True, False, False] * 10)
    made = decide(Ballots(("a", "b"), scores, range(30), nobody, nobody, (1, 5)), unsure, unsure, 0.0)
    found = cost_of(made)
    assert made.calibration == "own"
    assert found.with_dear.value is None
    assert "is not known" in found.why_not


def test_where_the_dear_judge_decided_all_nothing_was_lost() -> None:
    people, nobody = np.arange(30) % 5 + 1.0, np.full(30, np.nan)
    scores = np.array([people[::-1], people + 0.1 * (np.arange(30) % 2)])
    everything = np.ones(30, dtype=bool)
    ballots = Ballots(("a", "b"), scores, range(30), people, nobody, (1, 6))
    found = cost_of(decide(ballots, everything, ~everything, 0.1))
    assert found.why_not == ""
    assert (found.lost.value, found.difference.value) == pytest.approx((0, 0), abs=1e-9)
    assert found.dear.value == pytest.approx(found.cascade.value)


def test_a_signature_tells_how_scores_were_put_on_the_dear_scale() -> None:
    rng = np.random.default_rng(3)
    cheap = rng.normal(3, 0.5, 60)
    nobody = np.full(60, np.nan)
    ballots = Ballots(("a", "b"), np.array([cheap, cheap + rng.normal(0, 0.5, 60)]), range(60), nobody, nobody, (1, 5))
    none = np.zeros(60, dtype=bool)
    made = [decide(ballots, none, np.arange(60) < probed, probed / 60) for probed in (20, 20, 40)]
    told = [cascade_signature(find_criterion("fluency"), {}, each, When.parse("unrated")) for each in made]
    assert (told[0] == told[1], told[0] == told[2]) == (True, False)
    assert not np.allclose(made[0].score, made[2].score)


# --- on the command line ----------------------------------------------------------------------------------------------


class Pair:
    """A cheap judge that wavers over every third text, and a dear one."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.refuses = ""

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        model = request["model"]
        self.asked[model] += 1
        if model == self.refuses:
            raise refusal(401, "key expired")
        number, text = re.findall(r"n=(\d+) q=([\d.]+)", request["messages"][0]["content"])[-1]
        seen = str(round(float(text)))
        if model == "cheap" and int(number) % 3 == 0:
            return completion("3", logprobs=[{"3": 0.4, "1": 0.3, "5": 0.3}])
        return completion(seen, logprobs=[{seen: 0.99, str(6 - int(seen)) if seen != "3" else "2": 0.01}])


@pytest.fixture
def pair(server: Server, tmp_path: Path) -> Pair:
    server.handler = Pair()
    rng = random.Random(1)
    rows = [
        {"output": f"n={n} q={rng.uniform(1, 5):.2f}", "id": f"s{n}", "doc_id": f"d{n // 3}", "system_id": "x"}
        for n in range(60)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return server.handler


def score(geval: Any, *more: str) -> tuple[int, str, str]:
    return geval("score", "in.jsonl", "-c", "fluency", "-m", CHEAP, "--escalate", DEAR, "-o", "out.jsonl", *more)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_dear_judge_decides_what_the_cheap_one_is_unsure_of(pair: Pair, geval: Any, tmp_path: Path) -> None:
    code, out, err = score(geval, "--when", "spread>0.2", "--probe", "0.5", "--html", "page.html")
    assert code == 0, err
    decided = rows(tmp_path / "out.cascade.jsonl")
    assert [row["decided"] == DEAR for row in decided] == [number % 3 == 0 for number in range(60)]
    assert "was unsure: spread 0.39 > 0.2" in decided[0]["rationale"]
    probe = [row for row in decided if row["decided"] == CHEAP and row["judges"][DEAR] is not None]
    assert 10 <= len(probe) <= 30
    assert pair.asked == {"cheap": 60, "dear": 20 + len(probe)}
    assert "asked as a probe, gave" in probe[0]["rationale"]
    assert "calibration:mapped@" in decided[0]["signature"]
    assert f"the sure items count by a probe of {len(probe)} of them" in out
    assert f"r with {DEAR} everywhere" in (tmp_path / "page.html").read_text()
    whole = (tmp_path / "out.cascade.jsonl").read_text()
    lines = (tmp_path / "out.jsonl").read_text().splitlines(keepends=True)
    assert len(lines) == 80 + len(probe)
    random.Random(2).shuffle(lines)
    (tmp_path / "out.jsonl").write_text("".join(lines[:50]) + lines[50][:30])  # as kill -9 leaves it
    before = pair.asked.total()
    assert score(geval, "--when", "spread>0.2", "--probe", "0.5")[0] == 0
    assert pair.asked.total() - before == len(lines) - 50
    assert (tmp_path / "out.cascade.jsonl").read_text() == whole


def test_what_a_dear_judge_that_is_down_should_have_decided_stays_open(pair: Pair, geval: Any, tmp_path: Path) -> None:
    pair.refuses = "dear"
    code, out, err = score(geval, "--json")
    assert code == 1
    assert f"{DEAR} could not go on: key expired" in err
    assert err.strip().endswith("fluency: 20 of 60 items are undecided")
    open_ = [row for row in rows(tmp_path / "out.cascade.jsonl") if row["score"] is None]
    assert len(open_) == 20
    assert open_[0]["error"].startswith(f"unsure (spread 0.39 > 0.2), and {DEAR} gave none: key expired")
    (found,) = json.loads(out)["cascade"]
    assert (found["unsure"], found["probe"], found["saved"]["cost"]) == (20, 0, None)
    assert "is not known" in found["agreement"]["why_not"]
    pair.refuses = ""
    assert score(geval)[0] == 0
    assert pair.asked["cheap"] == 60
    assert all(row["score"] is not None for row in rows(tmp_path / "out.cascade.jsonl"))


def test_one_cheap_judge_and_another_dear_one(pair: Pair, geval: Any) -> None:
    code, _, err = score(geval, "-m", "openai/more")
    assert (code, "--escalate takes one --model" in err) == (2, True)
    code, _, err = score(geval, "--when", "spread<0.2")
    assert (code, "spread>0.2" in err) == (2, True)
    code, _, err = geval("score", "in.jsonl", "-c", "fluency", "-m", CHEAP, "--when", "unrated")
    assert (code, "name its dearer judge with --escalate" in err) == (2, True)
    pair.refuses = "cheap"
    code, _, err = score(geval)
    assert (code, "error: openai/cheap: key expired" in err) == (2, True)
    assert pair.asked["dear"] == 0
