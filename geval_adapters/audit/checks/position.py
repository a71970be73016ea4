"""Whether the judge prefers what it is shown first (Liusie et al. 2024, Table 5)."""

from __future__ import annotations

import numpy as np

from ...agreement.coefficients import mean
from ...agreement.intervals import Figure, bootstrap
from ...criteria import Criterion
from ...ranking.diagnostics import debias, pairwise_accuracy, position
from ...ranking.outcomes import Outcome
from ...samples import Sample
from ..asking import Answered, Asking, Plan
from ..results import Check, Picture, Statistic
from .pairs import pairs

PULL = (0.4, 0.6)
"""How often the first may win: one verdict in five that hangs on the order is too many."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Each pair of candidates of a document in both orders."""
    compared = await pairs(asking, criterion)

    def done(answered: Answered) -> Check:
        asked = [(compared.pairs[place], rows[way]) for place, rows in answered for way in ("forth", "back")]
        documents = [pair[0].doc_id for pair, _ in asked]
        outcomes = [Outcome(row["first"], row["second"], row["score"]) for _, row in asked]
        return conclude(outcomes, documents, asking.samples, criterion)

    steps = [compared.questions(asking, place) for place in range(len(compared.pairs))]
    return Plan(steps, done)


def conclude(
    outcomes: list[Outcome], documents: list[str | None], samples: list[Sample], criterion: Criterion
) -> Check:
    """The first may win no more and no less often than half of the time, by a size that matters."""
    read = [k for k, outcome in enumerate(outcomes) if outcome.p_first is not None]
    known = np.array([outcomes[k].p_first or 0.0 for k in read], dtype=np.float64)
    wins = (known > 0.5) + 0.5 * (known == 0.5)
    first = bootstrap(lambda weights: mean(wins, weights), [documents[k] for k in read], within=(0, 1))
    both = position(outcomes)
    human = {sample.id: score for sample in samples if (score := sample.human_score(criterion)) is not None}
    accuracy = pairwise_accuracy([each for each in outcomes if each.first in human and each.second in human], human)
    statistics = [
        Statistic("all pairs", "P(first wins)", first, PULL, ".17 to .68 (Liusie et al., Table 5)"),
        Statistic("all pairs", "verdicts that flip", Figure(both.flip_rate, None, None, both.n_pairs)),
        Statistic("all pairs", "right, one order", Figure(accuracy.one_order, None, None, accuracy.n_one_order)),
        Statistic("all pairs", "right, both orders", Figure(accuracy.both_orders, None, None, accuracy.n_both_orders)),
        Statistic("all pairs", "debiasing weight α", Figure(debias(outcomes)[0], None, None, len(read))),
    ]
    values = {"verdicts": known.tolist()}
    picture = Picture("histogram", "without a pull: as much below .5 as above", "P(first wins)", "verdicts", values)
    return Check(
        did="Compared candidates of the same document, each pair in both orders.",
        statistics=statistics,
        advice="Compare in both orders (`geval rank --select symmetric`, the default), which takes the pull out.",
        pictures=[picture] if read else [],
    )
