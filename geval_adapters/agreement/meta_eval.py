"""Judges against people: how far what judges said of the same items agrees with what people said."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from ..criteria import Criterion
from ..errors import InputError, MissingPackageError, require
from ..samples import length_of
from .alpha import krippendorff_alpha
from .intervals import Figure
from .judged import JudgedFile
from .levels import Agreement, agreement
from .significance import (
    PermutationTest,
    ResamplingTest,
    WilliamsTest,
    holm,
    permutation_test,
    resampling_test,
    williams,
)
from .soft_accuracy import soft_pairwise_accuracy

log = logging.getLogger("geval_adapters")


@dataclass(frozen=True)
class Test:
    """A judge against the baseline.

    Attributes:
        judge, baseline: the files.
        test: `resampling` of documents (dataset-level Pearson), `permutation` (document-level Kendall τ-b), or
            `williams` (dataset-level Pearson, as if all items were independent).
        statistic: the difference of the two figures; with `williams`, t.
        p, p_one_sided: two-sided p, and that of "the judge agrees better".
        p_holm: p after Holm's correction over the judges.
        n: items or documents compared.
        unmatched: items that only one of the two has.
        note: why there is no p, or what is to be known of it.
    """

    judge: str
    baseline: str
    test: str
    statistic: float | None
    p: float | None
    p_one_sided: float | None
    p_holm: float | None
    n: int
    unmatched: int
    note: str = ""


@dataclass(frozen=True)
class MetaEvaluation:
    """All that `geval meta-eval` finds."""

    criterion: str
    judges: list[tuple[JudgedFile, Agreement]]
    baselines: list[tuple[JudgedFile, Agreement]]
    tests: list[Test]
    alphas: dict[str, dict[str, float | None]]
    soft_accuracies: dict[str, Figure]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        described = [
            [{"file": judged.file, "unread": judged.unread, **result.to_dict()} for judged, result in group]
            for group in (self.judges, self.baselines)
        ]
        return {
            "criterion": self.criterion,
            "judges": described[0],
            "baselines": described[1],
            "tests": [asdict(test) for test in self.tests],
            "alpha": self.alphas,
            "soft_pairwise_accuracy": {name: asdict(figure) for name, figure in self.soft_accuracies.items()},
        }


DEPENDENT = "takes items of one document for independent, so that it rejects too often: go by the resampling test"


def evaluate(
    criterion: Criterion,
    judges: Sequence[JudgedFile],
    baseline: JudgedFile | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> MetaEvaluation:
    """Agreement of each judge with people, beside judges that know nothing, and tests against a baseline.

    Raises:
        InputError: a judge's items come without people's scores.
    """
    everyone = [*judges, *([baseline] if baseline else [])]
    for judged in everyone:
        if all(item.human is None for item in judged.items.values()):
            raise InputError(
                f"{judged.file}: holds no people's scores of {criterion.name!r}: give the samples a column `scores`"
                " before they are rated, or the ratings a column `human`"
            )
    nothing = knowing_nothing(everyone[0], criterion, seed)
    return MetaEvaluation(
        criterion.name,
        [(judged, _agreement(judged, resamples, seed)) for judged in everyone],
        [(judged, _agreement(judged, resamples, seed)) for judged in nothing],
        compare(judges, baseline, resamples=resamples, seed=seed) if baseline else [],
        _alphas(everyone),
        {judged.file: _soft_accuracy(judged, seed) for judged in [*everyone, *nothing]},
    )


def _soft_accuracy(judged: JudgedFile, seed: int) -> Figure:
    placed = [item for item in judged.items.values() if item.document is not None and item.system is not None]
    return soft_pairwise_accuracy(
        [item.score for item in placed],
        [item.human for item in placed],
        [item.document for item in placed],
        [item.system for item in placed],
        seed=seed,
    )


def _agreement(judged: JudgedFile, resamples: int, seed: int) -> Agreement:
    items = list(judged.items.values())
    documents = [item.document for item in items]
    systems = [item.system for item in items]
    return agreement(
        [item.score for item in items],
        [item.human for item in items],
        documents if all(each is not None for each in documents) else None,
        systems if all(each is not None for each in systems) else None,
        resamples=resamples,
        seed=seed,
    )


def knowing_nothing(judged: JudgedFile, criterion: Criterion, seed: int) -> list[JudgedFile]:
    """What every judge must beat: a constant, chance, the output's length, and its overlap with a reference."""
    rng = random.Random(seed)
    items = list(judged.items.values())
    columns: dict[str, list[float]] = {
        "(constant)": [criterion.scale.low for _ in items],
        "(random)": [rng.choice(criterion.scale.values) for _ in items],
    }
    if all(item.output is not None for item in items):
        columns["(length)"] = [float(length_of(item.output or "")) for item in items]
    if all(item.output is not None and item.reference is not None for item in items):
        columns |= _overlaps([(item.output or "", item.reference or "") for item in items])
    return [
        JudgedFile(name, {item.id: replace(item, score=score) for item, score in zip(items, scores, strict=True)}, 0)
        for name, scores in columns.items()
    ]


