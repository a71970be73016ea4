"""Whether the judge says the same twice, and under prompts that mean the same (Stureborg et al. 2024, Tables 5 and 7).

Krippendorff's α compares the disagreement of an item's replies with that between items: where nearly all items get one
score it is low for a judge that hardly ever contradicts itself. So what counts is what harms a user's decision: how far
two replies to the same output lie apart, as a share of the scale. α stands beside it, with exact agreement and the
standard error of a single reply in points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...agreement.coefficients import alpha, mean
from ...agreement.intervals import Figure, Floats
from ...agreement.judged import Item
from ...criteria import Criterion
from ...samples import Sample
from .. import measures
from ..asking import REPLIES, SAMPLED, Answered, Asking, Plan, Question, Unmeasurable, item_of
from ..ratings import MATTERS, RETEST, Ratings, Reliability
from ..results import Check, Statistic
from .common import SCALES, rated, stureborg

REPEATABLE = 0.15
"""How far two replies to the same output may lie apart on average, as a share of the scale: .6 of a point on 1-5, or a
yes that becomes a no for one output in seven."""
CHANGED = "changed beyond a retest"
APART = "two replies lie apart"
COMPARED = ("1-10", "1-100")
TOGETHER = "alone or with others"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Several replies, and single ratings alone, with other criteria and on other scales."""
    together = len(asking.criteria) > 1 and len({each.task for each in asking.criteria}) == 1
    sampled = asking.geval(criterion, **SAMPLED)
    plain = asking.geval(criterion)
    scales = {name: asking.geval(criterion.on(SCALES[name])) for name in ("1-5", *COMPARED)}

    def ask(sample: Sample) -> Mapping[str, Question]:
        asked = {"samples": asking.rating(sampled, sample), "alone": asking.rating(plain, sample)}
        asked |= {name: asking.rating(geval, sample) for name, geval in scales.items()}
        asked[RETEST] = asking.rating(scales["1-5"], sample, draw=1)
        if together:
            asked[TOGETHER] = asking.several(sample, asking.criteria)
        return asked

    def done(answered: Answered) -> Check:
        samples = [asking.samples[place] for place, _ in answered]

        def items(name: str) -> list[Item]:
            return [item_of(s, criterion, rows[name]) for s, (_, rows) in zip(samples, answered, strict=True)]

        def levels(name: str, scale: str) -> Floats:
            scores = np.array([math.nan if item.score is None else item.score for item in items(name)])
            return (measures.binned(scores, SCALES[scale]) - 1) / 4

        ratings = Ratings.of({"samples": items("samples"), "alone": items("alone")}, criterion.scale)
        if together:
            others = [rows[TOGETHER]["scores"].get(criterion.name) for _, rows in answered]
            scores = [math.nan if each is None else criterion.scale.normalize(each) for each in others]
            ratings = replace(ratings, scores={**ratings.scores, TOGETHER: np.array(scores)})
        binned = replace(
            ratings,
            scores={RETEST: levels(RETEST, "1-5"), **{name: levels(name, name) for name in ("1-5", *COMPARED)}},
        )
        return conclude(ratings, criterion, binned)

    return Plan(rated(asking, criterion, ask, lambda each: Check()).steps, done)


def conclude(ratings: Ratings, criterion: Criterion, binned: Ratings | None = None) -> Check:
    """How far the replies to an item agree; with `binned`, how far single ratings on other scales do."""
    statistics = between_replies(ratings.replies["samples"], ratings, criterion)
    if TOGETHER in ratings.scores:
        statistics += _said_otherwise(TOGETHER, ratings, "alone", TOGETHER, None, criterion)
    for name in COMPARED if binned else ():
        assert binned is not None
        statistics += _said_otherwise(f"1-5 or {name}", binned, "1-5", name, RETEST, criterion)
    return replace(
        _INCONSISTENT,
        did=f"Took {REPLIES} replies at temperature 1, and single ratings under prompts and scales that mean the"
        " same (scales binned to five levels)."
        if binned
        else "Compared the replies to each item.",
        statistics=statistics,
    )


def _said_otherwise(
    subject: str, ratings: Ratings, base: str, other: str, retest: str | None, criterion: Criterion
) -> list[Statistic]:
    before, after = ratings.scores[base], ratings.scores[other]
    made = [
        Statistic(
            subject,
            "α",
            ratings.over(lambda a, b, weights: alpha(np.stack([a, b]), weights), before, after, within=(-1, 1)),
            None,
            stureborg(subject, criterion),
        )
    ]
    if retest is not None:
        # The larger of two figures: much noise hides how far single items move, and not that all of them do.
        confidence = 1 - 0.05 / len(COMPARED)
        changed = ratings.over(measures.changed, before, ratings.scores[retest], after, confidence=confidence)
        made.append(Statistic(subject, CHANGED, changed, (-1.0, 2 * MATTERS)))
    return made


_INCONSISTENT = Check(
    fault="inconsistent",
    advice="Average: log-probabilities where the judge has them, else 20 replies (`--n 20 --temperature 1`), which"
    " brings the standard error down by √20; and compare only ratings with equal signatures.",
    notes=[
        "α is low where nearly all items share one score, however seldom replies differ: what counts is how far two"
        " replies lie apart, as a share of the scale."
    ],
)


def between_replies(replies: Floats, ratings: Ratings, criterion: Criterion) -> list[Statistic]:
    """How far replies lie apart, the standard error of a single one in points, exact agreement, and α."""
    if len(replies) < 2:
        raise Unmeasurable("the ratings rest on one reply each: rate with --n 20 --readout samples")
    kept = (~np.isnan(replies)).sum(axis=0) >= 2
    own = replace(ratings, documents=[ratings.documents[place] for place in np.flatnonzero(kept).tolist()])
    replies = replies[:, kept]
    apart = own.over(mean, measures.mean_difference(replies), within=(0, 1))
    error = _root(own.over(mean, measures.reply_variance(replies), within=(0, 1)))
    points = _mapped(error, lambda value: value * ratings.span)
    agreed = own.over(mean, measures.exact_agreement(replies), within=(0, 1))
    agree = own.over(lambda each, weights: alpha(replies, weights), np.zeros(replies.shape[1]), within=(-1, 1))
    return [
        Statistic("samples", APART, apart, (0.0, REPEATABLE)),
        Statistic("samples", "standard error of a reply, in points", points),
        Statistic("samples", "exact agreement", agreed),
        Statistic("samples", "α", agree, None, stureborg("samples", criterion)),
    ]


def _root(figure: Figure) -> Figure:
    """The square root of a figure and its limits."""
    return _mapped(figure, lambda value: math.sqrt(max(0.0, value)))


def _mapped(figure: Figure, change: Callable[[float], float]) -> Figure:
    value, low, high = (None if each is None else change(each) for each in (figure.value, figure.low, figure.high))
    return replace(figure, value=value, low=low, high=high)


def stored_check(items: Sequence[Item], criterion: Criterion, reliability: Reliability = None) -> Check:
    """Whether the replies that a rating was averaged from agree."""
    return conclude(Ratings.of({"samples": items}, criterion.scale, reliability), criterion)
