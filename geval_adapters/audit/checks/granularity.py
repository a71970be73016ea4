"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...agreement.meta_eval import Item
from ...criteria import Criterion, Scale
from .. import measures
from .. import scalars as coefficients
from ..asking import SAMPLED, SAMPLES, Inquiry
from ..results import Check, Picture, Statistic
from ..scalars import Floats
from .common import GAIN, PREFERRED, SCALES, TAU, Rated, _counted, _gain, _over, _paper, _people, _scores, documents_of


async def granularity(inquiry: Inquiry, criterion: Criterion) -> Check:
    """How much of a scale the judge uses, and which scale agrees best with people."""
    averaged = await inquiry.averaged(criterion)
    averaging = f"{SAMPLES} samples at temperature 1" if averaged == SAMPLED else "weighted by log-probabilities"
    samples = inquiry.draw(len(SCALES) * (1 + averaged.get("n", 1)))
    settings: dict[str, tuple[Scale, list[Item]]] = {}
    for name, scale in SCALES.items():
        single, mean = await inquiry.ratings(samples, criterion.on(scale), {}, averaged)
        settings |= {f"{name}, single": (scale, single), f"{name}, averaged": (scale, mean)}
    reference = _scores(settings[f"{PREFERRED}, single"][1])
    statistics: list[Statistic] = []
    for name, (scale, items) in settings.items():
        scores, human, documents = _scores(items), _people(items), documents_of(items)
        statistics += _use_of_scale(name, scale, documents, scores, single=name.endswith("single"))
        statistics.append(
            Statistic(name, TAU, _over(coefficients.kendall, documents, scores, human), None, _paper(name, criterion))
        )
        if name != f"{PREFERRED}, single":
            statistics.append(Statistic(name, GAIN, _over(_gain, documents, human, scores, reference)))
    pictures = [
        _histogram(name, {way: settings[f"{name}, {way}"][1] for way in ("single", "averaged")}) for name in SCALES
    ]
    notes = []
    if criterion.scale.words and not criterion.scale.worded and str(criterion.scale) != "0-1":
        notes = ["The criterion's definition names the steps of its own scale, which other scales contradict."]
    return replace(
        _GRANULAR,
        did=f"Rated on five scales, each once at temperature 0 and averaged ({averaging}).",
        statistics=statistics,
        notes=[*notes, f"“{GAIN}” is over {PREFERRED}, single, the papers' choice."],
        pictures=pictures,
    )


_GRANULAR = Check(
    advice="Take the scale that agrees best with people, and average: that gives more different scores than a wider"
    " scale does.",
)


def _use_of_scale(
    subject: str, scale: Scale, documents: Sequence[Hashable], scores: Floats, single: bool
) -> list[Statistic]:
    found = [
        Statistic(subject, "different scores", _counted(measures.granularity, scores)),
        Statistic(subject, "range used", _counted(lambda each: measures.range_used(each, scale), scores)),
        Statistic(subject, "entropy (bits)", _over(measures.entropy, documents, scores)),
    ]
    excess = _over(lambda each: measures.round_number_excess(each, scale), documents, scores)
    if single and excess.value is not None:
        found.append(Statistic(subject, "round-number excess", excess, (-1.0, 0.15)))
    return found


def _histogram(title: str, columns: Mapping[str, Sequence[Item]]) -> Picture:
    series = {name: [item.score for item in items if item.score is not None] for name, items in columns.items()}
    return Picture("histogram", title, "score", "items", {name: scores for name, scores in series.items() if scores})


async def stored_granularity(inquiry: Rated, criterion: Criterion) -> Check:
    """How much of their scale the ratings use."""
    items = await inquiry.base(criterion)
    documents, human = documents_of(items), _people(items)
    replies = np.array([score for item in items for score in item.replies if score is not None])
    owners = [document for item, document in zip(items, documents, strict=True) for s in item.replies if s is not None]
    statistics = _use_of_scale("ratings", criterion.scale, documents, _scores(items), single=not len(replies))
    if len(replies):
        statistics += _use_of_scale("single replies", criterion.scale, owners, replies, single=True)
    if not np.isnan(human).all():
        statistics += _use_of_scale("people", criterion.scale, documents, human, single=False)
        statistics.append(Statistic("ratings", TAU, _over(coefficients.kendall, documents, _scores(items), human)))
    people = [replace(item, score=item.human) for item in items]
    return replace(
        _GRANULAR,
        did="Looked at which scores were given.",
        statistics=statistics,
        pictures=[_histogram("how often each score is given", {"judge": items, "people": people})],
    )
