"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

import numpy as np

from ...agreement.intervals import Figure
from ...criteria import Criterion
from ...ranking.diagnostics import debias, pairwise_accuracy, position
from ..asking import Inquiry
from ..results import Check, Picture, Statistic
from ..scalars import Ints, bootstrap
from .common import _nan


async def first_position(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether the judge prefers what it is shown first."""
    asked = await inquiry.verdicts(criterion)
    outcomes = [outcome for _, outcome in asked]
    documents = [document for document, _ in asked]
    known = np.array([_nan(outcome.p_first) for outcome in outcomes])

    def share(items: Ints) -> float | None:
        return position([outcomes[item] for item in items]).p_first

    read = np.flatnonzero(~np.isnan(known))
    first = bootstrap(lambda items: share(read[items]), [documents[item] for item in read])
    told = position(outcomes)
    human = {sample.id: score for sample in inquiry.samples if (score := sample.human_score(criterion)) is not None}
    accuracy = pairwise_accuracy([each for each in outcomes if each.first in human and each.second in human], human)
    statistics = [
        Statistic("all pairs", "P(first wins)", first, (0.45, 0.55), ".17 to .68 (Liusie et al., Table 5)"),
        Statistic("all pairs", "verdicts that flip", Figure(told.flip_rate, None, None, told.n_pairs)),
        Statistic("all pairs", "right, one order", Figure(accuracy.one_order, None, None, accuracy.n_one_order)),
        Statistic("all pairs", "right, both orders", Figure(accuracy.both_orders, None, None, accuracy.n_both_orders)),
        Statistic("all pairs", "debiasing weight α", Figure(debias(outcomes)[0], None, None, len(read))),
    ]
    values = {"verdicts": [outcome.p_first for outcome in outcomes if outcome.p_first is not None]}
    picture = Picture("histogram", "without a pull: as much below .5 as above", "P(first wins)", "verdicts", values)
    return Check(
        did="Compared candidates of the same document, each pair in both orders.",
        statistics=statistics,
        advice="Compare in both orders (`geval rank --select symmetric`, the default), which takes the pull out.",
        pictures=[picture],
    )
