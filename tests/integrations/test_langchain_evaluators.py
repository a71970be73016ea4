"""LangChain's interfaces of evaluators, for one text and for two."""

import asyncio
import json
from typing import Any

import pytest
from batched import Rater, quality, texts
from chat_models import TEXT, Preferring, RouteByPrompt, Watcher, scripted, server, uploaded, weighted  # noqa: F401
from jurors import Sees

from geval_adapters import Criterion, InputError, Scale
from langchain_geval import (
    RatingError,
    load_evaluator,
)


@pytest.mark.parametrize(
    ("criteria", "needs_input", "needs_reference"),
    [
        ("coherence", False, False),
        ("relevance", True, False),
        ("correctness", False, True),
        (["relevance", "correctness"], True, True),
        ("Is the text polite?", False, False),
    ],
)
def test_it_requires_exactly_what_its_criteria_need(criteria: Any, needs_input: bool, needs_reference: bool) -> None:
    for name in ("geval", "pairwise_geval"):
        evaluator = load_evaluator(name, criteria=criteria, model="openai/gpt-4o-mini")
        assert (evaluator.requires_input, evaluator.requires_reference) == (needs_input, needs_reference)


def test_a_missing_field_is_refused_and_an_unused_one_warned_of() -> None:
    geval = load_evaluator("geval", criteria="correctness", llm=scripted(weighted()))
    with pytest.raises(ValueError, match="requires a reference"):
        geval.evaluate_strings(prediction=TEXT)
    with pytest.raises(InputError, match="no context"):
        load_evaluator("geval", criteria="groundedness", llm=scripted(weighted())).evaluate_strings(prediction=TEXT)
    coherence = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))
    with pytest.warns(UserWarning, match="does not show the judge a reference"):
        coherence.evaluate_strings(prediction=TEXT, reference="A dog.")


def test_no_warning_about_an_input_that_is_shown(recwarn: pytest.WarningsRecorder) -> None:
    llm = scripted(weighted())
    geval = load_evaluator("geval", criteria="correctness", llm=llm)
    geval.evaluate_strings(prediction="Paris.", reference="It is Paris.", input="Capital of France?")
    prompt = llm.seen[0]["messages"][0].content
    assert "Capital of France?" in prompt and "It is Paris." in prompt
    assert not [each for each in recwarn if "does not show" in str(each.message)]


def test_context_reaches_the_judge() -> None:
    llm = scripted(weighted())
    load_evaluator("geval", criteria="groundedness", llm=llm).evaluate_strings(prediction=TEXT, context="Cats sit.")
    assert "Cats sit." in llm.seen[0]["messages"][0].content


def test_a_rating_that_failed_has_no_score_and_a_reason() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted("I will not say."))
    result = geval.evaluate_strings(prediction=TEXT)
    assert result["score"] is None and result["value"] is None
    assert "no rating in the reply" in result["error"]
    assert result["n_failed"] == 20


def test_several_criteria_give_the_mean_of_what_is_comparable() -> None:
    rhyme = Criterion("rhyme", "Does it rhyme?", Scale.of("0-1"))
    llm = RouteByPrompt(replies={"Rhyme": "Rating: 1", "Coherence": "Rating: 2"})
    geval = load_evaluator("geval", criteria=["coherence", rhyme], llm=llm, n=1, readout="samples")
    result = geval.evaluate_strings(prediction=TEXT)
    assert result["score"] == pytest.approx((0.25 + 1.0) / 2)
    assert {name: row["score"] for name, row in result["ratings"].items()} == {"coherence": 2.0, "rhyme": 1.0}

    half = load_evaluator(
        "geval", criteria=["coherence", rhyme], llm=RouteByPrompt(replies={"Rhyme": "Rating: 1"}), n=1
    )
    result = half.evaluate_strings(prediction=TEXT)
    assert result["score"] is None
    assert result["error"].startswith("coherence: ")
    assert result["ratings"]["rhyme"]["score"] == 1.0


def test_the_async_twin_gives_the_same() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))
    one = geval.evaluate_strings(prediction=TEXT)
    assert asyncio.run(geval.aevaluate_strings(prediction=TEXT)) == one


