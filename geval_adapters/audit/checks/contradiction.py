"""Whether verdicts contradict ratings, or each other in a circle (TrustJudge: Wang et al. 2025, arXiv 2509.21117)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from ...agreement.coefficients import mean
from ...agreement.intervals import Figure, Floats, bootstrap
from ...criteria import Criterion
from ...ranking.diagnostics import cyclic_triples
from ...ranking.outcomes import TIE, Outcome
from ..asking import Answered, Asking, Plan
from ..results import Check, Statistic
from .pairs import pairs

BEYOND = "beyond its own noise"
OFTEN = 0.35
"""The share of conflicts that counts against no judge: its opinion of a pair may differ a little from prompt to prompt,
for good."""
CONFIDENCE = 1 - 0.05 / 3
"""Of the figures beyond noise: beside that of a coin they are two more that might be found by chance."""
COIN, CONFLICTS, CIRCLES = (0.0, 0.5), (-1.0, 0.05), (-1.0, 0.15)
"""What is tolerated: no more conflicts than of a coin, and few conflicts and circles beyond what noise explains."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Pairs of candidates in both orders, and the ratings of both, twice."""
    compared = await pairs(asking, criterion)
    plain = await asking.plain(criterion)
    steps = [
        compared.questions(asking, place)
        | {
            f"{name}{draw or ''}": asking.rating(plain, sample, draw=draw)
            for name, sample in zip(("one", "other"), pair, strict=True)
            for draw in (0, 1)
        }
        for place, pair in enumerate(compared.pairs)
    ]

    def done(answered: Answered) -> Check:
        documents = [compared.pairs[place][0].doc_id for place, _ in answered]
        outcomes = [
            [Outcome(row["first"], row["second"], row["score"]) for row in (rows["forth"], rows["back"])]
            for _, rows in answered
        ]
        scores = [[rows[name]["score"] for name in ("one", "other", "one1", "other1")] for _, rows in answered]
        return conclude(documents, outcomes, scores)

    return Plan(steps, done)


def conclude(
    documents: Sequence[Hashable],
    outcomes: Sequence[Sequence[Outcome]],
    scores: Sequence[Sequence[float | None]],
) -> Check:
    """Verdicts may not contradict ratings, nor run in circles, more often than the judge's own noise explains.

    A judge that draws its verdict v and the order r of its ratings (1, 0 or −1 each) anew each time, round the same
    opinion of a pair, agrees with itself as far as `E[v r] = √(E[v v′] E[r r′])`, where v′ and r′ are a second draw
    (the other order of the pair; ratings asked again). Conflicts, `(1 − E[v r]) / 2`, count as far as they are more
    than these would be, and more than `OFTEN`: where outputs are equally good, half of the verdicts contradict the
    ratings of any judge. And where verdicts flip in
    a share f of the pairs when they are asked again, `f / 2` of the triples run in a circle by chance: for an error
    rate e, f = 2 e (1 − e), and of the eight outcomes of a triple the two circles have e (1 − e) of the chances.

    Args:
        documents: that of each pair.
        outcomes: the verdicts on each pair, in both orders.
        scores: the ratings of each pair, in the first order, and both once more.
    """
    known = [
        place
        for place, (verdicts, rated) in enumerate(zip(outcomes, scores, strict=True))
        if None not in rated and None not in [each.p_first for each in verdicts]
    ]
    forth, back = (_signs([outcomes[place][way].p_first for place in known], 0.5) for way in (0, 1))
    one, other, one_again, other_again = np.array([scores[place] for place in known], dtype=float).reshape(-1, 4).T
    first, again = _signs(one - other), _signs(one_again - other_again)
    own = [documents[place] for place in known]

    def beyond(weights: Floats) -> Floats:
        verdicts, ratings = forth - back, first + again
        agreed = mean(verdicts * ratings / 4, weights)
        steady = [np.maximum(0.0, mean(each, weights)) for each in (-forth * back, first * again)]
        explained = (1 - np.sqrt(steady[0] * steady[1])) / 2
        return np.asarray((1 - agreed) / 2 - np.maximum(explained, OFTEN))

    clear = np.flatnonzero((forth - back) * first)
    wrong = ((forth - back) * first < 0)[clear].astype(float)
    conflict = bootstrap(lambda weights: mean(wrong, weights), [own[place] for place in clear], within=(0, 1))
    raw, excess = _circles(documents, outcomes)
    papers = (".233 (Llama-3.1-70B; TrustJudge)", ".152 with ties that contradict (Llama-3.1-70B; TrustJudge)")
    return Check(
        did="Compared candidates of the same document in both orders, and rated each on its own, twice.",
        statistics=[
            Statistic("verdict against ratings", "share", conflict, COIN, papers[0]),
            Statistic("verdict against ratings", BEYOND, bootstrap(beyond, own, confidence=CONFIDENCE), CONFLICTS),
            Statistic("triples in a circle", "share", raw, None, papers[1]),
            Statistic("triples in a circle", BEYOND, excess, CIRCLES),
        ],
        fault="contradicts itself",
        advice="Read ratings as expected values (log-probabilities, or the mean of several replies) and rank by"
        " probabilities in both orders; both resolve most contradictions (TrustJudge, §4).",
        notes=[
            "The shares leave out pairs whose ratings or verdicts tie; the smaller the differences, the larger they"
            f" are. What counts is more than of a coin, and what exceeds both {OFTEN:g} and the noise that ratings and"
            " verdicts show when they are asked for again (ties count half)."
        ],
    )


def _signs(values: Sequence[float | None] | Floats, zero: float = 0.0) -> Floats:
    above = np.array(values, dtype=float) - zero
    return np.where(np.abs(above) > TIE, np.sign(above), 0.0)


def _circles(documents: Sequence[Hashable], outcomes: Sequence[Sequence[Outcome]]) -> tuple[Figure, Figure]:
    """The share of triples that run in a circle, both orders averaged; and, of each order alone, beyond noise."""
    by_document: dict[Hashable, list[Sequence[Outcome]]] = defaultdict(list)
    for document, verdicts in zip(documents, outcomes, strict=True):
        if all(each.p_first is not None for each in verdicts):
            by_document[document].append(verdicts)
    rows, names = [], []
    for document, asked in by_document.items():
        both, complete = cyclic_triples([each for pair in asked for each in pair])
        if complete:
            alone = sum(cyclic_triples([pair[way] for pair in asked])[0] for way in (0, 1))
            forth, back = (_signs([pair[way].p_first for pair in asked], 0.5) for way in (0, 1))
            rows.append([both, alone / 2, complete, float((1 + forth * back).sum() / 2), len(asked)])
            names.append(document)
    if not rows:
        nothing = Figure(None, None, None, 0, why_not="no three candidates were compared with each other")
        return nothing, nothing
    by_both, by_one, triples, flips, compared = np.array(rows, dtype=float).T

    def beyond(weights: Floats) -> Floats:
        return np.asarray(weights @ by_one / (weights @ triples) - weights @ flips / (weights @ compared) / 2)

    return bootstrap(lambda weights: weights @ by_both / (weights @ triples), names, within=(0, 1)), bootstrap(
        beyond, names, confidence=CONFIDENCE
    )