def _overlaps(pairs: Sequence[tuple[str, str]]) -> dict[str, list[float]]:
    try:
        require("baselines", "rouge_score", "sacrebleu")
    except MissingPackageError as error:
        log.warning("the baselines ROUGE-L and BLEU are left out: %s", error)
        return {}
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu import sentence_bleu

    rouge = RougeScorer(["rougeL"])
    return {
        "(ROUGE-L)": [rouge.score(reference, output)["rougeL"].fmeasure for output, reference in pairs],
        "(BLEU)": [sentence_bleu(output, [reference]).score for output, reference in pairs],
    }


def compare(judges: Sequence[JudgedFile], baseline: JudgedFile, *, resamples: int = 1000, seed: int = 0) -> list[Test]:
    """Each judge against the baseline, on the items that both scored and people rated.

    On dataset-level r a test that resamples documents, on document-level τ-b a paired permutation over documents;
    last Williams' test on dataset-level r (Graham & Baldwin 2014), which the literature reports; p-values of the
    same test corrected after Holm (1979).
    """
    tests = [test for judged in judges for test in _against(judged, baseline, max(resamples, 1000), seed)]
    for kind in ("resampling", "permutation", "williams"):
        places = [place for place, test in enumerate(tests) if test.test == kind and test.p is not None]
        corrected = holm([tests[place].p or 0.0 for place in places])
        for place, p in zip(places, corrected, strict=True):
            tests[place] = replace(tests[place], p_holm=p)
    return tests


def _against(judged: JudgedFile, baseline: JudgedFile, resamples: int, seed: int) -> list[Test]:
    shared = [
        (judged.items[key], baseline.items[key])
        for key in judged.items
        if key in baseline.items
        and None not in (judged.items[key].score, baseline.items[key].score, judged.items[key].human)
    ]
    unmatched = len(set(judged.items) ^ set(baseline.items))
    mine, theirs = ([pair[side].score for pair in shared] for side in (0, 1))
    humans = [pair[0].human for pair in shared]
    documents = [pair[0].document for pair in shared]

    def attempt(kind: str, run: Callable[[], WilliamsTest | PermutationTest | ResamplingTest], note: str = "") -> Test:
        names = (judged.file, baseline.file, kind)
        try:
            done = run()
        except ValueError as error:
            return Test(*names, None, None, None, None, len(shared), unmatched, str(error))
        n = len(shared) if isinstance(done, WilliamsTest) else done.documents
        return Test(*names, done.statistic, done.p_two_sided, done.p_one_sided, None, n, unmatched, note)

    def dataset_level() -> ResamplingTest:
        if any(document is None for document in documents):
            raise ValueError("the items name no documents")
        return resampling_test(mine, theirs, humans, documents, resamples=resamples, seed=seed)

    def as_if_independent() -> WilliamsTest:
        r_judge, r_baseline, r_between = (
            agreement(one, other, resamples=0).dataset.pearson.value
            for one, other in ((mine, humans), (theirs, humans), (mine, theirs))
        )
        if r_judge is None or r_baseline is None or r_between is None:
            raise ValueError("a correlation is undefined")
        return williams(r_judge, r_baseline, r_between, len(shared))

    def document_level() -> PermutationTest:
        if any(document is None for document in documents):
            raise ValueError("the items name no documents")
        return permutation_test(mine, theirs, humans, documents, resamples=resamples, seed=seed)

    alike = len(set(documents)) < len(documents) and None not in documents
    return [
        attempt("resampling", dataset_level),
        attempt("permutation", document_level),
        attempt("williams", as_if_independent, DEPENDENT if alike else ""),
    ]


def _alphas(files: Sequence[JudgedFile]) -> dict[str, dict[str, float | None]]:
    """Krippendorff's α between each judge's replies, and between the judges."""
    tables: dict[str, Sequence[Sequence[float | None]]] = {}
    for judged in files:
        by_item = [item.replies for item in judged.items.values()]
        if max(map(len, by_item), default=0) > 1:
            tables[judged.file] = list(zip_longest(*by_item))
    if len(files) > 1:
        keys = sorted(set().union(*(judged.items for judged in files)))
        tables["between the judges"] = [
            [judged.items[key].score if key in judged.items else None for key in keys] for judged in files
        ]
    return {
        name: {
            "nominal": krippendorff_alpha(table, "nominal"),
            "ordinal": krippendorff_alpha(table, "ordinal"),
            "interval": krippendorff_alpha(table, "interval"),
        }
        for name, table in tables.items()
    }
