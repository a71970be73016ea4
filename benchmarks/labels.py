"""How often the intervals of `geval_adapters.labels` hold the truth, how wide they are, and how often a gate errs.

    uv run python benchmarks/labels.py FOLDER [--runs 2000] [--only TABLE ...]

FOLDER holds people's scores (SummEval, Topical-Chat) and judges' stored replies. Judges: `chatgpt` and `llama2` from
their replies; `planted` is made from people's scores, with a slope of .6, an offset, noise that differs from item to
item (and a spread that half tells how much), and a liking for one system. Each run draws documents with replacement,
draws items of them for labelling, and asks whether the interval holds the mean over all items of the data.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from geval_adapters import read_text
from geval_adapters.criteria import load_criteria
from geval_adapters.labels.conformal import conformal
from geval_adapters.labels.correction import by_system, estimated
from geval_adapters.labels.prediction import Drawn
from geval_adapters.labels.transport import transport

Floats = np.ndarray
LABELS = (50, 100, 200)
DESIGNS = ("random", "stratified", "active")
FLOOR = 0.3


@dataclass(frozen=True)
class Data:
    """A judge and people on the items of a data set; columns of equal length."""

    name: str
    people: Floats
    judge: Floats
    spread: Floats
    document: Floats
    system: Floats
    scale: tuple[float, float]

    def resampled(self, rng: np.random.Generator) -> Data:
        """As many documents, drawn with replacement; a document drawn twice is two."""
        starts = np.searchsorted(self.document, np.arange(self.document[-1] + 2))
        drawn = rng.integers(len(starts) - 1, size=len(starts) - 1)
        sizes = np.diff(starts)[drawn]
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes) + np.repeat(starts[drawn], sizes)
        numbered = np.repeat(np.arange(len(drawn)), sizes)
        columns = (each[places] for each in (self.people, self.judge, self.spread))
        return Data(self.name, *columns, numbered, self.system[places], self.scale)


def probabilities(data: Data, design: str, n: int) -> Floats:
    size = len(data.judge)
    n = min(n, size)
    if design != "active":
        return np.full(size, n / size)
    weights = FLOOR + (1 - FLOOR) * data.spread / data.spread.mean()
    descending = np.sort(weights)[::-1]
    rest = np.cumsum(descending[::-1])[::-1]
    rates = (n - np.arange(n)) / rest[:n]
    return np.minimum(1, weights * rates[np.argmax(rates * descending[:n] <= 1)])


def draw(data: Data, design: str, n: int, rng: np.random.Generator) -> Drawn:
    """One wave as `geval label` draws it: a comb thrown on a line of items, by document or by the judge's score."""
    chances = probabilities(data, design, n)
    shuffled = rng.permutation(len(chances))
    key = data.judge if design == "stratified" else rng.permutation(data.document[-1] + 1)[data.document]
    line = shuffled[np.argsort(key[shuffled], kind="stable")]
    ends = np.cumsum(chances[line]) - rng.random()
    labelled = np.sort(line[np.diff(np.ceil(ends - 1e-9), prepend=0) > 0])
    labels = np.full(len(chances), np.nan)
    labels[labelled] = data.people[labelled]
    return Drawn(data.judge, labels, data.document, int(data.document[-1]) + 1, labelled, 1 / chances[labelled])


# --- data ------------------------------------------------------------------------------------------------------------


def load(folder: Path) -> Iterator[Data]:
    """All judges on all criteria."""
    rng = np.random.default_rng(1)
    for family, file in (("summeval", "summeval.json"), ("topical_chat", "topical_chat.json")):
        rows = json.loads((folder / file).read_text())
        names = [name for name in load_criteria() if name.startswith(family + "/")]
        for criterion in (load_criteria()[name] for name in names):
            people = {key(row): human(row, criterion.short_name) for row in rows}
            scale = criterion.scale.low, criterion.scale.high
            yield data(f"{criterion.name} planted", planted(people, scale, rng), people, scale)
            read = {}
            for row in replies(folder, family, criterion.short_name):
                texts = row["all_responses"] if "all_responses" in row else [row["reply"]]
                form = "rate_explain" if "all_responses" in row else "free_text"
                scores = [read_text(text, criterion.scale, form, criterion).score for text in texts]
                if known := [score for score in scores if score is not None]:
                    read[key(row)] = float(np.mean(known)), float(np.std(known))
            yield data(f"{criterion.name} {'llama2' if family == 'summeval' else 'chatgpt'}", read, people, scale)


def key(row: dict) -> tuple[str, str]:
    return str(row.get("doc_id") or row["source"]), row["system_id"]


