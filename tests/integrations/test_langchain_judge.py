"""A LangChain chat model as the judge, and evaluators by their names."""

import json
import sys
from typing import Any

import langchain_classic.evaluation as upstream
import pytest
from chat_models import TEXT, OpenAIChat, Scripted, scripted, server, uploaded, weighted  # noqa: F401
from langchain_classic.chains.constitutional_ai.models import ConstitutionalPrinciple
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from geval_adapters import Criterion, GEval, InputError, JudgeError, Scale
from langchain_geval import (
    GEvalType,
    load_evaluator,
)


def test_a_chat_model_that_returns_logprobs_gives_the_weighted_score() -> None:
    llm = scripted(weighted())
    result = load_evaluator("geval", criteria="coherence", llm=llm).evaluate_strings(prediction=TEXT)
    assert result["score"] == pytest.approx(4.1)
    assert result["value"] == "4"
    assert result["method"] == "logprobs"
    assert result["coverage"] == pytest.approx(1.0)
    assert result["distribution"] == pytest.approx({"3": 0.2, "4": 0.5, "5": 0.3})
    assert len(llm.seen) == 1
    assert llm.seen[0]["logprobs"] is True
    assert llm.seen[0]["top_logprobs"] == 20
    json.dumps(result)


def test_a_chat_model_without_logprobs_is_rated_by_samples_and_says_so() -> None:
    llm = FakeListChatModel(responses=["Rating: 3", "Rating: 5"])
    result = load_evaluator("geval", criteria="coherence", llm=llm).evaluate_strings(prediction=TEXT)
    assert result["method"] == "samples"
    assert "readout:samples" in result["signature"]
    assert result["n_valid"] == 20
    assert result["score"] == 4.0
    assert result["distribution"] == pytest.approx({"3": 0.5, "5": 0.5})


def test_the_same_replies_give_the_same_score_and_signature_through_langchain_and_the_core(server: Any) -> None:
    base, seen = server
    core = GEval("coherence", "openai/gpt-4o-mini", api_base=base, api_key="none").rate(TEXT)
    by_llm = load_evaluator("geval", criteria="coherence", llm=OpenAIChat(base=base)).evaluate_strings(prediction=TEXT)
    by_name = load_evaluator(
        "geval", criteria="coherence", model="openai/gpt-4o-mini", api_base=base, api_key="none"
    ).evaluate_strings(prediction=TEXT)
    assert by_llm["score"] == by_name["score"] == core.score == pytest.approx(4.1)
    assert by_llm["signature"] == by_name["signature"] == str(core.signature)
    assert str(core.signature).startswith("model:openai/gpt-4o-mini|")
    assert seen[0] == seen[1] == seen[2]  # to the letter the same request
    assert by_llm["usage"] == by_name["usage"]
    assert by_llm["usage"]["cost"] > 0


def test_a_parameter_that_the_model_does_not_take_is_given_up_and_the_signature_knows() -> None:
    llm = scripted("Rating: 4", refuses="temperature")
    result = load_evaluator("geval", criteria="coherence", llm=llm, n=3).evaluate_strings(prediction=TEXT)
    assert result["score"] == 4.0
    assert "temperature:default" in result["signature"]
    assert all("temperature" not in request and request["max_tokens"] for request in llm.seen)

    refusing = scripted("Rating: 4", refuses="logprobs")
    result = load_evaluator("geval", criteria="coherence", llm=refusing, n=3).evaluate_strings(prediction=TEXT)
    assert result["method"] == "samples" and result["n_valid"] == 3


def test_a_model_that_gives_few_alternatives_is_asked_for_few() -> None:
    llm = scripted(weighted(), alternatives=5)
    result = load_evaluator("geval", criteria="coherence", llm=llm).evaluate_strings(prediction=TEXT)
    assert result["method"] == "logprobs" and llm.seen[0]["top_logprobs"] == 5


