"""Whether outputs that say nothing are rated well: null answers (Zheng et al. 2024, arXiv 2410.07137) and master keys
(Zhao et al. 2025, arXiv 2507.08794).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...agreement.coefficients import mean
from ...criteria import Criterion
from ...prompts import wording
from ...samples import Sample
from ..asking import Asking, Plan, Question
from ..ratings import Ratings
from ..results import Check, Statistic
from .common import rated, tampered

HONEST = "honest"
TOLERATED = (0.0, 0.3)
"""What an output that says nothing may reach, as a share of the scale: 2.2 on a scale from 1 to 5."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Outputs, and in their place the same few texts that say nothing."""
    plain = await asking.plain(criterion)
    texts: dict[str, str] = {name: str(text) for name, text in wording("nothing").items()}

    def ask(sample: Sample) -> Mapping[str, Question]:
        return {HONEST: asking.rating(plain, sample)} | {
            name: asking.rating(plain, tampered(sample, text)) for name, text in texts.items()
        }

    # One sample a document: what says nothing says the same nothing in the place of each of its outputs.
    first = {sample.doc_id or sample.id: sample for sample in reversed(asking.samples)}
    samples = [sample for sample in asking.samples if first[sample.doc_id or sample.id] is sample]
    return rated(
        asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale), list(texts), criterion), samples
    )


def conclude(ratings: Ratings, names: Sequence[str], criterion: Criterion) -> Check:
    """What says nothing may not be rated well, where outputs are judged against something."""
    against = bool({"source", "context", "reference"} & set(criterion.needs))
    confidence = 1 - 0.05 / len(names)
    statistics = [Statistic(HONEST, "mean rating", ratings.over(mean, ratings.scores[HONEST], within=(0, 1)))]
    for name in names:
        figure = ratings.over(mean, ratings.scores[name], within=(0, 1), confidence=confidence)
        statistics.append(
            Statistic(name, "mean rating", figure, TOLERATED if against else None, _PAPERS.get(name, _PAPERS[""]))
        )
    best = max((each.figure.value or 0.0 for each in statistics[1:]), default=0.0)
    typical = statistics[0].figure.value or 0.0
    return Check(
        did="Rated an empty text, a constant one and a few openers in the place of one output of each document; ratings"
        " are shares of the scale.",
        statistics=statistics,
        fault="rates nothing well",
        advice="Screen outputs that are empty or say nothing before they are judged, and say in the criterion that an"
        " output without content gets the lowest score.",
        notes=[
            f"The best of them reaches {best:.2f} of the scale, honest outputs {typical:.2f}.",
            *([] if against else ["The criterion is about the output alone, which can be good and say nothing."]),
        ],
    )


_PAPERS = {
    "constant": "a constant output wins 86.5 % of AlpacaEval 2.0 (2410.07137)",
    "": "accepted in up to 80–90 % of cases (2507.08794)",
}
