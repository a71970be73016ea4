"""`--form json`: an object is asked for, by a schema where the model takes one, and its score's token is weighted."""

from __future__ import annotations

import pytest
from conftest import completion, refusal

from geval_adapters import GEval

MASS = {"4": 0.5, "3": 0.3, "5": 0.1}
"""What the judge would answer, in any form."""


def in_json(request):
    steps = [{'{"': 1.0}, {"score": 1.0}, {'":': 1.0}, {" 4": 0.5, " 3": 0.3, " 5": 0.1}, {",": 1.0}]
    return completion('{"score": 4,', logprobs=steps)


def test_the_score_in_an_object_weighs_as_much_as_the_plain_one(server):
    server.handler = in_json
    judge = {"model": "openai/gpt-4o-mini", "api_base": server.base, "readout": "logprobs"}
    structured = GEval("fluency", form="json", **judge).rate("It rains.")
    server.handler = lambda request: completion("4", logprobs=[MASS])
    plain = GEval("fluency", form="score_only", **judge).rate("It rains.")
    assert structured.error is None
    for name in ("score", "coverage", "bounds", "distribution"):
        assert getattr(structured, name) == pytest.approx(getattr(plain, name)), name
    form = server.requests[0]["response_format"]["json_schema"]
    assert form["schema"]["properties"]["score"] == {"type": "integer", "minimum": 1, "maximum": 5}
    assert "response_format" not in server.requests[1]


def test_a_model_that_takes_no_schema_is_asked_without_it(server):
    def picky(request):
        if "response_format" in request:
            raise refusal(400, "response_format is not supported by this model")
        return completion('{"score": "4", "reason": "It holds together."}')

    server.handler = picky
    geval = GEval(
        "fluency", "openai/gpt-4o-mini", form="json", api_base=server.base, readout="samples", n=1, explain=True
    )
    assert [rating.score for rating in geval.rate_many(["It rains.", "It snows."])] == [4.0, 4.0]