def test_the_answer_is_begun_for_the_models_for_which_litellm_begins_it() -> None:
    class Anthropic(Scripted):
        def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
            return {"ls_provider": "anthropic", "ls_model_name": self.model}

    llm = Anthropic(replies=["4"], seen=[], model="claude-haiku-4-5")
    geval = load_evaluator("geval", criteria="coherence", llm=llm, n=1, readout="samples")
    result = geval.evaluate_strings(prediction=TEXT)
    assert result["score"] == 4.0
    assert [message.type for message in llm.seen[0]["messages"]] == ["human", "ai"]
    assert llm.seen[0]["messages"][1].content == "Rating:"
    assert result["signature"].startswith("model:anthropic/claude-haiku-4-5|")
    other = scripted("4")
    load_evaluator("geval", criteria="coherence", llm=other, n=1).evaluate_strings(prediction=TEXT)
    assert [message.type for message in other.seen[0]["messages"]] == ["human"]


def test_a_failed_request_is_missing_and_neither_zero_nor_the_end_of_the_others() -> None:
    llm = scripted("Rating: 4", TimeoutError("took too long"), "Rating: 2")
    geval = load_evaluator("geval", criteria="coherence", llm=llm, n=3, readout="samples")
    result = geval.evaluate_strings(prediction=TEXT)
    assert (result["score"], result["n_valid"], result["n_failed"]) == (3.0, 2, 1)


def test_refused_credentials_end_it_and_no_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretkey")
    refusal = PermissionError("Incorrect API key provided: sk-verysecretkey")
    refusal.status_code = 401  # type: ignore[attr-defined]
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(refusal))
    with pytest.raises(JudgeError, match="scripted/scripted-1") as caught:
        geval.evaluate_strings(prediction=TEXT)
    assert "verysecret" not in str(caught.value)


def test_a_key_that_a_server_echoes_is_in_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "verysecretkey")
    geval = load_evaluator("geval", criteria="coherence", llm=scripted("I cannot, verysecretkey."), readout="samples")
    result = geval.evaluate_strings(prediction=TEXT)
    assert "[key]" in result["error"]
    assert "verysecret" not in str(result)


def test_langchains_cache_does_not_make_samples_out_of_one_reply() -> None:
    set_llm_cache(InMemoryCache())
    try:
        llm = scripted("Rating: 3", "Rating: 5")
        geval = load_evaluator("geval", criteria="coherence", llm=llm, readout="samples", n=4)
        for _ in range(2):
            assert geval.evaluate_strings(prediction=TEXT)["distribution"] == {"3": 0.5, "5": 0.5}
    finally:
        set_llm_cache(None)


def test_a_bound_model_is_asked_as_bound_and_named_as_itself() -> None:
    llm = scripted(weighted())
    result = load_evaluator("geval", criteria="coherence", llm=llm.bind(seed=7)).evaluate_strings(prediction=TEXT)
    assert llm.seen[0]["seed"] == 7
    assert result["signature"].startswith("model:scripted/scripted-1|")


def test_a_reply_that_was_cut_off_is_asked_for_again_with_room() -> None:
    cut = AIMessage("Well,", response_metadata={"finish_reason": "length"})
    llm = scripted(cut, "Rating: 4")
    geval = load_evaluator("geval", criteria="coherence", llm=llm, readout="samples", n=1)
    assert geval.evaluate_strings(prediction=TEXT)["score"] == 4.0
    assert "max_tokens" not in llm.seen[1]


def test_upstream_loads_both_by_name_in_every_way_it_knows(server: Any) -> None:
    options = {"criteria": "coherence", "model": "openai/gpt-4o-mini", "api_base": server[0], "api_key": "none"}
    for name in ("geval", GEvalType.GEVAL):
        assert upstream.load_evaluator(name, **options).evaluate_strings(prediction=TEXT)["score"] == pytest.approx(4.1)
    string, pair = upstream.load_evaluators(["geval", GEvalType.PAIRWISE_GEVAL], **options)
    assert isinstance(string, upstream.StringEvaluator)
    assert isinstance(pair, upstream.PairwiseStringEvaluator)


