"""How many samples `--adaptive` takes, and what that does to a judge's agreement with people.

    uv run python benchmarks/adaptive.py FOLDER

FOLDER holds the raw replies of Chiang & Lee (2023) on Topical-Chat, 20 for each item. For each file: the dataset-level
Pearson r of all replies, and what is lost of it by those that adaptive sampling would have asked for, and by a fixed
number that is as large; means over ten orders in which the replies could have come.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from statistics import fmean

import numpy as np

from geval_adapters import load_criteria, read_text
from geval_adapters.judge.sampling import Sequential
from geval_adapters.samples import sample_of

FORMS = {"geval": "score_only", "llm_eval_no_cot": "free_text", "rate_explain": "rate_explain"}
ORDERS, TARGET = 10, 0.1


def known(scores: list[float | None]) -> list[float]:
    return [score for score in scores if score is not None]


def main(folder: Path) -> None:
    dice = random.Random(0)
    print(f"{'':38}{'r, 20 replies':>14}{'asked':>8}{'adaptive':>10}{'fixed':>8}")
    for form, name in FORMS.items():
        for criterion in (each for key, each in load_criteria().items() if key.startswith("topical_chat/")):
            span = criterion.scale.high - criterion.scale.low
            rule = Sequential(TARGET * span, span)
            path = folder / f"topical_chat_gpt3.5_{criterion.short_name[:3]}_{form}.json.gz"
            with gzip.open(path) as file:
                rows = json.load(file)
            read = [
                [read_text(reply, criterion.scale, name, criterion).score for reply in row["all_responses"]]
                for row in rows
            ]
            human = [sample_of(row).human_score(criterion) for row in rows]
            kept = [place for place, scores in enumerate(read) if known(scores) and human[place] is not None]

            def r(columns: list[list[float]], kept=kept, human=human) -> float:
                pairs = [(fmean(scores), human[place]) for place, scores in zip(kept, columns, strict=True) if scores]
                return float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])

            every = r([known(read[place]) for place in kept])
            lost, lost_fixed, shares = [], [], []
            for _ in range(ORDERS):
                some, taken_of = [], []
                for place in kept:
                    scores = read[place]
                    dice.shuffle(scores)
                    taken = 0
                    while more := rule.wanted(known(scores[:taken]), taken, len(scores)):
                        taken += more
                    some.append(known(scores[:taken]))
                    taken_of.append(taken / len(scores))
                shares.append(fmean(taken_of))
                fixed = round(20 * shares[-1])
                lost.append(every - r(some))
                lost_fixed.append(every - r([known(read[place][:fixed]) for place in kept]))
            figures = f"{every:>14.3f}{fmean(shares):>8.0%}{-fmean(lost):>10.3f}{-fmean(lost_fixed):>8.3f}"
            print(f"{form + ' ' + criterion.short_name:38}{figures}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
