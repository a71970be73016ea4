"""Ratings per second, and CPU per rating, of `rate_many` beside bare clients and the batch ways of other judges.

    uv run --with deepeval --with openevals --with mlflow --with langchain-openai python benchmarks/throughput.py
        [--only NAME ...] [--rounds N] [--prompts N]

One server on loopback answers after 50 ms, in a process of its own; it looks at each request and sends what was asked
for: log-probabilities with their alternatives, JSON by a schema, or text. Each contender lives in a process of its own,
which is warmed up and then rates the same samples once per round, all contenders in turn, 64 requests at a time. CPU is
the client process's, over all of its threads. The bare clients are given the messages that `rate_many` sends, rendered
beforehand, and make no score of the replies. A contender whose package is missing is passed over.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import random
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from statistics import fmean, median, stdev
from typing import Any, NamedTuple, TypeVar

from answering import Answering, counts, http, serve, start

LATENCY, CONCURRENCY, WARM_UP, PER_SOURCE = 0.05, 64, 256, 16
MODEL, KEY, CRITERION = "gpt-4o-mini", "none", "summeval/coherence"
DEFINITION = "How well the sentences of the summary work together."
EXPLANATION = "The summary follows the order of the article, and each of its sentences takes up the one before."
QUIET = {
    "OPENAI_API_KEY": KEY,
    "DO_NOT_TRACK": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db",
}
"""The environment of the contenders: nothing is reported to anyone, and the key opens nothing."""

Texts = Sequence[tuple[str, str]]
"""Sources and the outputs to be rated."""
Batch = Callable[[int], Sequence[object]]
"""Rates the first so many texts and returns what came of each, None where nothing did."""
T = TypeVar("T")


def make_texts(count: int) -> Texts:
    """Texts that make prompts of about 600 tokens, `PER_SOURCE` outputs to a source."""
    rng = random.Random(0)
    words = "the of in to he she it was said who with new city police year after team two over would".split()  # noqa: SIM905

    def write(length: int) -> str:
        return " ".join(rng.choices(words, k=length)).capitalize() + "."

    sources = [write(360) for _ in range(-(-count // PER_SOURCE))]
    return [(sources[i // PER_SOURCE], write(50)) for i in range(count)]


# --- the server -------------------------------------------------------------------------------------------------------


class Judge(Answering):
    """Answers after `LATENCY` seconds with what was asked for."""

    def answer(self, request: dict[str, Any], size: int) -> None:
        reply = response_to(request)
        self.counts.update(
            requests=1, logprobs=int(bool(request.get("logprobs"))), sent_bytes=size, reply_bytes=len(reply)
        )
        asyncio.get_running_loop().call_later(LATENCY, self.send, reply)


_replies: dict[tuple[str, bool], bytes] = {}


def response_to(request: dict[str, Any]) -> bytes:
    """What the request asks for, made once."""
    asked = json.dumps(request["messages"][-1]["content"])
    if schema := (request.get("response_format") or {}).get("json_schema"):
        text = json.dumps({name: _value(name) for name in schema["schema"]["properties"]})
    elif "[[" in asked:  # LangChain's scoring evaluator
        text = f"{EXPLANATION} Rating: [[4]]"
    elif "JSON" in asked:  # DeepEval
        text = json.dumps({"reason": EXPLANATION, "score": 4})
    else:
        text = "Rating: 4"
    kind = text, bool(request.get("logprobs"))
    if kind not in _replies:
        _replies[kind] = http(200, json.dumps(_completion(*kind), separators=(",", ":")).encode())
    return _replies[kind]


def _value(name: str) -> object:
    return 4 if name in ("score", "result") else EXPLANATION


def _completion(text: str, logprobs: bool) -> dict[str, Any]:
    tokens = re.findall(r"\s?\w+|\s?[^\w\s]+", text)
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "logprobs": {"content": [_token(token) for token in tokens]} if logprobs else None,
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 600, "completion_tokens": len(tokens), "total_tokens": 600 + len(tokens)}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
    return head | {"choices": [choice], "usage": usage}


def _token(token: str) -> dict[str, Any]:
    """A token with 20 alternatives; at a number, those of the scale are among them, plain and with a space."""
    others = [f"w{i}" for i in range(20)]
    if token.strip().isdigit():
        others = [f"{space}{score}" for score in range(1, 6) for space in (" ", "")] + others
    names = [token, *(other for other in others if other != token)][:20]
    tops = [{"token": name, "logprob": round(-0.5 - 1.1 * i, 4)} for i, name in enumerate(names)]
    return tops[0] | {"top_logprobs": tops}


# --- the contenders: given the server's address and the texts, each returns what rates the first so many of them ------


def rate_many(base: str, texts: Texts, direct: bool = True) -> Batch:
    from geval_adapters import GEval, Sample

    options: dict[str, Any] = {"api_base": base, "api_key": KEY, "concurrency": CONCURRENCY, "direct": direct}
    geval = GEval(CRITERION, f"openai/{MODEL}", **options)

    def batch(count: int) -> list[object]:
        samples = (Sample(output, source=source) for source, output in texts[:count])
        return [rating.score for rating in geval.rate_many(samples)]

    return batch


def rate_many_litellm(base: str, texts: Texts) -> Batch:
    return rate_many(base, texts, direct=False)


def bare_aiohttp(base: str, texts: Texts) -> Batch:
    import aiohttp

    async def connect() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=CONCURRENCY)
        return aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {KEY}"})

    session = loop().run_until_complete(connect())

    async def ask(body: dict[str, Any]) -> object:
        async with session.post(f"{base}/chat/completions", json=body) as response:
            return (await response.json())["choices"][0]["message"]["content"]

    bodies = requests(texts)
    return lambda count: gathered(ask, bodies[:count])


def bare_litellm(base: str, texts: Texts) -> Batch:
    import litellm

    async def ask(body: dict[str, Any]) -> object:
        sent = body | {"model": f"openai/{MODEL}"}
        response = await litellm.acompletion(**sent, api_base=base, api_key=KEY, max_retries=0)
        return response.choices[0].message.content

    bodies = requests(texts)
    return lambda count: gathered(ask, bodies[:count])


def deepeval(base: str, texts: Texts) -> Batch:
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
    from deepeval.metrics import GEval
    from deepeval.models import OpenAIModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    metric = GEval(
        name="coherence",
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
        evaluation_steps=[DEFINITION],
        model=OpenAIModel(MODEL, api_key=KEY, base_url=base),
    )
    cases = [LLMTestCase(input=source, actual_output=output) for source, output in texts]

    def batch(count: int) -> list[object]:
        result = evaluate(
            cases[:count],
            [metric],
            async_config=AsyncConfig(max_concurrent=CONCURRENCY),
            cache_config=CacheConfig(write_cache=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        )
        return [one.score for each in result.test_results for one in each.metrics_data]

    return batch


def openevals(base: str, texts: Texts) -> Batch:
    from langchain_openai import ChatOpenAI
    from openevals.llm import create_async_llm_as_judge

    judge = create_async_llm_as_judge(
        prompt=DEFINITION + "\n<article>\n{inputs}\n</article>\n<summary>\n{outputs}\n</summary>",
        judge=ChatOpenAI(model=MODEL, base_url=base, temperature=0),
        choices=[1, 2, 3, 4, 5],
    )

    async def ask(pair: tuple[str, str]) -> object:
        return (await judge(inputs=pair[0], outputs=pair[1]))["score"]

    return lambda count: gathered(ask, texts[:count])


def langchain_classic(base: str, texts: Texts) -> Batch:
    from langchain_classic.evaluation import load_evaluator
    from langchain_openai import ChatOpenAI

    llm = ChatOpenAI(model=MODEL, base_url=base, temperature=0)
    evaluator: Any = load_evaluator("score_string", llm=llm, criteria={"coherence": DEFINITION})

    async def ask(pair: tuple[str, str]) -> object:
        return (await evaluator.aevaluate_strings(input=pair[0], prediction=pair[1]))["score"]

    return lambda count: gathered(ask, texts[:count])


def mlflow(base: str, texts: Texts) -> Batch:
    """Its judge in threads: `mlflow.genai.evaluate` also writes each row as a trace to a database, which is slower."""
    from mlflow.genai.judges import make_judge

    judge = make_judge(
        name="coherence",
        instructions=f"{DEFINITION} Rate the summary {{{{ outputs }}}} of {{{{ inputs }}}} from 1 to 5.",
        model=f"openai:/{MODEL}",
        base_url=base,
        feedback_value_type=int,
    )

    def ask(pair: tuple[str, str]) -> object:
        return judge(inputs={"article": pair[0]}, outputs=pair[1]).value

    pool = ThreadPoolExecutor(CONCURRENCY)
    return lambda count: list(pool.map(ask, texts[:count]))


class Contender(NamedTuple):
    name: str
    prepare: Callable[[str, Texts], Batch]
    packages: tuple[str, ...] = ()


CONTENDERS = (
    Contender("bare aiohttp", bare_aiohttp),
    Contender("rate_many", rate_many),
    Contender("bare LiteLLM", bare_litellm),
    Contender("rate_many, direct=False", rate_many_litellm),
    Contender("DeepEval", deepeval, ("deepeval",)),
    Contender("openevals", openevals, ("openevals", "langchain_openai")),
    Contender("langchain_classic", langchain_classic, ("langchain_openai",)),
    Contender("MLflow", mlflow, ("mlflow",)),
)


def requests(texts: Texts) -> list[dict[str, Any]]:
    """What `rate_many` sends for the texts."""
    from geval_adapters import GEval, Sample

    prompt = GEval(CRITERION, f"openai/{MODEL}", api_key=KEY).way.prompts[0]
    more = {"temperature": 0.0, "max_tokens": prompt.room(False), "stop": [prompt.stop(False)]}
    asked = {"model": MODEL, "logprobs": True, "top_logprobs": 20} | more
    return [asked | {"messages": prompt.messages(Sample(output, source=source))} for source, output in texts]


@cache
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def gathered(ask: Callable[[T], Awaitable[object]], items: Sequence[T]) -> Sequence[object]:
    """The results of asking about all items at once, `CONCURRENCY` of them under way."""

    async def every() -> Sequence[object]:
        gate = asyncio.Semaphore(CONCURRENCY)

        async def one(item: T) -> object:
            async with gate:
                return await ask(item)

        return await asyncio.gather(*map(one, items))

    return loop().run_until_complete(every())


# --- the runs ---------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """One batch: ratings per second, and milliseconds of CPU per rating."""

    rate: float
    cpu: float


def contend(name: str, base: str, count: int, pipe: Connection) -> None:
    """A contender's process: warm up, then a batch whenever the pipe says so."""
    os.environ |= QUIET
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        os.chdir(folder)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere.fileno(), stream.fileno())
        try:
            batch = next(each for each in CONTENDERS if each.name == name).prepare(base, make_texts(count))
            batch(min(count, WARM_UP))
            pipe.send(None)
            while pipe.recv():
                gc.collect()
                start, cpu = time.perf_counter(), time.process_time()
                results = batch(count)
                spent, used = time.perf_counter() - start, time.process_time() - cpu
                if (read := sum(result is not None for result in results)) != count:
                    raise RuntimeError(f"{read} results for {count} prompts")
                pipe.send(Run(count / spent, 1000 * used / count))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