@pytest.mark.parametrize("asynchronous", [False, True])
def test_callbacks_tags_metadata_and_run_names_reach_the_evaluator_and_its_judge(asynchronous: bool) -> None:
    watcher = Watcher()
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))
    about = {"callbacks": [watcher], "tags": ["nightly"], "metadata": {"team": "a"}, "run_name": "my judge"}
    if asynchronous:
        result = asyncio.run(geval.aevaluate_strings(prediction=TEXT, include_run_info=True, **about))
    else:
        result = geval.evaluate_strings(prediction=TEXT, include_run_info=True, **about)
    (chain,), (model,) = watcher.chains, watcher.models
    assert chain["name"] == "my judge" and chain["inputs"] == {"prediction": TEXT}
    assert model["parent_run_id"] == chain["run_id"] == result["__run"].run_id
    for run in (chain, model):
        assert run["tags"] == ["nightly"] and run["metadata"]["team"] == "a"
    assert watcher.ends[0]["score"] == pytest.approx(4.1)


def test_pairs_are_asked_in_both_orders_and_debiased() -> None:
    pairwise = load_evaluator("pairwise_geval", criteria="coherence", llm=Preferring(word="gold"))
    result = pairwise.evaluate_string_pairs(prediction="a gold ring", prediction_b="a ring")
    assert (result["score"], result["value"], result["flipped"]) == (pytest.approx(0.8), "A", False)
    swapped = pairwise.evaluate_string_pairs(prediction="a ring", prediction_b="a gold ring")
    assert (swapped["score"], swapped["value"]) == (pytest.approx(0.2), "B")
    assert result["method"] == "logprobs" and result["n_valid"] == 2 and result["usage"]["requests"] == 2
    assert asyncio.run(pairwise.aevaluate_string_pairs(prediction="a gold ring", prediction_b="a ring")) == result
    json.dumps(result)


def test_a_judge_that_always_says_a_makes_a_tie_and_the_flip_is_noted() -> None:
    pairwise = load_evaluator("pairwise_geval", criteria="coherence", llm=Preferring(word="gold", leaning="A"))
    result = pairwise.evaluate_string_pairs(prediction="one", prediction_b="two")
    assert (result["score"], result["value"], result["flipped"]) == (pytest.approx(0.5), "tie", True)
    assert result["p_orders"] == pytest.approx([0.8, 0.2])
    assert "changes with the order" in result["reasoning"]


def test_a_comparison_that_failed_has_no_score_and_a_reason() -> None:
    pairwise = load_evaluator("pairwise_geval", criteria="coherence", llm=scripted("I cannot tell you."))
    result = pairwise.evaluate_string_pairs(prediction="one", prediction_b="two")
    assert result["score"] is None and result["value"] is None and result["flipped"] is None and result["error"]
    with pytest.raises(RatingError):
        pairwise.invoke({"prediction": "one", "prediction_b": "two"})
    with pytest.raises(InputError, match="prediction_b"):
        pairwise.invoke({"prediction": "one"})
    with pytest.raises(ValueError, match="requires a reference"):
        load_evaluator("pairwise_geval", criteria="correctness", llm=scripted("A")).evaluate_string_pairs(
            prediction="one", prediction_b="two"
        )


def test_several_models_are_a_jury():
    judges = [Sees("a", noise=0), Sees("b", 1, noise=0), Sees("c", dies_after=0)]
    result = load_evaluator("geval", criteria="fluency", model=judges, n=1, readout="samples").evaluate_strings(
        prediction="q=3.0"
    )
    assert (result["score"], result["std_error"], result["method"]) == (3.5, 0.5, "jury")
    assert result["judges"] == {"a": 3.0, "b": 4.0}
    assert (result["n_valid"], result["n_failed"], result["usage"]["requests"]) == (2, 1, 2)
    assert "c none (401 invalid key)" in result["reasoning"]


def test_a_batch_shares_requests_where_the_recipe_says_so():
    judge = Rater()
    settings = {"recipe": "batcheval", "per_request": 5, "rounds": 2, "scale": "1-5"}
    evaluator = load_evaluator("geval", criteria="Is it good?", model=judge, **settings)
    results = evaluator.batch([{"prediction": text} for text in texts(20)])
    assert [result["score"] for result in results] == pytest.approx([quality(text) for text in texts(20)])
    assert len(judge.asked) < 20, "one by one it would be 40"
