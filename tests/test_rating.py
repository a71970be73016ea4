"""Many samples: what goes in comes out in its order, and one that cannot be rated costs no other."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from geval_adapters import (
    Answer,
    Criterion,
    GEval,
    InputError,
    Judge,
    JudgeError,
    Rating,
    Reply,
    Sample,
    Scale,
    StopError,
    Usage,
)
from geval_adapters.order import AHEAD

NUMBERS = Criterion("number", "How large it is.", Scale.of("0-9"), optional=("source",))


class Echo(Judge):
    """A judge that rates a text by its last digit, after a while of its own."""

    name = "test/echo"

    def __init__(self, fail_at: Mapping[int, Exception] | None = None, slow: Sequence[str] = ()) -> None:
        self.asked: list[str] = []
        self._fail_at = dict(fail_at or {})
        self._slow = slow

    async def ask(self, messages: Sequence[Mapping[str, str]], **_: Any) -> Answer:
        text = messages[0]["content"].split("<output>\n")[1].split("\n</output>")[0]
        self.asked.append(text)
        if error := self._fail_at.get(len(self.asked)):
            raise error
        await asyncio.sleep(0.2 if text in self._slow else random.random() / 500)
        return Answer([Reply(f"Rating: {text[-1]}")], Usage(requests=1))


def rater(judge: Any = None, criterion: Criterion = NUMBERS) -> GEval:
    return GEval(criterion, judge or Echo(), n=1, readout="samples")


def texts(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


@pytest.mark.parametrize("sources", [1, 7, 500])
def test_zip_pairs_each_text_with_its_own_rating_whatever_order_is_asked_in(sources: int) -> None:
    judge = Echo()
    samples = [Sample(text, source=f"source {number % sources}") for number, text in enumerate(texts(500))]
    pairs = list(zip(samples, rater(judge).rate_many(samples), strict=True))
    assert all(rating.sample is sample for sample, rating in pairs)
    assert [rating.score for _, rating in pairs] == [int(sample.output[-1]) for sample in samples]
    if sources == 7:  # asked about source by source all the same
        kinds = [int(text.split()[1]) % sources for text in judge.asked]
        assert sum(one != other for one, other in pairwise(kinds)) < 150


def test_one_that_is_slow_holds_its_place_and_only_few_overtake_it() -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            yield f"text {taken}"
            taken += 1

    ratings = rater(Echo(slow=["text 0"])).rate_many(endless())
    assert next(ratings).sample.output == "text 0"
    assert [next(ratings).sample.output for _ in range(100)] == [f"text {number}" for number in range(1, 101)]
    ratings.close()
    assert taken <= 3 * AHEAD


def test_samples_that_come_slowly_are_not_waited_for() -> None:
    def slow() -> Iterator[str]:
        for text in texts(10_000):
            time.sleep(0.02)
            yield text

    start = time.monotonic()
    ratings = rater().rate_many(slow())
    assert next(ratings).score == 0
    ratings.close()
    assert time.monotonic() - start < 5


def test_as_completed_holds_nothing_back() -> None:
    judge = Echo(slow=["text 0"])
    ratings = list(rater(judge).rate_many(texts(100), as_completed=True))
    assert ratings[0].sample.output != "text 0"
    assert sorted(rating.sample.output for rating in ratings) == sorted(texts(100))


@pytest.mark.parametrize("error", [StopError("the budget is spent"), JudgeError("no such key")])
def test_when_the_judge_cannot_go_on_all_that_was_rated_comes_first_each_in_its_place(error: Exception) -> None:
    judge = Echo(fail_at={60: error}, slow=["text 0", "text 20"])
    got: list[Rating] = []
    with pytest.raises(type(error)):
        got.extend(rater(judge).rate_many(texts(200)))
    assert [rating.sample.output for rating in got] == texts(200)[: len(got)]
    rated = [rating for rating in got if rating.score is not None]
    assert len(rated) >= 25
    assert all(str(error) in rating.error for rating in got if rating.score is None)


def test_rows_are_samples_and_one_that_is_none_is_its_own_error() -> None:
    needy = Criterion("needy", "How large it is.", Scale.of("0-9"), needs=("source",))
    rows: list[Any] = []
    for number in range(60):
        rows.append({"output": f"text {number}", "source": "a source", "id": number})
    rows[3], rows[7], rows[11], rows[13] = {"output": "no source"}, None, math.nan, {"source": "no output"}
    rows[17], rows[19] = {"output": ["a", "list"], "source": "s"}, 5
    ratings = list(rater(criterion=needy).rate_many(rows))
    assert len(ratings) == 60
    errors = {number: rating.error for number, rating in enumerate(ratings) if rating.error}
    assert sorted(errors) == [3, 7, 11, 13, 17, 19]
    assert "no source, needed by criterion 'needy'" in errors[3]
    assert "expected a text, a Sample or a mapping" in errors[7]
    assert "no output" in errors[13]
    assert "output: must be text, found ['a', 'list']" in errors[17]
    assert ratings[0].sample.id == "0"
    assert all(rating.score == number % 10 for number, rating in enumerate(ratings) if number not in errors)
    assert {rating.n_failed for rating in ratings if rating.error} == {0}
    assert all(rating.to_dict()["method"] is None for rating in ratings if rating.error)


@pytest.mark.parametrize("one", ["a text", b"bytes", {"output": "a text"}, Sample("a text")])
def test_a_single_sample_is_refused_where_several_belong(one: Any) -> None:
    with pytest.raises(InputError, match="use rate, or put it in a list"):
        rater().rate_many(one)


def test_what_is_said_beside_a_sample_is_used() -> None:
    needy = Criterion("needy", "How large it is.", Scale.of("0-9"), needs=("source",))
    geval = rater(criterion=needy)
    sample = Sample("text 4", id="x")
    with pytest.raises(InputError, match="no source"):
        geval.rate(sample)
    rating = geval.rate(sample, source="a source")
    assert (rating.score, rating.sample.source, rating.sample.id) == (4, "a source", "x")
    assert rating.sample.doc_id == Sample("", source="a source").doc_id
    moved = geval.rate(Sample("text 4", source="old"), source="new").sample
    assert moved.doc_id == Sample("", source="new").doc_id
    assert geval.rate(Sample("text 4", source="old", doc_id="d"), source="new").sample.doc_id == "d"
    assert geval.rate({"output": "text 5", "input": "by an alias"}).score == 5
    with pytest.raises(InputError, match="unknown field 'sauce'; known: output, source"):
        geval.rate(sample, sauce="x")


def test_a_criterion_can_be_its_fields_and_several_are_refused_with_what_to_do() -> None:
    fields = {"name": "size", "definition": "How large it is.", "scale": "0-9"}
    assert rater(criterion=fields).rate("text 3").score == 3  # type: ignore[arg-type]
    with pytest.raises(InputError, match="make one GEval for each"):
        GEval(["coherence", "fluency"], Echo())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"scale: is missing; politeness: is unknown; known: name, definition"):
        GEval({"name": "x", "definition": "Is it polite?", "politeness": "Is it polite?"}, Echo())


def test_a_rating_prints_as_one_line_whatever_is_in_it() -> None:
    rating = rater().rate(Sample("text 7", id="a\nb\x1b[31m"))
    assert str(rating) == "a b [31m: number 7 (single, n 1, coverage 1.00)"
    failed = rater(Echo()).rate_many([Sample("text x\n\n\x07", id="c")])
    line = str(next(iter(failed)))
    assert line.startswith("c: number not rated: ")
    assert line.isprintable()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"form": "essay"}, "unknown form 'essay'; known: score_only, free_text, rate_explain, analyze_rate"),
        ({"form": "rate_explain+essay"}, "unknown form 'essay'"),
        ({"steps": "sometimes"}, "unknown steps 'sometimes'; known: none, stored, auto"),
        ({"readout": "guess"}, "readout: must be 'auto', 'logprobs' or 'samples', found 'guess'"),
        ({"off_grid": "round"}, "off_grid: must be 'keep', 'floor' or 'reject', found 'round'"),
        ({"persona": "pirate"}, "persona: must be 'hhh' or 'human_annotator', found 'pirate'"),
        ({"recipe": "cake"}, "unknown recipe 'cake'; known: rate_explain"),
        ({"n": 0}, "n must be at least 1"),
        ({"n": "many"}, "n: must be a valid integer"),
        ({"temperature": -1}, "temperature must be 0 or more"),
        ({"adaptive": 2}, "between 0 and 1"),
        ({"scale": "1-100000000"}, "at most 1001 steps"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_those_that_can(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        GEval("coherence", Echo(), **settings)
    assert said in str(error.value)


def test_a_signature_names_every_model_that_answered() -> None:
    class Fallbacks(Echo):
        async def ask(self, messages: Sequence[Mapping[str, str]], *, n: int = 1, **_: Any) -> Answer:
            model = ("one", "two")["Analysis:" in messages[0]["content"]]
            return Answer([Reply("Rating: 4")] * n, Usage(requests=1), model)

    geval = GEval(NUMBERS, Fallbacks(), form="rate_explain+analyze_rate", n=4, readout="samples")
    assert {rating.signature.parts["answered"] for rating in geval.rate_many(texts(40))} == {"one+two"}