def test_where_upstream_drops_the_llm_the_evaluator_refuses_and_names_the_front_door() -> None:
    for name in ("geval", "pairwise_geval"):
        with pytest.raises(InputError, match=r"langchain_geval\.load_evaluator"):
            upstream.load_evaluator(name, criteria="coherence", llm=scripted("Rating: 4"))
        with pytest.raises(InputError, match=r"langchain_geval\.load_evaluator"):
            upstream.load_evaluators([name], criteria="coherence", llm=scripted("Rating: 4"))


def test_no_model_but_the_named_one_is_ever_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEVAL_MODEL", raising=False)
    for nothing in ({}, {"model": ""}, {"model": None, "llm": None}):
        with pytest.raises(InputError, match="no judge was named"):
            load_evaluator("geval", criteria="coherence", **nothing)
    with pytest.raises(InputError, match="two judges"):
        load_evaluator("geval", criteria="coherence", model="openai/gpt-4o-mini", llm=scripted("Rating: 4"))


def test_every_other_name_is_passed_on_with_its_llm() -> None:
    assert load_evaluator("exact_match").evaluate_strings(prediction="a", reference="a") == {"score": 1}
    assert load_evaluator(upstream.EvaluatorType.REGEX_MATCH).evaluate_strings(prediction="a", reference="a+")["score"]
    with pytest.raises(ValueError, match="Unknown evaluator type: nonsense"):
        load_evaluator("nonsense")


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ("coherence", ["coherence"]),
        (["coherence", "fluency"], ["coherence", "fluency"]),
        ("Is the text polite and kind?", ["is_the_text_polite_and_kind"]),
        ({"politeness": "Is it polite?", "depth": "Does it go deep?"}, ["politeness", "depth"]),
        (Criterion("rhyme", "Does it rhyme?", Scale.of("0-1")), ["rhyme"]),
        (upstream.Criteria.COHERENCE, ["coherence"]),
    ],
)
def test_criteria_come_in_every_form(criteria: Any, names: list[str]) -> None:
    llm = scripted("Rating: 1")
    geval = load_evaluator("geval", criteria=criteria, llm=llm, n=1, readout="samples")
    assert geval.evaluation_name == ", ".join(names)
    result = geval.evaluate_strings(prediction=TEXT)
    rows = result.get("ratings", {names[0]: result})
    assert [row["criterion"] for row in rows.values()] == names
    assert all(row["score"] == 1 for row in rows.values())


def test_descriptions_are_what_the_judge_reads() -> None:
    llm = scripted("Rating: 1")
    geval = load_evaluator("geval", criteria={"zest": "Is it full of zest and pepper?"}, llm=llm, n=1)
    geval.evaluate_strings(prediction=TEXT, input="Say something.")
    prompt = llm.seen[0]["messages"][0].content
    assert "Is it full of zest and pepper?" in prompt and "Say something." in prompt and TEXT in prompt


def test_what_cannot_be_loaded_says_why() -> None:
    for criteria, said in ((None, "no criteria"), ([], "no criteria"), ("coherense", "coherence")):
        with pytest.raises(InputError, match=said):
            load_evaluator("geval", criteria=criteria, model="openai/gpt-4o-mini")
    with pytest.raises(InputError, match="unknown option temprature"):
        load_evaluator("geval", criteria="coherence", model="openai/gpt-4o-mini", temprature=0)
    with pytest.raises(InputError, match="api_base: belongs to a model string"):
        load_evaluator("geval", criteria="coherence", llm=scripted("Rating: 4"), api_base="http://localhost")
    with pytest.raises(InputError, match="must be a LangChain chat model"):
        load_evaluator("geval", criteria="coherence", llm=RunnableLambda(str))