def human(row: dict, criterion: str) -> float:
    scores = row["scores"]
    return float((json.loads(scores.replace("'", '"')) if isinstance(scores, str) else scores)[criterion])


def replies(folder: Path, family: str, criterion: str) -> list[dict]:
    if family == "summeval":
        with gzip.open(folder / "responses" / "summeval_free_text_llama2_7b.jsonl.gz", "rt") as file:
            return [row for row in map(json.loads, file) if row["criterion"] == criterion]
    with gzip.open(folder / "responses" / f"topical_chat_gpt3.5_{criterion[:3]}_rate_explain.json.gz") as file:
        return json.load(file)


def planted(people: dict, scale: tuple[float, float], rng: np.random.Generator) -> dict:
    low, high = scale
    span, liked = high - low, min(system for _, system in people)
    judge = {}
    for each, score in people.items():
        noise = 0.15 * span * np.exp(rng.normal(0, 0.5))
        shown = low + 0.15 * span + 0.6 * (score - low) + rng.normal(0, noise) + 0.1 * span * (each[1] == liked)
        step = span / 8
        told = min(max(round(shown / step) * step, low), high)
        judge[each] = told, max(noise * np.exp(rng.normal(0, 0.3)), 0.02 * span)
    return judge


def data(name: str, judge: dict, people: dict, scale: tuple[float, float]) -> Data:
    items = sorted(judge)
    names = [sorted(set(column)) for column in zip(*people, strict=True)]
    numbers = [{each: number for number, each in enumerate(column)} for column in names]
    columns = [
        np.array([people[item] for item in items]),
        np.array([judge[item][0] for item in items]),
        np.array([judge[item][1] for item in items]),
        np.array([numbers[0][item[0]] for item in items]),
        np.array([numbers[1][item[1]] for item in items]),
    ]
    columns[3] = np.unique(columns[3], return_inverse=True)[1]
    return Data(name, *columns, scale)


# --- tables ----------------------------------------------------------------------------------------------------------


@cache
def quantile(df: int) -> float:
    return -float(stdtrit(max(df, 1), 0.025))


def alone(items: Drawn) -> tuple[float, float]:
    """The labels' mean and half the width of its t interval, as if nothing else were known."""
    labels, weights = items.labels[items.labelled], items.weights / items.weights.sum()
    mean, n = float(weights @ labels), len(labels)
    return mean, quantile(n - 1) * float(np.sqrt(n / (n - 1) * (weights**2 @ (labels - mean) ** 2)))


class Tally:
    """Of how many intervals hold the truth, how wide they are, how many would pass a gate falsely, how many lack."""

    def __init__(self) -> None:
        self.held, self.halves, self.passed, self.runs = 0, [], 0, 0

    def add(self, truth: float, low: float | None, high: float | None) -> None:
        self.runs += 1
        if low is not None and high is not None:
            self.held += low <= truth <= high
            self.passed += low > truth  # a bar just above the truth
            self.halves.append((high - low) / 2)

    @property
    def false_passes(self) -> str:
        return f"{self.passed / self.runs:.3f}"

    def __str__(self) -> str:
        given = len(self.halves)
        if not given:
            return "none"
        share = f" ({given / self.runs:.0%})" if given < self.runs else ""
        return f"{self.held / given:.3f} ±{np.mean(self.halves):.3f}{share}"


def around(mean: float, half: float) -> tuple[float, float]:
    return mean - half, mean + half


def designs(data: Data) -> Iterator[tuple[str, int, np.random.Generator]]:
    for design in DESIGNS:
        if design == "active" and not data.spread.any():
            continue
        for n in LABELS:
            yield design, n, np.random.default_rng(n)


def pooled(everything: list[Data], runs: int) -> None:
    """The mean over all systems."""
    print(f"{'':40}{'n':>4}  {'corrected':21}{'labels alone':16}{'judge alone':15}{'false passes':14}method")
    for data in everything:
        truth = data.people.mean()
        for design, n, rng in designs(data):
            ours, labels, naive, methods = Tally(), Tally(), Tally(), set()
            for _ in range(runs):
                sample = data.resampled(rng)
                items = draw(sample, design, n, rng)
                figure = estimated(items).figure()
                methods.add(figure.method)
                ours.add(truth, figure.low, figure.high)
                if figure.low is not None:  # compared on the same runs
                    labels.add(truth, *around(*alone(items)))
                error = sample.judge.std(ddof=1) / np.sqrt(len(sample.judge))
                naive.add(truth, *around(sample.judge.mean(), 1.96 * error))
            figures = f"{ours!s:21}{labels!s:16}{naive!s:15}{ours.false_passes:14}"
            print(f"{data.name + ' ' + design:40}{n:4}  {figures}{', '.join(methods)}", flush=True)


