"""`geval tune`: the way of rating that agrees best with people, and what it is allowed to say."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shlex
import signal
from pathlib import Path

import pytest
from conftest import Server, completion, refusal

CRITERION = {"name": "worth", "definition": "How good is the text?", "scale": "1-5"}


@pytest.fixture
def rows(tmp_path: Path) -> list[dict]:
    """90 texts of 30 documents, each with a mark that says how good it is; people see that with some noise."""
    rng = random.Random(3)
    (tmp_path / "worth.yaml").write_text(json.dumps(CRITERION))
    made = []
    for number in range(90):
        quality = rng.uniform(1, 5)
        made.append({
            "id": str(number), "doc_id": f"d{number // 3}", "output": f"Text {number} of worth <{quality:.2f}>.",
            "scores": {"worth": min(5, max(1, quality + rng.gauss(0, 0.4)))},
        })  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    return made


def judge(server: Server, noise_of) -> None:
    """A judge whose noise depends on how it is asked."""

    def handler(request: dict) -> dict:
        prompt = request["messages"][-1]["content"]
        quality = float(re.findall(r"<(\d\.\d\d)>", prompt)[-1])
        rng = random.Random(f"{quality}{len(server.requests)}")
        scores = [min(5, max(1, round(quality + rng.gauss(0, noise_of(prompt))))) for _ in range(request.get("n", 1))]
        return completion(*[f"Analysis: fine.\nRating: {score}" for score in scores])

    server.handler = handler


def ask(geval, *more: object) -> tuple[int, str, str]:
    return geval("tune", "rows.jsonl", "-c", "worth.yaml", "-m", "openai/judge", *more)


TRY = ("--try", "form=analyze_rate,n=1,readout=samples", "--try", "n=1,readout=samples", "--try", "n=2,readout=samples")


def test_a_way_that_agrees_better_is_found_and_its_command_runs(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 0.1 if "Analysis:" in prompt else 15)
    code, out, err = ask(geval, *TRY, "--budget", 4000, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["winner"]["candidate"].startswith("form=analyze_rate")
    assert found["better"]
    assert found["gain"]["low"] > 0
    assert found["held_out"] == 10
    assert found["requests"] == len(server.requests)
    words = shlex.split(found["command"])
    assert words[:3] == ["geval", "score", "rows.jsonl"]
    assert "analyze_rate" in words
    code, out, err = geval(*words[1:], "--limit", 3, "--json")
    assert code == 0, err
    assert [row["score"] for row in json.loads(out)["ratings"]]


def test_ways_that_are_alike_are_not_told_apart(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    code, out, _ = ask(geval, *TRY, "--budget", 4000)
    assert code == 3
    assert "othing was" in out
    assert "--form analyze_rate" not in out.split("to go on with")[1]


def test_replies_are_shared_and_costs_are_counted_as_if_they_were_not(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    tried = ("--try", "n=2,readout=samples", "--try", "n=3,readout=samples", "--try", "n=4,readout=samples")
    code, out, _ = ask(geval, *tried, "--budget", 9000, "--json")
    assert code in (0, 3)
    trials = {each["candidate"]: each for each in json.loads(out)["trials"]}
    items = trials["n=4 readout=samples"]["items"]
    sent = [request.get("n", 1) for request in server.requests]
    # The default asks for 20, which hold the first 2, 3 and 4; what it adds is one probe for log-probabilities.
    assert sum(n > 1 for n in sent) <= 90
    assert trials["n=2 readout=samples"]["per_1000"]["requests"] == 1000
    assert items >= 15


def test_what_a_way_would_take_knows_how_many_replies_come_at_once(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    inner = server.handler

    def handler(request: dict) -> dict:
        if request.get("n", 1) > 8:
            raise refusal(400, "n must be at most 8", param="n")
        return inner(request)

    server.handler = handler
    tried = ("--try", "n=2,readout=samples", "--try", "n=20,readout=samples")
    found = json.loads(ask(geval, *tried, "--budget", 120, "--json")[1])
    taken = {each["candidate"]: each["per_1000"]["requests"] for each in found["trials"]}
    assert (taken["n=2 readout=samples"], taken["n=20 readout=samples"]) == (1000, 3000)


def test_the_budget_is_kept_and_said(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    code, out, err = ask(geval, *TRY, "--budget", 25)
    assert code == 1
    assert len(server.requests) <= 25
    assert "25 requests" in err
    assert "to go on with" in out


def test_a_price_that_is_not_known_is_not_called_free_on_the_way(geval, server, rows, monkeypatch) -> None:
    judge(server, lambda prompt: 1.0)
    told: list[str] = []
    bar = contextlib.nullcontext(lambda failed, cost: told.append(cost))
    monkeypatch.setattr("geval_adapters.cli.tune.progress_bar", lambda total, done: bar)
    ask(geval, *TRY, "--budget", 8)
    assert set(told) == {"unknown"}


def test_what_is_held_out_is_never_shown_as_an_example(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    code, out, err = ask(geval, "--try", "shots=4,n=1,readout=samples", "--budget", 4000, "--json")
    assert code in (0, 3), err
    shown, rated = set(), set()
    for request in server.requests:
        texts = re.findall(r"Text (\d+) of", request["messages"][-1]["content"])
        *examples, own = (rows[int(each)]["doc_id"] for each in texts)
        assert own not in examples
        shown.update(examples)
        rated.add(own)
    assert shown
    assert len(rated - shown) >= json.loads(out)["held_out"]


def test_a_run_that_is_repeated_from_a_cache_costs_nothing(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    first = ask(geval, *TRY, "--budget", 4000, "--json", "--cache", "kept")
    asked = len(server.requests)
    second = ask(geval, *TRY, "--budget", 4000, "--json", "--cache", "kept")
    assert len(server.requests) == asked
    one, other = (json.loads(each[1]) for each in (first, second))
    assert one["gain"] == other["gain"]
    assert one["trials"] == other["trials"]  # with what 1,000 items would take
    assert one["trials"][0]["per_1000"]["tokens"] > 100_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--try", "colour=red"), "setting"),
        (("--try", "n=many"), "n=many: n is a number"),
        (("--try", "form=wild"), "form"),
        (("--try", "persona=hhh"), "setting"),  # which `geval score` does not have
        (("--try", "n=5,n=7"), "n stands there twice"),
        (("--try", "shots=0"), "shots must be at least 1"),
        (("--try", "shots=4,scale=1-10"), "examples are rated on the scale 1-5"),
        (("--try", "shots=4,recipe=stureborg"), "examples are rated on the scale 1-5"),
        (("--batch",), "--batch"),
        (("--limit", "20"), "7 documents, and tuning needs 12"),
        (("--labels", "none.jsonl"), "none.jsonl"),
    ],
)
def test_what_cannot_be_tried_is_told_before_anything_is_asked(geval, server, rows, words, told) -> None:
    code, _, err = ask(geval, *words)
    assert code == 2
    assert told in err
    assert not server.requests


def failing(server: Server, fails) -> None:
    """The server's judge, but for requests that `fails` picks by their number and what they hold."""
    inner = server.handler

    def handler(request: dict) -> dict:
        if fails(len(server.requests), request):
            raise refusal(401, "key expired")
        return inner(request)

    server.handler = handler