def measure(chosen: Sequence[Contender], rounds: int, count: int) -> None:
    server, pipe = start(serve, Judge)
    base = pipe.recv()
    ready: dict[str, Connection] = {}
    for each in chosen:
        if absent := [package for package in each.packages if importlib.util.find_spec(package) is None]:
            print(f"{each.name}: not installed ({', '.join(absent)})")
            continue
        _, pipe = start(contend, each.name, base, count)
        if (failed := pipe.recv()) is not None:
            print(f"{each.name}: {failed}")
            continue
        ready[each.name] = pipe
    asked: dict[str, dict[str, float]] = {}
    runs: dict[str, list[Run]] = {name: [] for name in ready}
    for number in range(rounds):
        for name, pipe in ready.items():
            counts(base)
            pipe.send(True)
            run = pipe.recv()
            if not isinstance(run, Run):
                sys.exit(f"{name}: {run}")
            runs[name].append(run)
            asked[name] = counts(base)
        print(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    server.terminate()
    report(runs, asked, count)


def report(runs: dict[str, list[Run]], asked: dict[str, dict[str, float]], count: int) -> None:
    """The medians of the rounds; what a contender is compared with ran in the same round.

    A ratio is the mean of the rounds' logarithms, with its 95 % interval by Student's t.
    """

    from scipy.special import stdtrit  # not in the contenders' processes

    def ratio(name: str, field: int, other: str) -> str:
        both = zip(runs[name], runs.get(other, ()), strict=False)
        logs = [math.log(run[field] / beside[field]) for run, beside in both]
        if name == other or len(logs) < 2:
            return "1" if logs else "-"
        half = stdtrit(len(logs) - 1, 0.975) * stdev(logs) / math.sqrt(len(logs))
        return "{:.2f} ({:.2f}–{:.2f})".format(*(math.exp(fmean(logs) + each) for each in (0, -half, half)))

    rows = []
    for name, each in runs.items():
        rates, cpus = zip(*each, strict=True)
        rate = f"{median(rates):.0f} ({min(rates):.0f}–{max(rates):.0f})"
        cpu = f"{median(cpus):.2f} ({min(cpus):.2f}–{max(cpus):.2f})"
        rows.append([name, rate, *(ratio(name, 0, other) for other in BARE), cpu, *(ratio(name, 1, o) for o in BARE)])
    beside = [f"× {name}" for name in BARE]
    table(["", "ratings/s (range)", *beside, "CPU ms a rating (range)", *beside], rows)
    rows = []
    for name, told in asked.items():
        made = told["requests"]
        means = (f"{told[key] / made:.0f}" for key in ("sent_bytes", "reply_bytes"))
        rows.append([name, f"{made / count:.2f}", f"{told['logprobs'] / made:.0%}", *means])
    table(["", "requests a rating", "with log-probabilities", "bytes of a request", "bytes of a reply"], rows)
    busy = max(told["cpu"] / count * runs[name][-1].rate for name, told in asked.items())
    print(f"The server was busy for {busy:.0%} of the time at most.")


def table(head: list[str], rows: list[list[str]]) -> None:
    for cells in (head, ["---", *["--:"] * (len(head) - 1)], *rows):
        print(f"| {' | '.join(cells)} |")
    print()


PACKAGES = ("aiohttp", "litellm", "deepeval", "openevals", "langchain-classic", "langchain-openai", "mlflow")
BARE = ("bare aiohttp", "bare LiteLLM")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ratings per second, and CPU per rating, of judges")
    names = [each.name for each in CONTENDERS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=2000)
    arguments = parser.parse_args()
    chosen = [each for each in CONTENDERS if each.name in arguments.only]
    measure(chosen, arguments.rounds, arguments.prompts)
    print(", ".join(f"{name} {version}" for name in PACKAGES if (version := installed(name))))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, load at the end {load}")


def installed(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


if __name__ == "__main__":
    main()
