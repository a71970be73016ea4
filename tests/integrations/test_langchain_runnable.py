"""The evaluators as runnables: in chains, in batches, in loops, threads and processes."""

import asyncio
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from chat_models import (  # noqa: F401
    TEXT,
    OpenAIChat,
    Preferring,
    RouteByPrompt,
    Watcher,
    embedded,
    scripted,
    server,
    uploaded,
    weighted,
)
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from geval_adapters import GEval, InputError, Sample
from geval_adapters.judge import local
from langchain_geval import (
    RatingError,
    geval_evaluator,
    load_evaluator,
    pairwise_geval_evaluator,
)


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
