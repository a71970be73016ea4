"""Agreement with people against tokens: single ratings, batches, adaptive sampling, a jury, a cascade.

    python benchmarks/recipes.py simulated                                   # judges with known errors, seeded
    python benchmarks/recipes.py stored responses/                        # ChatGPT's released replies
    python benchmarks/recipes.py embedded --data topical_chat.json           # the embedded judge, for hours

Simulated: people see an item's quality with noise (reliability .8). A judge sees it with an error of the item, which
the judges share in part (correlation .5), and each reply adds noise; where several items share a request, all of that
request shift together (the batch effect). The dear judge's errors are half as large, its tokens cost ten times as much.
All go through the package as a real judge does.
Without `n` each reply is a request of its own. r: Pearson, over all items, intervals over documents.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from geval_adapters import Answer, GEval, Judge, Reply, Sample, Usage, load_criteria, read_samples
from geval_adapters.agreement.levels import agreement
from geval_adapters.jury import Jury

DOCUMENTS, SYSTEMS = 40, 6
PROMPT_WORDS = 300
"""Words of a source, which a request about several outputs of it shows once."""


@dataclass(frozen=True)
class Row:
    name: str
    scores: Sequence[float | None]
    tokens: float
    requests: float
    dear: float = 0.0


def words(text: str) -> int:
    """Tokens, about."""
    return round(len(text) / 4)


class Seeing(Judge):
    """A judge that sees what `sees` says of each item, with noise of each reply and of each request."""

    apart = 0
    """Tokens that all would have taken more, had each reply been a request of its own."""

    def __init__(self, name: str, sees: Mapping[int, float], noise: float, shift: float, seed: int = 0) -> None:
        self.name = name
        self.quality, self.noise, self.shift = sees, noise, shift
        self.rng = random.Random(f"{name}{seed}")

    async def takes(self, parameter: str) -> bool:
        return parameter != "logprobs"

    async def ask(self, messages: Sequence[Mapping[str, Any]], *, n: int = 1, **_: Any) -> Answer:
        prompt = str(messages[-1]["content"])
        items = [int(each) for each in re.findall(r"<item (\d+)>", prompt)]
        labels = re.findall(r"^(\w+ \d+): \[", prompt, re.MULTILINE)
        replies = []
        for _ in range(n):
            moved = self.rng.gauss(0, self.shift) if len(items) > 1 else 0.0
            values = [self.quality[item] + moved + self.rng.gauss(0, self.noise) for item in items]
            if len(items) > 1:
                lines = zip(labels, values, strict=False)
                replies.append("\n".join(f"{label}: {min(5, max(1, value)):.1f}" for label, value in lines))
            else:
                replies.append(f"Rating: {min(5, max(1, round(values[0])))}")
        usage = Usage(words(prompt), 0, sum(map(words, replies)), 1, None)
        Seeing.apart += (n - 1) * usage.prompt_tokens
        return Answer([Reply(each) for each in replies], usage)


def rated(name: str, geval: GEval, samples: Sequence[Sample]) -> Row:
    ratings = list(geval.rate_many(samples))
    usage = sum((each.usage for each in ratings), Usage())
    n = len(samples)
    return Row(
        name, [each.score for each in ratings], (usage.prompt_tokens + usage.completion_tokens) / n, usage.requests / n
    )


def jury(name: str, gevals: Sequence[GEval], samples: Sequence[Sample]) -> Row:
    panel = Jury(gevals).rate_many(samples)
    used, n = panel.usage, len(samples)
    tokens = (used.prompt_tokens + used.completion_tokens) / n
    return Row(name, [each.panel.score for each in panel], tokens, used.requests / n)


def spread(ratings: Sequence[Any]) -> list[float]:
    """Standard deviation of each rating's distribution."""
    return [
        float(np.sqrt(sum(p * (score - each.score) ** 2 for score, p in each.distribution.items())))
        if each.score is not None
        else np.inf
        for each in ratings
    ]


