"""How often `geval tune` calls a way of rating better that is not, and finds one that is: seeded simulation.

People see an item's quality with noise (reliability .8); every way of rating sees it with an error that all share and
one of its own. Of nine ways one has the own error scaled by a factor; 1 is: all are alike. 1,000 runs a row.

    python benchmarks/tune.py
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Sequence

import numpy as np

from geval_adapters import Sample, Usage
from geval_adapters.tune import Candidate, Scored, Split, Tuned, Tuning

WAYS = 9
PER_DOCUMENT = 5


def run(seed: int, documents: int, factor: float) -> Tuned:
    rng = np.random.default_rng(seed)
    samples = [
        Sample(f"{document}, {number}", id=f"{document}-{number}", doc_id=str(document))
        for document in range(documents)
        for number in range(PER_DOCUMENT)
    ]
    quality = {each.id: rng.normal() for each in samples}
    people = {each.id: quality[each.id] + 0.5 * rng.normal() for each in samples}
    shared = {each.id: 0.5 * rng.normal() for each in samples}
    ways = [Candidate.of("judge", "" if number == 0 else f"n={number}") for number in range(WAYS)]
    sent = 0

    async def rate(way: Candidate, some: Sequence[Sample]) -> list[Scored]:
        nonlocal sent
        sent += len(some)
        own = factor if way == ways[3] else 1.0
        return [Scored(quality[each.id] + shared[each.id] + own * rng.normal(), Usage(requests=1)) for each in some]

    tuning = Tuning("quality", (1, 5), ways, Split.of(samples, seed), people, rate, lambda: sent, 10**9)
    return asyncio.run(tuning.run())


def main(runs: int = 1000) -> None:
    print("| documents | labels | own error | r of the default | r of the better | called better | of those, rightly |")
    print("| --: | --: | --: | --: | --: | --: | --: |")
    for documents in (20, 40, 100):
        for factor in (1.0, 0.7, 0.3):
            found = [run(seed, documents, factor) for seed in range(runs)]
            better = [each for each in found if each.better]
            right = sum(each.winner is not None and each.winner.name == "n=3" for each in better)
            r = [1 / math.sqrt((1 + 0.25) * (1 + 0.25 + own**2)) for own in (1.0, factor)]
            rightly = "-" if factor == 1 or not better else f"{right / len(better):.0%}"
            share = f"{len(better) / runs:.1%} ± {2 * math.sqrt(len(better) * (runs - len(better)) / runs**3):.1%}"
            cells = (documents, documents * PER_DOCUMENT, factor, f"{r[0]:.2f}", f"{r[1]:.2f}", share, rightly)
            print("|", *(f"{cell} |" for cell in cells), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
