"""Writes the task and group files beside it, from the tables below. Run it after changing them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

HEAD = "# Written by _generate_configs.py.\n"

CRITERIA = {
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "topical_chat": ("naturalness", "coherence", "engagingness", "groundedness"),
    "qags": ("consistency",),
}

VARIANTS = {
    "": "_rate_explain_yaml",
    "_score_only": "_score_only_yaml",
    "_free_text": "_free_text_yaml",
    "_analyze_rate": "_analyze_rate_yaml",
    "_n20": "_n20_yaml",
    "_logprobs": "_logprobs_yaml",
    "_gptscore": "_gptscore_yaml",
    "_pairwise": "_pairwise_yaml",
}

RATED = {"_logprobs": ["coverage"], "_gptscore": []}
FIGURES = {
    "summeval": ["document_spearman", "document_kendall_b", "dataset_pearson"],
    "topical_chat": ["document_spearman", "document_kendall_b", "dataset_pearson"],
    "qags": ["dataset_spearman", "dataset_kendall_b", "dataset_pearson"],
}
PAIRWISE = [
    "win_ratio_document_spearman",
    "win_ratio_document_kendall_b",
    "bradley_terry_document_spearman",
    "bradley_terry_document_kendall_b",
    "pairwise_accuracy",
    "flip_rate",
    "unread",
]


def files() -> Iterator[tuple[str, str]]:
    """Each file's path and text."""
    for family, names in CRITERIA.items():
        for variant, base in VARIANTS.items():
            if variant == "_pairwise" and family == "qags":
                continue  # one summary an article: there is nothing to compare
            group = f"{family}_geval{variant}"
            metrics = PAIRWISE if variant == "_pairwise" else FIGURES[family] + RATED.get(variant, ["unread"])
            tasks = [f"{group}_{name}" for name in names]
            yield f"{family}/_{group}.yaml", _group(group, tasks, metrics)
            for task, name in zip(tasks, names, strict=True):
                yield f"{family}/{task}.yaml", _task(task, base, f"{family}/{name}")


def _group(group: str, tasks: list[str], metrics: list[str]) -> str:
    lines = [f"group: {group}", "task:", *(f"  - {task}" for task in tasks), "aggregate_metric_list:"]
    for metric in metrics:
        lines += [f"  - metric: {metric}", "    filter_list: geval", "    weight_by_size: false"]
    return HEAD + "\n".join([*lines, "metadata:", "  version: 1.0"]) + "\n"


def _task(task: str, base: str, criterion: str) -> str:
    return HEAD + f"include: ../{base}\ntask: {task}\ndataset_kwargs:\n  rated: {criterion}\n"


def write(folder: Path) -> None:
    """Write all files into a folder."""
    for path, text in files():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
