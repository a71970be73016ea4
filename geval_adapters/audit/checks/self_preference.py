"""Whether the judge favours a system, its own perhaps, over what people say of it (Liu et al. 2023, Figure 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ...agreement.intervals import Floats
from ...agreement.judged import Item
from ...criteria import Criterion
from .. import measures
from ..asking import LEAST, Asking, Plan, Unmeasurable
from ..ratings import Ratings, Reliability
from ..results import Check, Picture, Statistic
from .common import rated

BASE = "rating"
FAVOURED = "favoured by"
SLIGHT = (-1.0, 0.025)
"""How much higher, as a share of the scale, a system may be rated than others: a tenth of a point of 1-5."""


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """One plain rating each."""
    plain = await asking.plain(criterion)
    scored = [s for s in asking.samples if s.system_id is not None and s.human_score(criterion) is not None]
    if len({sample.system_id for sample in scored}) < 2:
        raise Unmeasurable("needs outputs of two systems (system_id) that people scored, too")
    return rated(
        asking,
        criterion,
        lambda sample: {BASE: asking.rating(plain, sample)},
        lambda each: stored_check(each.items[BASE], criterion, each.reliability),
        scored,
    )


def stored_check(items: Sequence[Item], criterion: Criterion, reliability: Reliability = None) -> Check:
    """What ratings that are there say of it."""
    scored = [each for each in items if each.system is not None and each.score is not None and each.human is not None]
    counts = Counter(str(item.system) for item in scored)
    systems = [system for system in sorted(counts) if counts[system] >= LEAST]
    if len(systems) < 2:
        raise Unmeasurable(f"needs two systems (system_id) with {LEAST} rated outputs each that people scored, too")
    scored = [item for item in scored if str(item.system) in systems]
    system = np.array([float(systems.index(str(item.system))) for item in scored])
    return conclude(Ratings.of({BASE: scored}, criterion.scale, reliability), system, systems)


def conclude(ratings: Ratings, system: Floats, systems: Sequence[str]) -> Check:
    """No system may be rated higher than its quality deserves, by a size that matters."""

    def gap(number: int) -> Callable[..., Floats]:
        def of(judge: Floats, people: Floats, system: Floats, noise: Floats, weights: Floats) -> Floats:
            return measures.system_gaps(judge, people, system, noise, weights)[:, number]

        return of

    # As many systems as there are would find a favourite by chance, so each interval is wider (Bonferroni); only its
    # lower end counts.
    confidence = 1 - 2 * 0.05 / len(systems) if len(systems) > 2 else 0.95
    scores = ratings.scores[BASE]
    gaps = [ratings.beside_people(gap(k), scores, system, confidence=confidence) for k in range(len(systems))]
    means = {
        name: [(float(ratings.people[system == k].mean()), float(scores[system == k].mean()))]
        for k, name in enumerate(systems)
    }
    assumed = gaps[0][1]
    return Check(
        did="Measured how much higher each system is rated than it would, were it rated like the others, as a share of"
        " the scale (a line fitted to the others' items that allows for noise in people's scores).",
        statistics=[Statistic(name, FAVOURED, figure, SLIGHT) for name, (figure, _) in zip(systems, gaps, strict=True)],
        advice="Do not let a model judge its own outputs or its relatives': take a judge of another family, or"
        " several.",
        notes=[
            assumed[:1].upper() + assumed[1:] + ".",
            "GPT-4 rated GPT-3.5's summaries above people's, also where people preferred these (Liu et al., Figure 2).",
        ],
        pictures=[Picture("points", "means by system", "people", "judge", means)],
    )