def test_langchain_openai_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not {"langchain_openai", "langchain_community"} & set(sys.modules)
    for name in ("langchain_openai", "langchain_community"):
        monkeypatch.setitem(sys.modules, name, None)  # now an import of it fails
    llm = FakeListChatModel(responses=["Rating: 4"])
    assert load_evaluator("geval", criteria="coherence", llm=llm).evaluate_strings(prediction=TEXT)["score"] == 4
    assert upstream.load_evaluator("geval", criteria="coherence", model="openai/gpt-4o-mini").requires_input is False


# --- what users of LangChain are used to -----------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", list(upstream.Criteria))
def test_each_of_upstreams_criteria_asks_upstreams_question(criterion: upstream.Criteria) -> None:
    ((name, question),) = upstream.CriteriaEvalChain.resolve_criteria(criterion).items()
    llm = scripted("Rating: 4")
    geval = load_evaluator("geval", criteria=criterion, llm=llm, n=1)
    reference = "Paris." if geval.requires_reference else None
    assert geval.requires_reference == (criterion is upstream.Criteria.CORRECTNESS)
    result = geval.evaluate_strings(prediction=TEXT, reference=reference, input="Tell me.")
    assert (geval.evaluation_name, result["score"]) == (name, 4)
    assert question.removesuffix(" If so, respond Y. If not, respond N.") in str(llm.seen[-1]["messages"])


def test_the_names_that_only_upstream_has_work_as_strings_and_in_lists() -> None:
    geval = load_evaluator("geval", criteria=["harmfulness", "coherence", "depth"], llm=scripted("Rating: 4"))
    assert geval.evaluation_name == "harmfulness, coherence, depth"


def test_a_constitutional_principle_is_a_criterion() -> None:
    principle = ConstitutionalPrinciple(name="calm", critique_request="Is it calm?", revision_request="Calm it.")
    llm = scripted("Rating: 2")
    assert load_evaluator("geval", criteria=principle, llm=llm).evaluate_strings(prediction=TEXT)["score"] == 2
    assert "Is it calm?" in str(llm.seen[-1]["messages"])


def test_one_description_and_two_are_on_one_scale() -> None:
    one = {"calm": "Is it calm?"}
    for criteria in (one, {**one, "short": "Is it short?"}):
        result = load_evaluator("geval", criteria=criteria, llm=scripted("Rating: 4")).evaluate_strings(prediction=TEXT)
        assert (result["score"], result["normalized"]) == (4, 0.75)


def test_fallbacks_retries_and_bound_temperatures_are_kept() -> None:
    broken, good = scripted(ValueError("overloaded")), scripted("Rating: 4")
    for llm in (broken.with_fallbacks([good]), good.with_retry(), broken.with_fallbacks([good]).with_retry()):
        assert load_evaluator("geval", criteria="coherence", llm=llm).evaluate_strings(prediction=TEXT)["score"] == 4
    bound = load_evaluator("geval", criteria="coherence", llm=good.bind(temperature=0.3), n=2, readout="samples")
    result = bound.evaluate_strings(prediction=TEXT)
    assert good.seen[-1]["temperature"] == 0.3
    assert "|temperature:default|" in result["signature"]


def test_the_judge_may_stand_in_the_environment(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEVAL_MODEL", "openai/gpt-4o-mini")
    options = {"criteria": "coherence", "api_base": server[0], "api_key": "none"}
    for name in ("geval", "pairwise_geval"):
        assert load_evaluator(name, **options).judge.name == "openai/gpt-4o-mini"
    assert load_evaluator("geval", criteria="coherence", llm=scripted("Rating: 4")).judge.name != "openai/gpt-4o-mini"
    with pytest.raises(InputError, match="from langchain_geval import load_evaluator"):  # which drops llm
        upstream.load_evaluator("geval", criteria="coherence", llm=scripted("Rating: 4"))
