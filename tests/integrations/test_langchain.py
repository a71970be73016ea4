"""The LangChain and LangSmith adapters, run with the real frameworks."""

import asyncio
import json
import math
import pickle
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import langchain_classic.evaluation as upstream
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langsmith import aevaluate, evaluate, schemas
from langsmith.evaluation import evaluate_comparative
from langsmith.run_helpers import tracing_context

from geval_adapters import Criterion, GEval, InputError, JudgeError, Sample, Scale
from geval_adapters.judge import local
from langchain_geval import (
    ChatModelJudge,
    GEvalType,
    RatingError,
    geval_evaluator,
    load_evaluator,
    pairwise_geval_evaluator,
)

pytest_plugins = ["pytester"]
embedded = pytest.mark.skipif(not local.is_installed(), reason="the embedded judge is not installed")
TEXT = "The cat sat on the mat. It was warm there."


def token(text: str, alternatives: dict[str, float]) -> dict[str, Any]:
    top = [{"token": other, "logprob": math.log(p)} for other, p in alternatives.items()]
    return {"token": text, "logprob": math.log(alternatives.get(text, 1.0)), "top_logprobs": top}


RATED = [token("Rating", {"Rating": 1.0}), token(":", {":": 1.0}), token(" 4", {" 4": 0.5, " 5": 0.3, "3": 0.2})]
"""'Rating: 4' with a weighted score of 4·.5 + 5·.3 + 3·.2 = 4.1."""


class Scripted(BaseChatModel):
    """Answers each request with the next of its replies, and keeps what it was sent."""

    replies: list[Any]
    model: str = "scripted-1"
    seen: list[dict[str, Any]] = []  # noqa: RUF012
    refuses: str = ""
    alternatives: int = 20
    pause: float = 0.0
    most: int = 0
    now: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.pause)
        self.now -= 1
        if self.refuses and self.refuses in kwargs:
            raise TypeError(f"create() got an unexpected keyword argument '{self.refuses}'")
        if kwargs.get("top_logprobs", 0) > self.alternatives:
            raise ValueError(f"top_logprobs must be at most {self.alternatives}")
        self.seen.append({"messages": messages, "stop": stop, **kwargs})
        reply = self.replies[(len(self.seen) - 1) % len(self.replies)]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            reply = AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def scripted(*replies: Any, **options: Any) -> Scripted:
    return Scripted(replies=list(replies), seen=[], **options)


def weighted(**about: Any) -> AIMessage:
    return AIMessage("Rating: 4", response_metadata={"logprobs": {"content": RATED}, **about})


class OpenAIChat(BaseChatModel):
    """As little of a chat model as it takes to talk to a server that speaks the OpenAI protocol."""

    base: str
    key: str = "none"
    model: str = "gpt-4o-mini"

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "openai", "ls_model_name": self.model, "ls_model_type": "chat"}

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        body = {"model": self.model, "messages": convert_to_openai_messages(messages), **kwargs}
        if stop:
            body["stop"] = stop
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            data = json.load(response)
        choice = data["choices"][0]
        about = {"finish_reason": choice["finish_reason"], "logprobs": choice.get("logprobs")}
        usage = data["usage"]
        spent = {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        }
        message = AIMessage(choice["message"]["content"], response_metadata=about, usage_metadata=spent)
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that rates everything 4 with the weights of RATED, and the requests that it got."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": "Rating: 4"},
                "logprobs": {"content": RATED},
                "finish_reason": "stop",
            }
            usage = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
            body = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/v1", seen
    served.shutdown()
    served.server_close()


