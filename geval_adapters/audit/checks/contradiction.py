"""Whether verdicts contradict ratings, or each other in a circle (TrustJudge: Wang et al. 2025, arXiv 2509.21117)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...agreement.coefficients import mean
from ...agreement.intervals import Figure, bootstrap
from ...criteria import Criterion
from ...ranking.diagnostics import cyclic_triples
from ...ranking.outcomes import Outcome
from ..asking import Answered, Asking, Plan
from ..results import Check, Statistic
from .pairs import pairs

CONFLICTS, CIRCLES = (0.0, 0.35), (0.0, 0.15)
"""By chance half of the verdicts contradict the ratings, and a quarter of the triples run in a circle."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Pairs of candidates in both orders, and the ratings of both."""
    compared = await pairs(asking, criterion)
    plain = await asking.plain(criterion)
    steps = [
        compared.questions(asking, place)
        | {name: asking.rating(plain, sample) for name, sample in zip(("one", "other"), pair, strict=True)}
        for place, pair in enumerate(compared.pairs)
    ]

    def done(answered: Answered) -> Check:
        documents = [compared.pairs[place][0].doc_id for place, _ in answered]
        outcomes = [
            [Outcome(row["first"], row["second"], row["score"]) for row in (rows["forth"], rows["back"])]
            for _, rows in answered
        ]
        scores = [(rows["one"]["score"], rows["other"]["score"]) for _, rows in answered]
        return conclude(documents, outcomes, scores)

    return Plan(steps, done)


def conclude(
    documents: list[str | None],
    outcomes: list[list[Outcome]],
    scores: list[tuple[float | None, float | None]],
) -> Check:
    """Verdicts may not contradict ratings, nor run in circles, more often than a judge with little noise does.

    Args:
        documents: that of each pair.
        outcomes: the verdicts on each pair, in both orders.
        scores: the ratings of each pair, in the first order.
    """
    kept, conflicts = [], []
    for place, (verdicts, (one, other)) in enumerate(zip(outcomes, scores, strict=True)):
        forth, back = (each.p_first for each in verdicts)
        if None in (forth, back, one, other):
            continue
        better = (forth or 0.0) + 1 - (back or 0.0) - 1
        gap = (one or 0.0) - (other or 0.0)
        if abs(better) > 1e-9 and abs(gap) > 1e-9:
            kept.append(place)
            conflicts.append(float(better * gap < 0))
    wrong = np.array(conflicts)
    conflict = bootstrap(lambda weights: mean(wrong, weights), [documents[place] for place in kept], within=(0, 1))
    by_document: dict[str | None, list[Outcome]] = defaultdict(list)
    for document, verdicts in zip(documents, outcomes, strict=True):
        by_document[document] += verdicts
    triples = {document: cyclic_triples(each) for document, each in by_document.items()}
    compared = {document: pair for document, pair in triples.items() if pair[1]}
    cyclic, complete = (np.array([pair[k] for pair in compared.values()], dtype=np.float64) for k in (0, 1))
    circles = Figure(None, None, None, 0, why_not="no three candidates were compared with each other")
    if compared:
        circles = bootstrap(lambda weights: (weights @ cyclic) / (weights @ complete), list(compared), within=(0, 1))
    return Check(
        did="Compared candidates of the same document in both orders, and rated each on its own.",
        statistics=[
            Statistic(
                "pairs", "verdict against ratings", conflict, CONFLICTS, ".233 (Llama-3.1-70B; TrustJudge)"
            ),
            Statistic(
                "triples", "run in a circle", circles, CIRCLES,
                ".152 with ties that contradict (Llama-3.1-70B; TrustJudge)",
            ),
        ],
        fault="contradicts itself",
        advice="Read ratings as expected values (log-probabilities, or the mean of several replies) and rank by"
        " probabilities in both orders; both resolve most contradictions (TrustJudge, §4).",
        notes=["Pairs whose ratings or verdicts tie are left out; the smaller the differences, the more conflicts."],
    )  # fmt: skip
