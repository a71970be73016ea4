"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from ...agreement.meta_eval import Item
from ...criteria import Criterion
from .. import measures
from ..asking import SAMPLED, SAMPLES, Inquiry, Unmeasurable
from ..results import Check, Statistic
from ..scalars import bootstrap
from .common import _COMPARED, SCALES, STABLE, Rated, _alpha, _beside, _nan, _over, _paper, _scores, documents_of


async def inconsistency(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether the judge says the same twice, and under prompts that mean the same."""
    together = len(inquiry.criteria) > 1 and len({each.task for each in inquiry.criteria}) == 1
    samples = inquiry.draw(SAMPLES + len(_COMPARED) + 2 + together)
    sampled, single = await inquiry.ratings(samples, criterion, SAMPLED, {})
    statistics = [_between_replies(sampled, criterion)]
    documents = documents_of(sampled)
    if together:
        scores = [each.get(criterion.name) for each in await inquiry.several(samples, inquiry.criteria)]
        others = np.array([_nan(score) for score in scores])
        statistics.append(
            Statistic("alone or with others", "α", _over(_alpha, documents, _scores(single), others), STABLE)
        )
    levels = {}
    for name in ("1-5", *_COMPARED):
        [rated] = await inquiry.ratings(samples, criterion.on(SCALES[name]), {})
        levels[name] = measures.binned(_scores(rated), SCALES[name])
    statistics += [
        Statistic(f"1-5 or {name}", "α", _over(_alpha, documents, levels["1-5"], levels[name]), STABLE)
        for name in _COMPARED
    ]
    return replace(
        _INCONSISTENT,
        did=f"Took {SAMPLES} samples at temperature 1, and single ratings under prompts and scales that mean the"
        " same (scales binned to five levels).",
        statistics=_beside(statistics, "α", lambda subject: _paper(subject, criterion)),
    )


_INCONSISTENT = Check(
    fault="inconsistent",
    advice="Average: log-probabilities where the judge has them, else 20 samples (`--n 20 --temperature 1`); and"
    " compare only ratings with equal signatures.",
)


def _between_replies(items: Sequence[Item], criterion: Criterion) -> Statistic:
    replies = list(zip_longest(*(item.replies for item in items)))
    if len(replies) < 2:
        raise Unmeasurable("the ratings rest on one reply each: rate with --n 20 --readout samples")
    table = np.array([[_nan(score) for score in row] for row in replies])
    estimate = bootstrap(lambda each: measures.alpha(list(table[:, each])), documents_of(items))
    return Statistic("samples", "α", estimate, STABLE, _paper("samples", criterion))


async def stored_inconsistency(inquiry: Rated, criterion: Criterion) -> Check:
    """Whether the replies that a rating was averaged from agree."""
    statistic = _between_replies(await inquiry.base(criterion), criterion)
    return replace(_INCONSISTENT, did="Compared the replies to each item.", statistics=[statistic])