@pytest.fixture(autouse=True)
def uploaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that would have been sent to LangSmith; nothing leaves the machine."""
    names: list[str] = []
    monkeypatch.setattr("langsmith.Client.create_run", lambda *_, **run: names.append(run["name"]))
    monkeypatch.setattr("langsmith.Client.update_run", lambda *_, **run: None)
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_API_KEY", "OPENAI_API_KEY", "GEVAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return names


# --- the judge -------------------------------------------------------------------------------------------------------


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


# --- loading ---------------------------------------------------------------------------------------------------------


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
    monkeypatch.setenv("GEVAL_MODEL", "openai/other")
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


# --- the string evaluator --------------------------------------------------------------------------------------------


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


class RouteByPrompt(BaseChatModel):
    """Answers by the first of the words that the prompt holds."""

    replies: dict[str, str]

    @property
    def _llm_type(self) -> str:
        return "route"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        prompt = str(messages[0].content)
        reply = next((reply for word, reply in self.replies.items() if word in prompt), "?")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])


def test_the_async_twin_gives_the_same() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))
    one = geval.evaluate_strings(prediction=TEXT)
    assert asyncio.run(geval.aevaluate_strings(prediction=TEXT)) == one


class Watcher(BaseCallbackHandler):
    """Keeps the runs that it is told of."""

    def __init__(self) -> None:
        self.chains: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.ends: list[Any] = []
        self.errors: list[BaseException] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
        self.chains.append({"inputs": inputs, **about})

    def on_chain_end(self, outputs: Any, **about: Any) -> None:
        self.ends.append(outputs)

    def on_chain_error(self, error: BaseException, **about: Any) -> None:
        self.errors.append(error)

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        self.models.append(about)


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


# --- the pairwise evaluator ------------------------------------------------------------------------------------------


class Preferring(BaseChatModel):
    """Prefers the text that holds a word; without it, the label in `leaning`."""

    word: str
    leaning: str = "A"

    @property
    def _llm_type(self) -> str:
        return "preferring"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        prompt = str(messages[0].content)
        first, second = prompt.find("<output_A>"), prompt.find("<output_B>")
        where = prompt.find(self.word)
        label = self.leaning if where < 0 else "A" if first < where < second else "B"
        top = [{"token": label, "logprob": math.log(0.8)}, {"token": "AB".strip(label), "logprob": math.log(0.2)}]
        content = [{**top[0], "top_logprobs": top}]
        message = AIMessage(label, response_metadata={"logprobs": {"content": content}})
        return ChatResult(generations=[ChatGeneration(message=message)])


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


# --- the runnable ----------------------------------------------------------------------------------------------------


def test_every_way_to_call_a_runnable() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))
    chain = RunnableLambda(lambda topic: AIMessage(f"On {topic}.")) | geval

    async def each() -> list[Any]:
        return [
            await chain.ainvoke("cats"),
            *await chain.abatch(["cats", "dogs"]),
            *[chunk async for chunk in chain.astream("cats")],
        ]

    results = [chain.invoke("cats"), *chain.batch(["cats", "dogs"]), *chain.stream("cats"), *asyncio.run(each())]
    assert len(results) == 8
    assert all(result["score"] == pytest.approx(4.1) for result in results)


def test_a_mapping_in_a_chain_carries_what_belongs_to_the_prediction() -> None:
    llm = scripted(weighted())
    geval = load_evaluator("geval", criteria="relevance", llm=llm)
    chain = {"prediction": RunnableLambda(str.upper), "input": RunnablePassthrough()} | geval
    chain.invoke("what is up?")
    prompt = llm.seen[0]["messages"][0].content
    assert "WHAT IS UP?" in prompt and "what is up?" in prompt
    geval.invoke(Sample("Fine.", source="How are you?"))
    assert "How are you?" in llm.seen[1]["messages"][0].content
    with pytest.raises(InputError, match="no prediction among 'answer'"):
        geval.invoke({"answer": "x"})
    with pytest.raises(InputError, match="no source"):
        geval.invoke("no input here")


def test_a_failed_rating_is_a_value_under_return_exceptions_and_an_exception_otherwise() -> None:
    llm = RouteByPrompt(replies={"fine": "Rating: 4"})
    geval = load_evaluator("geval", criteria="coherence", llm=llm, n=2)
    inputs = ["fine", "bad", "fine"]
    good, bad, also = geval.batch(inputs, return_exceptions=True)
    assert good["score"] == also["score"] == 4.0
    assert isinstance(bad, RatingError)
    assert str(bad) == bad.result["error"] and "no rating in the reply" in str(bad)
    assert bad.result["score"] is None and bad.result["n_failed"] == 2
    assert isinstance(asyncio.run(geval.abatch(inputs, return_exceptions=True))[1], RatingError)
    assert str(pickle.loads(pickle.dumps(bad))) == str(bad)
    for call in (lambda: geval.invoke("bad"), lambda: geval.batch(inputs), lambda: list(geval.stream("bad"))):
        with pytest.raises(RatingError, match="no rating in the reply"):
            call()
    watcher = Watcher()
    with pytest.raises(RatingError):
        geval.invoke("bad", {"callbacks": [watcher]})
    assert isinstance(watcher.errors[0], RatingError)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_max_concurrency_bounds_the_requests_of_a_batch(asynchronous: bool) -> None:
    def most(limit: int | None) -> int:
        llm = scripted("Rating: 4", pause=0.01)
        geval = load_evaluator("geval", criteria="coherence", llm=llm, n=3, readout="samples")
        config = {"max_concurrency": limit}
        texts = [f"text {i}" for i in range(20)]
        results = asyncio.run(geval.abatch(texts, config)) if asynchronous else geval.batch(texts, config)
        assert [result["score"] for result in results] == [4.0] * 20
        assert len(llm.seen) == 60
        return llm.most

    assert most(1) == 1
    assert most(2) == 2
    assert most(None) == 16


def test_children_of_a_batch_are_traced_under_their_own_parents() -> None:
    watcher = Watcher()
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))
    geval.batch(["a", "b", "c"], {"callbacks": [watcher]})
    assert len(watcher.models) == 3
    assert {model["parent_run_id"] for model in watcher.models} == {chain["run_id"] for chain in watcher.chains}


def test_it_works_inside_a_running_loop_and_in_threads() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted(weighted()))

    async def notebook() -> Any:
        return geval.evaluate_strings(prediction=TEXT), geval.invoke(TEXT), geval.batch([TEXT, TEXT])

    one, other, batch = asyncio.run(notebook())
    assert one["score"] == other["score"] == batch[1]["score"] == pytest.approx(4.1)
    with ThreadPoolExecutor(8) as pool:
        scores = [each["score"] for each in pool.map(geval.invoke, [TEXT] * 32)]
    assert scores == pytest.approx([4.1] * 32)
    for _ in range(2):  # and in one event loop after another
        assert asyncio.run(geval.ainvoke(TEXT))["score"] == pytest.approx(4.1)


def _score(evaluator: Any, text: str) -> float:
    return float(evaluator.invoke(text)["score"])


def test_it_travels_to_other_processes(server: Any) -> None:
    by_llm = load_evaluator("geval", criteria="coherence", llm=OpenAIChat(base=server[0]))
    by_name = load_evaluator(
        "geval", criteria="coherence", model="openai/gpt-4o-mini", api_base=server[0], api_key="none"
    )
    assert _score(by_llm, TEXT) == _score(by_name, TEXT) == pytest.approx(4.1)  # also once it has been used
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        scores = list(pool.map(_score, [by_llm, by_name], [TEXT, TEXT]))
    assert scores == pytest.approx([4.1, 4.1])
    for evaluator in (
        load_evaluator("pairwise_geval", criteria="coherence", llm=Preferring(word="gold")),
        geval_evaluator("coherence", llm=scripted(weighted())),
        pairwise_geval_evaluator("coherence", llm=Preferring(word="gold")),
    ):
        pickle.loads(pickle.dumps(evaluator))


@embedded
def test_a_chain_on_the_embedded_model_rated_by_the_embedded_judge() -> None:
    endpoint = local.serve(local.SMOLLM2)
    llm = OpenAIChat(base=endpoint.base, key=endpoint.key, model="local")
    written: list[str] = []
    keep = RunnableLambda(lambda message: written.append(message.content) or message)
    prompt = ChatPromptTemplate.from_template("Write one sentence about {topic}.")
    geval = load_evaluator("geval", criteria="coherence", model="local/smollm2")
    chain = prompt | llm.bind(max_tokens=8, temperature=0) | keep | geval
    result = chain.invoke({"topic": "cats"})
    assert 1 <= result["score"] <= 5
    assert result["method"] == "logprobs" and result["coverage"] > 0.9
    core = GEval("coherence", "local/smollm2").rate(written[0])
    assert result["score"] == pytest.approx(core.score, abs=0.1)  # llama.cpp's caching moves the third digit
    assert result["signature"] == str(core.signature)


# --- LangSmith -------------------------------------------------------------------------------------------------------


def examples() -> list[schemas.Example]:
    return [
        schemas.Example(id=uuid.uuid4(), inputs={"question": question}, outputs={"answer": answer})
        for question, answer in (("Capital of France?", "Paris"), ("Capital of Italy?", "Rome"))
    ]


def answer(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"answer": f"An answer to: {inputs['question']}"}


def test_langsmith_evaluate_takes_it_as_it_is() -> None:
    llm = scripted(weighted())
    results = evaluate(
        answer,
        data=examples(),
        evaluators=[geval_evaluator("correctness", llm=llm), geval_evaluator(["coherence", "fluency"], llm=llm)],
        upload_results=False,
    )
    rows = list(results)
    assert len(rows) == 2
    for row in rows:
        feedback = {each.key: each for each in row["evaluation_results"]["results"]}
        assert set(feedback) == {"correctness", "coherence", "fluency"}
        assert all(each.score == pytest.approx(4.1) for each in feedback.values())
        assert feedback["correctness"].metadata["method"] == "logprobs"
    prompts = [request["messages"][0].content for request in llm.seen]
    correctness = [prompt for prompt in prompts if "Correctness" in prompt]
    assert any("Rome" in p and "An answer to: Capital of Italy?" in p for p in correctness)


def test_nothing_is_uploaded_where_langsmith_was_told_not_to(uploaded: list[str]) -> None:
    evaluator = geval_evaluator("coherence", llm=scripted(weighted()))
    list(evaluate(answer, data=examples(), evaluators=[evaluator], upload_results=False))
    assert uploaded == []


def test_where_tracing_is_on_the_evaluator_and_its_judge_are_traced(uploaded: list[str]) -> None:
    with tracing_context(enabled=True):
        geval_evaluator("coherence", llm=scripted(weighted()))(outputs=TEXT)
    assert uploaded == ["geval", "Scripted"]


def test_langsmith_aevaluate_takes_it_as_it_is() -> None:
    async def target(inputs: dict[str, Any]) -> dict[str, Any]:
        return answer(inputs)

    async def rows() -> list[Any]:
        evaluators = [geval_evaluator("coherence", llm=scripted(weighted()))]
        results = await aevaluate(target, data=examples(), evaluators=evaluators, upload_results=False)
        return [row async for row in results]

    scores = [row["evaluation_results"]["results"][0].score for row in asyncio.run(rows())]
    assert scores == pytest.approx([4.1, 4.1])


def test_a_failed_rating_is_feedback_without_a_score_and_the_comment_says_why() -> None:
    evaluator = geval_evaluator("coherence", llm=scripted("I will not say."), n=1)
    (row, _) = list(evaluate(answer, data=examples(), evaluators=[evaluator], upload_results=False))
    (feedback,) = row["evaluation_results"]["results"]
    assert (feedback.key, feedback.score) == ("coherence", None)
    assert "no rating in the reply" in feedback.comment


def test_the_openevals_convention_and_the_rationale_as_comment() -> None:
    llm = scripted("Rating: 4\nRationale: It holds together.")
    evaluator = geval_evaluator("correctness", llm=llm, n=1, explain=True)
    feedback = evaluator(inputs="Capital of France?", outputs="Paris.", reference_outputs="Paris")
    assert feedback["key"] == "correctness"
    assert feedback["score"] == 4.0
    assert feedback["comment"] == "It holds together."
    assert feedback["metadata"]["method"] == "single"


def test_fields_are_found_by_name_and_by_what_the_user_says() -> None:
    llm = scripted(weighted())
    grounded = geval_evaluator("groundedness", llm=llm)
    grounded(inputs={"question": "Who?", "context": "Ann did it."}, outputs={"answer": "Ann.", "tokens": 3})
    prompt = llm.seen[0]["messages"][0].content
    assert "Ann did it." in prompt and "Who?" in prompt and "tokens" not in prompt
    named = geval_evaluator("coherence", llm=llm, columns={"output": "essay"})
    named(outputs={"essay": "My essay.", "title": "No title"})
    assert "My essay." in llm.seen[1]["messages"][0].content and "No title" not in llm.seen[1]["messages"][0].content
    with pytest.raises(InputError, match="'essay', 'title'"):
        geval_evaluator("coherence", llm=llm)(outputs={"essay": "My essay.", "title": "No title"})
    with pytest.raises(InputError, match="unknown field essay"):
        geval_evaluator("coherence", llm=llm, columns={"essay": "output"})


class Comparing:
    """As much of a LangSmith client as `evaluate_comparative` asks for."""

    def __init__(self, data: list[schemas.Example], outputs: list[list[dict[str, Any]]]) -> None:
        dataset, tenant = uuid.uuid4(), uuid.uuid4()
        now = datetime.now(timezone.utc)
        self.info = SimpleNamespace(instance_flags={})
        self.data = data
        self.experiments = [
            schemas.TracerSessionResult(id=uuid.uuid4(), name=f"e{i}", tenant_id=tenant, reference_dataset_id=dataset)
            for i in range(len(outputs))
        ]
        self.runs = {
            experiment.id: [
                schemas.Run(
                    id=uuid.uuid4(), name="run", start_time=now, run_type="chain", inputs=example.inputs,
                    outputs=output, reference_example_id=example.id, session_id=experiment.id,
                    trace_id=uuid.uuid4(), dotted_order="",
                )
                for example, output in zip(data, its_outputs, strict=True)
            ]
            for experiment, its_outputs in zip(self.experiments, outputs, strict=True)
        }  # fmt: skip
        self.feedback: list[dict[str, Any]] = []

    def create_comparative_experiment(self, name: str, **about: Any) -> Any:
        return SimpleNamespace(id=about["id"], reference_dataset_id=uuid.uuid4())

    def list_runs(self, project_id: uuid.UUID, **_: Any) -> list[schemas.Run]:
        return self.runs[project_id]

    def list_examples(self, example_ids: list[uuid.UUID], **_: Any) -> list[schemas.Example]:
        return [each for each in self.data if each.id in example_ids]

    def create_feedback(self, **feedback: Any) -> None:
        self.feedback.append(feedback)


def compared(outputs: list[list[dict[str, Any]]], llm: BaseChatModel) -> tuple[Comparing, dict[uuid.UUID, Any]]:
    client = Comparing(examples(), outputs)
    evaluator = pairwise_geval_evaluator("coherence", llm=llm)
    evaluate_comparative(client.experiments, evaluators=[evaluator], client=client)  # type: ignore[arg-type]
    return client, {each["run_id"]: each for each in client.feedback}


def test_evaluate_comparative_scores_each_run_by_the_probability_that_it_is_better() -> None:
    client, feedback = compared(
        [[{"answer": "a gold ring"}, {"answer": "one"}], [{"answer": "a ring"}, {"answer": "two"}]],
        Preferring(word="gold"),
    )
    first, second = ([run.id for run in client.runs[each.id]] for each in client.experiments)
    scores = {run: each["score"] for run, each in feedback.items()}
    assert [scores[run] for run in (*first, *second)] == pytest.approx([0.8, 0.5, 0.2, 0.5])
    assert {each["key"] for each in feedback.values()} == {"pairwise coherence"}
    assert "changes with the order" in feedback[first[1]]["comment"]


def test_three_experiments_are_compared_all_with_all_and_what_failed_has_no_score() -> None:
    three = [[{"answer": text}, {"answer": text}] for text in ("a gold ring", "a ring", "rings")]
    client, feedback = compared(three, Preferring(word="gold"))
    runs = [client.runs[each.id][0].id for each in client.experiments]
    assert [feedback[run]["score"] for run in runs] == pytest.approx([0.8, (0.2 + 0.5) / 2, (0.2 + 0.5) / 2])
    _, failed = compared(three[:2], scripted("I cannot tell you."))
    assert len(failed) == 4 and all(each["score"] is None and each["comment"] for each in failed.values())


PYTEST_FILE = """
import pytest
from langchain_core.language_models import FakeListChatModel
from langsmith import testing as t
from langchain_geval import geval_evaluator