def shares(everything: list[Data], runs: int) -> None:
    """The share of items at or above three quarters of the scale."""
    print(f"{'':40}{'n':>4}  {'corrected':21}{'labels alone':16}{'false passes':14}")
    for data in everything:
        bar = data.scale[0] + 0.75 * (data.scale[1] - data.scale[0])
        above = replace(data, people=(data.people >= bar) * 1.0, judge=(data.judge >= bar) * 1.0)
        truth = above.people.mean()
        for n in LABELS:
            rng = np.random.default_rng(n)
            ours, labels = Tally(), Tally()
            for _ in range(runs // 2):
                items = draw(above.resampled(rng), "random", n, rng)
                figure = estimated(items).figure()
                ours.add(truth, figure.low, figure.high)
                if figure.low is not None:
                    labels.add(truth, *around(*alone(items)))
            print(f"{data.name + ' random':40}{n:4}  {ours!s:21}{labels!s:16}{ours.false_passes:14}", flush=True)


def single(everything: list[Data], runs: int) -> None:
    """Conformal intervals for single items: coverage of unlabelled ones, and width as a share of the scale."""
    print(f"{'':40}{'n':>4}  {'90 % intervals':18}share of the scale")
    for data in everything:
        for design, n, rng in designs(data):
            held, widths = [], []
            for _ in range(max(runs // 10, 1)):
                sample = data.resampled(rng)
                items = draw(sample, design, n, rng)
                made = conformal(items, data.scale)
                rest = np.isnan(items.labels)
                inside = (made.low - 1e-9 <= sample.people) & (sample.people <= made.high + 1e-9)
                held.append(inside[rest].mean())
                widths.append((made.high - made.low).mean() / (data.scale[1] - data.scale[0]))
            print(f"{data.name + ' ' + design:40}{n:4}  {np.mean(held):<18.3f}{np.mean(widths):.2f}", flush=True)


def systems(everything: list[Data], runs: int) -> None:
    """The mean of each system, and its difference from the first, from a few labels of each."""
    print(f"{'':40}{'n':>4}  {'system':21}{'its labels alone':18}{'difference':21}")
    for data in everything:
        truths = {system: data.people[data.system == system].mean() for system in np.unique(data.system)}
        for n in LABELS:
            rng = np.random.default_rng(n)
            ours, labels, differences = Tally(), Tally(), Tally()
            for _ in range(runs // 4):
                sample = data.resampled(rng)
                items = draw(sample, "random", n, rng)
                found = by_system(items, sample.system)
                first = min(found)
                for system, estimate in found.items():
                    figure = estimate.figure()
                    ours.add(truths[system], figure.low, figure.high)
                    if figure.low is not None:
                        own = items.part(np.flatnonzero(sample.system == system))
                        labels.add(truths[system], *around(*alone(own)))
                    if system != first:
                        gap = estimate.minus(found[first]).figure()
                        differences.add(truths[system] - truths[first], gap.low, gap.high)
            print(f"{data.name + ' random':40}{n:4}  {ours!s:21}{labels!s:18}{differences!s:21}", flush=True)


def alarms(everything: list[Data], runs: int) -> None:
    """How often the transport test says that the judge's errors differ between systems, where they cannot: systems'
    names are dealt out anew within each document."""
    print(f"{'':40}{'n':>4}  false alarms")
    for data in everything:
        for n in LABELS:
            rng = np.random.default_rng(n)
            said = []
            for _ in range(runs // 10):
                sample = data.resampled(rng)
                order = np.lexsort((rng.random(len(sample.judge)), sample.document))
                items = draw(sample, "random", n, rng)
                found = transport(items, sample.system[order].tolist())
                if found.p is not None:
                    said.append(found.differs)
            told = f"{np.mean(said):.3f} ({len(said) / (runs // 10):.0%})" if said else "none"
            print(f"{data.name + ' random':40}{n:4}  {told}", flush=True)


TABLES: dict[str, Callable[[list[Data], int], None]] = {
    "pooled": pooled,
    "shares": shares,
    "systems": systems,
    "single": single,
    "alarms": alarms,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--data", default="", help="only names that hold this")
    chosen = parser.parse_args()
    everything = [data for data in load(chosen.folder) if chosen.data in data.name]
    for name in chosen.only:
        start = time.perf_counter()
        print(f"\n{name} ({chosen.runs} runs): {TABLES[name].__doc__}")
        TABLES[name](everything, chosen.runs)
        print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