def test_a_way_that_is_named_twice_is_tried_once(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    twice = ("--try", "n=2,readout=samples", "--try", "readout=samples, n=2")
    found = json.loads(ask(geval, *twice, "--budget", 30, "--json")[1])
    assert sorted(each["candidate"] for each in found["trials"]) == ["default", "n=2 readout=samples"]


def test_a_model_that_cannot_go_on_is_out_and_the_others_go_on(geval, server: Server, rows: list[dict]) -> None:
    judge(server, lambda prompt: 1.0)
    failing(server, lambda number, request: request["model"] == "other")
    code, out, err = ask(geval, "-m", "openai/other", *TRY[:2], "--budget", 4000, "--json")
    assert code in (0, 3), err
    found = json.loads(out)
    assert {each["model"] for each in found["trials"] if not each["down"]} == {"openai/judge"}
    assert len([each for each in found["trials"] if "key expired" in each["down"]]) == 3  # two ways and the jury
    assert found["winner"]["model"] == "openai/judge"
    failing(server, lambda number, request: True)
    assert ask(geval, *TRY)[0] == 2


@pytest.mark.parametrize(("ends", "code"), [("refused", 1), ("interrupted", 130)])
def test_what_was_learnt_is_shown_however_it_ends(
    geval, server: Server, rows: list[dict], ends: str, code: int
) -> None:
    def fails(number: int, request: dict) -> bool:
        if number == 60 and ends == "interrupted":
            signal.raise_signal(signal.SIGINT)
        return number > 60 and ends == "refused"

    judge(server, lambda prompt: 1.0)
    failing(server, fails)
    ended, out, err = ask(geval, *TRY, "--budget", 4000)
    assert ended == code, err
    assert "stopped: " in err
    assert re.search(r"n=2 readout=samples +openai/judge +\d +[1-9]", out), out
    assert "to go on with" in out


def test_the_command_for_a_router_names_its_group(geval, server: Server, rows: list[dict], tmp_path: Path) -> None:
    judge(server, lambda prompt: 1.0)
    deployment = {"model": "openai/judge", "api_key": "sk-x", "api_base": server.base}
    (tmp_path / "router.yaml").write_text(
        json.dumps({"model_list": [{"model_name": "g", "litellm_params": deployment}]})
    )
    common = ("rows.jsonl", "-c", "worth.yaml", "--router", "router.yaml", "--try", "n=1,readout=samples", "--json")
    for model, told in (((), ""), (("-m", "g"), "--model g ")):
        command = json.loads(geval("tune", *common, *model, "--budget", 2)[1])["command"]
        assert command == f"geval score rows.jsonl --criterion worth.yaml {told}--router router.yaml"


def test_two_models_and_their_jury(geval, server: Server, rows: list[dict]) -> None:
    def handler(request: dict) -> dict:
        quality = float(re.findall(r"<(\d\.\d\d)>", request["messages"][-1]["content"])[-1])
        rng = random.Random(f"{quality}{request['model']}")
        return completion(*[f"Rating: {min(5, max(1, round(quality + rng.gauss(0, 1))))}"] * request.get("n", 1))

    server.handler = handler
    code, out, err = ask(geval, "-m", "openai/other", "--try", "n=1,readout=samples", "--budget", 4000, "--json")
    assert code in (0, 3), err
    trials = {(each["candidate"], each["model"]): each for each in json.loads(out)["trials"]}
    jury = trials["jury of 2", None]
    alone = [trials["default", model] for model in ("openai/judge", "openai/other")]
    assert jury["per_1000"]["requests"] == sum(each["per_1000"]["requests"] for each in alone)
    assert jury["r"] > min(each["r"] for each in alone)