def cascade(cheap: GEval, dear: GEval, samples: Sequence[Sample], share: float) -> Row:
    """The dear judge's rating, put on the cheap one's scale, for the share of items with the widest distributions."""
    first = list(cheap.rate_many(samples))
    order = np.argsort(spread(first))[::-1]
    asked = sorted(order[: round(share * len(samples))])
    second = list(dear.rate_many([samples[place] for place in asked]))
    scores = [each.score for each in first]
    both = [(scores[place], each.score) for place, each in zip(asked, second, strict=True)]
    known = np.array([pair for pair in both if None not in pair], dtype=float)
    slope = known[:, 0].std() / max(known[:, 1].std(), 1e-9)
    for place, each in zip(asked, second, strict=True):
        if each.score is not None:
            scores[place] = float(known[:, 0].mean() + slope * (each.score - known[:, 1].mean()))
    usages = [sum((each.usage for each in ratings), Usage()) for ratings in (first, second)]
    tokens = [(usage.prompt_tokens + usage.completion_tokens) / len(samples) for usage in usages]
    requests = sum(usage.requests for usage in usages) / len(samples)
    return Row(f"cascade, {share:.0%} to the dear judge", scores, sum(tokens), requests, tokens[1])


def each_way(seed: int) -> Iterator[tuple[Row, Any]]:
    """Every way of rating the items of one simulated world, with what people said of them."""
    rng = np.random.default_rng(seed)
    count = DOCUMENTS * SYSTEMS
    quality = rng.normal(3, 0.8, count)
    people = quality + 0.4 * rng.normal(size=count)
    common = rng.normal(size=count)
    samples = [
        Sample(
            f"<item {item}> " + "word " * 40,
            id=str(item), doc_id=str(item // SYSTEMS), source="word " * PROMPT_WORDS + f"({item // SYSTEMS})",
        )
        for item in range(count)
    ]  # fmt: skip

    def seen(name: str, error: float) -> Judge:
        own = np.random.default_rng([seed, sum(map(ord, name))]).normal(size=count)
        sees = quality + error * (np.sqrt(0.5) * common + np.sqrt(0.5) * own)
        return Seeing(name, dict(enumerate(sees)), noise=0.8, shift=0.3, seed=seed)

    def asked(judge: Judge, **how: Any) -> GEval:
        return GEval("relevance", judge, **how)

    cheap, dear, once = seen("a", 0.8), seen("dear", 0.4), {"n": 1, "temperature": 1.0}
    judges = [cheap, seen("b", 0.8), seen("c", 0.8)]
    yield rated("single x 1", asked(cheap, **once), samples), people
    yield rated("single x 5", asked(cheap, n=5), samples), people
    yield rated("single x 20", asked(cheap, n=20), samples), people
    yield rated("adaptive, error .1", asked(cheap, n=20, adaptive=0.1), samples), people
    yield rated("batch of 10 x 1 round", asked(cheap, recipe="batcheval", rounds=1), samples), people
    yield rated("batch of 10 x 5 rounds", asked(cheap, recipe="batcheval"), samples), people
    yield jury("jury of 3 x 1", [asked(judge, **once) for judge in judges], samples), people
    yield jury("jury of 3 x 5", [asked(judge, n=5) for judge in judges], samples), people
    yield cascade(asked(cheap, n=5), asked(dear, n=5), samples, 0.25), people
    yield rated("the dear judge x 5", asked(dear, n=5), samples), people


def simulated(runs: int) -> None:
    """Means over runs, with two standard errors of those means."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(runs):
        Seeing.apart = 0
        for row, people in each_way(seed):
            r = float(np.corrcoef(np.array(row.scores, dtype=float), people)[0, 1])
            dear = row.tokens if row.name.startswith("the dear") else row.dear
            apart = row.tokens + Seeing.apart / len(people)
            found.setdefault(row.name, []).append((r, row.requests, row.tokens, apart, row.tokens + 9 * dear))
            Seeing.apart = 0
    print("| way | r with people | requests an item | tokens an item | ... without `n` | priced as the cheap judge's |")
    print("| --- | --: | --: | --: | --: | --: |")
    for name, values in found.items():
        table = np.array(values)
        error = 2 * table[:, 0].std(ddof=1) / np.sqrt(len(table))
        r, requests, *tokens = table.mean(axis=0)
        print(f"| {name} | {r:.3f} ± {error:.3f} | {requests:.2f} |", *(f"{each:,.0f} |" for each in tokens))


def show(rows: Iterable[Row], samples: Sequence[Sample], criterion: Any) -> None:
    people = [sample.human_score(criterion) for sample in samples]
    print("| way | r with people | rho | unrated | requests an item | tokens an item |")
    print("| --- | --- | --: | --: | --: | --: |")
    for row in rows:
        level = agreement(list(row.scores), people, [sample.doc_id for sample in samples]).dataset
        r, rho = level.pearson, level.spearman
        missing = sum(score is None for score in row.scores)
        shown = f"{r.value:.3f} [{r.low:.3f}, {r.high:.3f}]" if r.value is not None and r.low is not None else r.value
        rank = "-" if rho.value is None else f"{rho.value:.3f}"
        print(f"| {row.name} | {shown} | {rank} | {missing} | {row.requests:.2f} | {row.tokens:,.0f} |", flush=True)


def embedded(data: Path, limit: int) -> None:
    criterion = load_criteria()["topical_chat/engagingness"]
    samples = [sample for _, sample in zip(range(limit), read_samples(data), strict=False)]
    ways: list[tuple[str, Callable[[], GEval]]] = [
        ("single, log-probabilities", lambda: GEval(criterion)),
        ("batch of 3 x 5 rounds", lambda: GEval(criterion, recipe="batcheval", form="score_only", per_request=3)),
        ("single x 5", lambda: GEval(criterion, n=5, readout="samples")),
        ("adaptive, at most 5", lambda: GEval(criterion, n=5, readout="samples", adaptive=0.1)),
    ]
    show((rated(name, make(), samples) for name, make in ways), samples, criterion)


class Stored(Judge):
    """Gives replies that were stored, in turn, from the first."""

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.name = f"stored/{name}"
        self.rows = {str(number): row for number, row in enumerate(rows)}
        self.given: dict[str, int] = {}

    async def takes(self, parameter: str) -> bool:
        return parameter != "logprobs"

    async def ask(self, messages: Sequence[Mapping[str, Any]], *, n: int = 1, about: str = "", **_: Any) -> Answer:
        first = self.given.get(about, 0)
        self.given[about] = first + n
        texts = self.rows[about]["all_responses"][first : first + n]
        replies = [Reply(text) for text in texts] + [Reply("", error="no more are stored")] * (n - len(texts))
        return Answer(replies, Usage(words(self.rows[about]["prompt"]), 0, sum(map(words, texts)), 1, None))


ASKED = {"rate_explain": "rate_explain", "geval": "score_only", "llm_eval_no_cot": "free_text"}
"""The released files, and in which form their replies were asked for."""


def stored(folder: Path) -> None:
    for short, name in (("nat", "naturalness"), ("coh", "coherence"), ("eng", "engagingness"), ("gro", "groundedness")):
        criterion = load_criteria()[f"topical_chat/{name}"]
        files: dict[str, list[dict[str, Any]]] = {}
        for asked in ASKED:
            with gzip.open(folder / f"topical_chat_gpt3.5_{short}_{asked}.json.gz", "rt", encoding="utf-8") as file:
                files[asked] = json.load(file)
        keys = [{(row["source"], row["system_id"]) for row in rows} for rows in files.values()]
        shared = sorted(set.intersection(*keys))
        rows = {
            asked: [{(row["source"], row["system_id"]): row for row in rows}[key] for key in shared]
            for asked, rows in files.items()
        }
        samples = [
            Sample(
                row["system_output"], source=row["source"], context=row["context"], id=str(number),
                system_id=row["system_id"], human=row["scores"],
            )
            for number, row in enumerate(rows["rate_explain"])
        ]  # fmt: skip

        def judge(asked: str, n: int, rows: Any = rows, criterion: Any = criterion, **more: Any) -> GEval:
            return GEval(criterion, Stored(asked, rows[asked]), form=ASKED[asked], n=n, temperature=1, **more)

        nobody = [replace(sample, human={}) for sample in samples]
        print(f"\n{name}, {len(samples)} responses\n")
        show(
            [
                *(rated(f"single x {count}", judge("rate_explain", count), samples) for count in (1, 5, 20)),
                rated("adaptive, error .1", judge("rate_explain", 20, adaptive=0.1), samples),
                jury("three forms x 1, a jury", [judge(asked, 1) for asked in ASKED], nobody),
                jury("three forms x 1, weighted by people", [judge(asked, 1) for asked in ASKED], samples),
            ],
            samples,
            criterion,
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=("simulated", "stored", "embedded"))
    options.add_argument("responses", nargs="?", type=Path)
    options.add_argument("--data", type=Path)
    options.add_argument("--limit", type=int, default=60)
    options.add_argument("--runs", type=int, default=50)
    given = options.parse_args()
    if given.what == "simulated":
        simulated(given.runs)
    elif given.what == "embedded":
        embedded(given.data, given.limit)
    else:
        stored(given.responses)


if __name__ == "__main__":
    main()