politeness = geval_evaluator("Is the reply polite?", llm=FakeListChatModel(responses=["Rating: 4"]))


@pytest.mark.langsmith
def test_the_reply_is_polite():
    reply = "You are most welcome."
    t.log_inputs({"message": "Thank you!"})
    t.log_outputs({"reply": reply})
    feedback = politeness(inputs="Thank you!", outputs=reply)
    t.log_feedback(key=feedback["key"], score=feedback["score"])
    assert feedback["score"] >= 4
"""


def test_it_works_with_langsmiths_pytest_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TEST_TRACKING", "false")
    pytester.makepyfile(PYTEST_FILE)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.makepyfile(PYTEST_FILE.replace("Rating: 4", "Rating: 2"))
    pytester.runpytest_inprocess().assert_outcomes(failed=1)


def test_a_batch_takes_as_long_as_its_slowest_and_not_all_in_turn() -> None:
    geval = load_evaluator("geval", criteria="coherence", llm=scripted("Rating: 4", pause=0.1), n=1, readout="samples")
    began = time.monotonic()
    geval.batch([f"text {i}" for i in range(16)])
    assert time.monotonic() - began < 0.8


def test_the_judge_can_be_used_by_the_core_alone() -> None:
    rating = GEval("coherence", ChatModelJudge(scripted(weighted()), name="acme/judge")).rate(TEXT)
    assert rating.score == pytest.approx(4.1)
    assert str(rating.signature).startswith("model:acme/judge|")
