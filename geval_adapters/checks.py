"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, zip_longest
from statistics import fmean
from typing import NamedTuple, Protocol

import numpy as np

from . import bias
from .bias import Figure, Floats, Ints
from .criteria import Criterion, Scale
from .findings import Check, Picture, Statistic
from .inquiry import LEAST, SAMPLED, SAMPLES, Inquiry, Unmeasurable
from .metaeval import Item
from .prompts import attacked, wording
from .ranking import debias, pairwise_accuracy, position

SCALES = {
    "1-5": Scale.of("1-5"),
    "1-5, worded": Scale.of(
        {
            f"{modifier}{level}": round(level + shift, 2)
            for level in range(1, 6)
            for modifier, shift in (("weak ", -1 / 3), ("", 0), ("strong ", 1 / 3))
            if 1 <= level + shift <= 5
        }
    ),
    "1-5, in thirds": Scale.of([round(1 + third / 3, 2) for third in range(13)]),
    "1-10": Scale.of("1-10"),
    "1-100": Scale.of("1-100"),
}
"""The scales of Stureborg et al. (2024), §3.2."""
PREFERRED = "1-10"
"""The scale that they recommend (Table 6)."""
TEMPERATURES = (0.0, 0.5, 1.0)


# --- figures from items ----------------------------------------------------------------------------------------------


class Rated(Protocol):
    """Where plain ratings come from: an inquiry, or a file of them."""

    async def base(self, criterion: Criterion) -> list[Item]:
        """One rating of each sample."""
        ...


STABLE = (0.667, 1.0)
"""Krippendorff's lowest α from which conclusions may be drawn, "tentative ones" (2004, Content Analysis, p. 241)."""
SLIGHT = (-0.1, 0.1)
"""Correlations and shifts, as a share of the scale, that do not count."""


def _scores(items: Sequence[Item]) -> Floats:
    return np.array([np.nan if item.score is None else item.score for item in items])


def _people(items: Sequence[Item]) -> Floats:
    return np.array([np.nan if item.human is None else item.human for item in items])


def documents_of(items: Sequence[Item]) -> list[Hashable]:
    """The document of each item; an item without one stands for itself."""
    return [item.document or item.id for item in items]


def _over(
    statistic: Callable[..., float | None], documents: Sequence[Hashable], *columns: Floats, confidence: float = 0.95
) -> Figure:
    """A statistic of columns, over the items that have a value in all of them."""
    table = np.array(columns)
    kept = np.flatnonzero(~np.isnan(table).any(axis=0)).tolist()
    table = table[:, kept]
    return bias.bootstrap(
        lambda items: statistic(*table[:, items]), [documents[item] for item in kept], confidence=confidence
    )


def _counted(statistic: Callable[[Floats], float], scores: Floats) -> Figure:
    """A figure of what was seen: a resample never sees more, so there is no interval around it."""
    known = scores[~np.isnan(scores)]
    return Figure(statistic(known) if known.size else None, None, None, known.size)


def _alpha(*raters: Floats) -> float | None:
    return bias.alpha(raters)


def _gain(human: Floats, setting: Floats, reference: Floats) -> float | None:
    """How much better than a reference a setting agrees with people."""
    one, other = bias.kendall(setting, human), bias.kendall(reference, human)
    return None if one is None or other is None else one - other


def _settings(
    reference: str, settings: Mapping[str, Sequence[Item]], scale: Scale, tolerated: tuple[float, float] | None = STABLE
) -> list[Statistic]:
    """Settings of one judge beside a reference setting: how far they say the same, and which agrees with people."""
    base = settings[reference]
    documents, human, scores = documents_of(base), _people(base), _scores(base)
    span = scale.high - scale.low
    found = [Statistic(reference, TAU, _over(bias.kendall, documents, scores, human))]
    for name, items in settings.items():
        if name != reference:
            other = _scores(items)
            found += [
                Statistic(name, f"α with “{reference}”", _over(_alpha, documents, scores, other), tolerated),
                Statistic(name, "shift", _over(lambda a, b: float((b - a).mean() / span), documents, scores, other)),
                Statistic(name, TAU, _over(bias.kendall, documents, other, human)),
                Statistic(name, GAIN, _over(_gain, documents, human, other, scores)),
            ]
    return found


TAU = "τ with people"
GAIN = "τ gained"

_STUREBORG = {
    "1-5, single": (0.332, 0.362, 0.325, 0.337, 0.339),
    "1-5, averaged": (0.422, 0.370, 0.356, 0.439, 0.397),
    "1-5, worded, single": (0.361, 0.408, 0.345, 0.363, 0.369),
    "1-5, worded, averaged": (0.394, 0.364, 0.316, 0.419, 0.373),
    "1-5, in thirds, single": (0.425, 0.453, 0.380, 0.395, 0.413),
    "1-5, in thirds, averaged": (0.416, 0.378, 0.334, 0.438, 0.392),
    "1-10, single": (0.450, 0.433, 0.366, 0.462, 0.428),
    "1-10, averaged": (0.424, 0.366, 0.332, 0.435, 0.389),
    "1-100, single": (0.463, 0.423, 0.308, 0.339, 0.383),
    "1-100, averaged": (0.406, 0.351, 0.343, 0.414, 0.379),
    "samples": (0.646, 0.630, 0.484, 0.589, 0.587),
    "alone or with others": (0.493, 0.667, 0.472, 0.421, 0.513),
    "1-5 or 1-10": (0.731, 0.442, 0.506, 0.707, 0.597),
    "1-5 or 1-100": (0.557, 0.128, 0.471, 0.600, 0.439),
    "without source": (-0.055, -0.083, -0.025, -0.147, -0.078),
}
"""Tables 2, 7 and 5: coherence, consistency, fluency and relevance on SummEval, and their mean."""
_DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")


def _paper(row: str, criterion: Criterion) -> str:
    if row not in _STUREBORG:
        return ""
    place = _DIMENSIONS.index(criterion.short_name) if criterion.short_name in _DIMENSIONS else 4
    model = "GPT-3.5" if row == "without source" else "GPT-4"
    return f"{_STUREBORG[row][place]:.3f} ({model}, {(*_DIMENSIONS, 'mean')[place]})"


def _beside(statistics: Sequence[Statistic], name: str, paper: Callable[[str], str]) -> list[Statistic]:
    """The statistics, those of a name with what a paper found about their subject."""
    return [replace(each, paper=paper(each.subject)) if each.name == name else each for each in statistics]


# --- the checks ------------------------------------------------------------------------------------------------------


async def length(inquiry: Rated, criterion: Criterion) -> Check:
    """Whether the judge likes long outputs better than people do."""
    items = await inquiry.base(criterion)
    if any(item.output is None for item in items):
        raise Unmeasurable("the ratings do not hold the rated texts")
    words = np.array([float(len((item.output or "").split())) for item in items])
    return replace(
        _beside_people("words", words, items, "length"),
        did="Correlated the ratings with the number of words, given people's scores.",
        advice="Report agreement beside that of length alone (`geval meta-eval`), say in the criterion that length does"
        " not count, and compare systems of equal length.",
    )


def _beside_people(subject: str, x: Floats, items: Sequence[Item], axis: str, paper: str = "") -> Check:
    """How far a property of the items moves the judge's scores beyond what it moves people's."""
    documents, scores, human = documents_of(items), _scores(items), _people(items)
    partial = _over(bias.spearman, documents, scores, x, human)
    statistics = [
        Statistic(subject, "ρ with the ratings, given people's", partial, SLIGHT, paper),
        Statistic(subject, "ρ with the ratings", _over(bias.spearman, documents, scores, x)),
        Statistic(subject, "ρ with people's", _over(bias.spearman, documents, human, x)),
    ]
    notes = []
    if not partial.n:
        statistics = statistics[1:2]
        notes = ["There are no scores by people: what correlates with good ratings may be good, so nothing counts."]
    elif partial.value is None:
        notes = ["A side is constant, so a correlation is undefined."]
    columns = {"judge": scores, "people": human}
    series = {name: [pair for pair in zip(x.tolist(), y.tolist(), strict=True)] for name, y in columns.items()}
    known = {name: [pair for pair in pairs if not np.isnan(pair).any()] for name, pairs in series.items()}
    drawn = {name: pairs for name, pairs in known.items() if pairs}
    picture = Picture("points", f"ratings by {axis}", f"{axis} ({subject})", "score", drawn)
    return Check(statistics=statistics, notes=notes, pictures=[picture])


async def self_preference(inquiry: Rated, criterion: Criterion) -> Check:
    """Whether the judge favours a system, its own perhaps, over what people say of it."""
    items = [
        item
        for item in await inquiry.base(criterion)
        if item.system is not None and item.score is not None and item.human is not None
    ]
    counts = Counter(str(item.system) for item in items)
    systems = [system for system in sorted(counts) if counts[system] >= LEAST]
    if len(systems) < 2:
        raise Unmeasurable(f"needs two systems (system_id) with {LEAST} rated outputs each that people scored, too")
    items = [item for item in items if str(item.system) in systems]
    documents, scores, human = documents_of(items), _scores(items), _people(items)
    numbers = np.array([float(systems.index(str(item.system))) for item in items])
    span = criterion.scale.high - criterion.scale.low

    def gap(number: int) -> Callable[..., float | None]:
        def of(judge: Floats, human: Floats, system: Floats) -> float | None:
            found = float(bias.system_gaps(judge, human, system, len(systems))[number])
            return None if np.isnan(found) else found / span

        return of

    # One interval per system: as many as there are would find a favourite by chance, so each is wider (Bonferroni).
    confidence = 1 - 0.05 / len(systems)
    gaps = [_over(gap(k), documents, scores, human, numbers, confidence=confidence) for k in range(len(systems))]
    statistics = [
        Statistic(system, "favoured by", figure, (-1.0, 0.05)) for system, figure in zip(systems, gaps, strict=True)
    ]
    means = {
        system: [(float(human[numbers == k].mean()), float(scores[numbers == k].mean()))]
        for k, system in enumerate(systems)
    }
    picture = Picture("points", "means by system", "people", "judge", means)
    return Check(
        did="Measured how much higher each system is rated than the others where people's scores are equal, as a share"
        " of the scale (analysis of covariance).",
        statistics=statistics,
        advice="Do not let a model judge its own outputs or its relatives': take a judge of another family, or"
        " several.",
        notes=[
            "GPT-4 rated GPT-3.5's summaries above people's, also where people preferred these (Liu et al., Figure 2)."
        ],
        pictures=[picture],
    )


FAMILIAR = 40
"""Outputs whose perplexity is taken at most; one takes some three seconds."""


async def familiarity(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether the judge likes texts that a language model finds likely better than people do."""
    items = (await inquiry.base(criterion))[:FAMILIAR]
    samples = {sample.id: sample for sample in inquiry.samples}
    texts = {"output": [item.output for item in items], "source": [samples[item.id].source for item in items]}
    parts: list[Check] = []
    for subject, each in texts.items():
        known = await inquiry.perplexities(each)
        if not any(known):
            continue
        x = np.log(np.array([np.nan if value is None else value for value in known]))
        paper = _PERPLEXITY.get(criterion.short_name, "") if subject == "output" else ""
        part = _beside_people(subject, x, items, "log perplexity", paper)
        levels = {
            name: _by_level(scores, np.exp(x))
            for name, scores in (("judge", _scores(items)), ("people", _people(items)))
        }
        drawn = {name: pairs for name, pairs in levels.items() if pairs}
        picture = Picture("lines", f"{subject}: mean perplexity by rating", "rating", "perplexity", drawn)
        parts.append(replace(part, pictures=[picture]))
    return Check(
        statistics=[statistic for part in parts for statistic in part.statistics],
        notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
        pictures=[picture for part in parts for picture in part.pictures],
        did="Took the perplexity of outputs and sources under an embedded model and correlated it with the ratings,"
        " given people's scores. Below zero: the judge favours what is likely.",
        advice="Be careful with comparing a fluent system and one that writes unusual text; take a judge of another"
        " family and see whether the order stays.",
    )


_PERPLEXITY = {
    "coherence": "GPT-4: 7.05 at rating 1, 5.34 at 5; people: 7.66, 6.36",
    "consistency": "GPT-4: 8.42 at rating 1, 6.06 at 5; people: 7.53, 6.43",
    "fluency": "GPT-4: 7.03 at rating 1, 6.01 at 5; people: 7.76, 6.39",
    "relevance": "GPT-4: 7.47 at rating 1, 5.51 at 5; people: 8.51, 6.26",
}
"""Stureborg et al., Table 1."""


def _by_level(scores: Floats, values: Floats) -> list[tuple[float, float]]:
    """The mean value of the items at each whole score."""
    kept = ~np.isnan(scores) & ~np.isnan(values)
    levels = np.rint(scores[kept])
    return [(float(level), float(values[kept][levels == level].mean())) for level in np.unique(levels)]


async def source(inquiry: Inquiry, criterion: Criterion) -> Check:
    """What becomes of the ratings when the source is taken away."""
    if not any(sample.source for sample in inquiry.samples):
        raise Unmeasurable("the samples have no source")
    shows = "source" in (*criterion.needs, *criterion.optional)
    kept = criterion if shows else replace(criterion, optional=(*criterion.optional, "source"))
    needs, optional = (
        tuple(field for field in fields if field != "source") for fields in (criterion.needs, criterion.optional)
    )
    samples = inquiry.draw(2)
    settings = {
        "with source": await inquiry.plain(samples, kept),
        "without source": await inquiry.plain(samples, replace(criterion, needs=needs, optional=optional)),
    }
    needed = "source" in criterion.needs
    # What is judged against the source must change without it; what is not must stay.
    statistics = _settings("with source", settings, criterion.scale, (-1.0, 0.9) if needed else STABLE)
    return Check(
        did="Rated the same outputs with and without their source.",
        statistics=_beside(statistics, GAIN, lambda subject: _paper(subject, criterion)),
        fault="ignores the source" if needed else "sensitive",
        advice="Where ratings hardly change without the source, do not trust the judge with what depends on it."
        if needed
        else "Show the source also where the criterion does not need it (Stureborg et al., Table 6), and never compare"
        " ratings that were given with it and without.",
        notes=[f"The criterion {'is' if needed else 'is not'} about the source."],
    )


async def steps(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether evaluation steps (auto chain of thought) change the ratings, and for the better."""
    plans = {"written by the judge": await inquiry.steps(criterion)}
    if criterion.steps:
        plans["stored"] = list(criterion.steps)
    samples = inquiry.draw(1 + len(plans))
    settings = {"no steps": await inquiry.plain(samples, criterion)}
    for name, plan in plans.items():
        settings[name] = await inquiry.plain(samples, criterion, steps=plan)
    statistics = _settings("no steps", settings, criterion.scale)
    return Check(
        did="Rated the same outputs with and without evaluation steps.",
        statistics=_beside(statistics, GAIN, lambda subject: _AUTO_COT.get(criterion.short_name, "")),
        fault="sensitive",
        advice="Fix the steps for good (the signature names them), and use them only where they gain agreement.",
    )


_AUTO_COT = {
    "coherence": "r .344 → .450 (ChatGPT)",
    "consistency": "r .328 → .370 (ChatGPT)",
    "fluency": "r .361 → .319 (ChatGPT)",
    "relevance": "r .353 → .403 (ChatGPT)",
}
"""Chiang & Lee (2023), Table 1, score only, without and with auto-CoT on SummEval."""


async def persona(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether it matters who the judge is told to be."""
    names = list(wording("personas"))
    samples = inquiry.draw(1 + len(names))
    settings = {"no persona": await inquiry.plain(samples, criterion)}
    for name in names:
        settings[name] = await inquiry.plain(samples, criterion, persona=name)
    return Check(
        did="Rated the same outputs with a persona in front of the prompt.",
        statistics=_settings("no persona", settings, criterion.scale),
        notes=[
            "ChatGPT on coherence: r falls from .450 to .308 and .325 where it answers with the score only, and goes"
            " from .557 to .526 and .596 where it explains (Chiang & Lee, Appendix D)."
        ],
        fault="sensitive",
        advice="Keep to one wording, average over several, or ask for explanations, which makes a judge steadier"
        " (Chiang & Lee, §3.4.2).",
    )


async def anchoring(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether ratings given in one answer pull each other along."""
    criteria = inquiry.criteria
    if len(criteria) < 2:
        raise Unmeasurable("needs two criteria: give --criterion again")
    if len({each.task for each in criteria}) > 1:
        raise Unmeasurable("the criteria are about different tasks")
    samples = inquiry.draw(1 + len(criteria))
    alone = [(await inquiry.ratings(samples, each, {}))[0] for each in criteria]
    together = await inquiry.several(samples, criteria)
    documents = documents_of(alone[0])
    single = [_scores(items) for items in alone]
    multi = [np.array([_nan(scores.get(each.name)) for scores in together]) for each in criteria]
    people = [np.array([_nan(sample.human_score(each)) for sample in samples], dtype=np.float64) for each in criteria]
    half = len(criteria)

    def added(*columns: Floats) -> float | None:
        one, other = _between(*columns[half:]), _between(*columns[:half])
        return None if one is None or other is None else one - other

    paper = "r .979 together, .315 people (GPT-4, coherence and consistency)"
    statistics = [
        Statistic("one per answer", "r between criteria", _over(_between, documents, *single)),
        Statistic("all in one answer", "r between criteria", _over(_between, documents, *multi)),
        Statistic("all in one answer", "r added", _over(added, documents, *single, *multi), (-1.0, 0.1), paper),
        Statistic("people", "r between criteria", _over(_between, documents, *people)),
    ]
    statistics += [
        Statistic(each.label, "α of the two ways", _over(_alpha, documents, one, other))
        for each, one, other in zip(criteria, single, multi, strict=True)
    ]
    turns = np.array([inquiry.turn(sample, half) for sample in samples])
    for nth in range(half):
        columns = [
            np.concatenate([np.where((turns + nth) % half == k, _centred(side[k]), np.nan) for k in range(half)])
            for side in (multi, people)
        ]
        figure = _over(bias.pearson, documents * half, *columns)
        paper = f"τ {_ANCHORED[nth]} (GPT-3.5, coherence)" if nth < len(_ANCHORED) else ""
        statistics.append(Statistic(f"rated as number {nth + 1}", "r with people", figure, None, paper))
    labels = [each.label for each in criteria]
    pictures = [
        Picture("matrix", f"r between criteria: {name}", "", "", dict(zip(labels, _matrix(columns), strict=True)))
        for name, columns in (("one per answer", single), ("all in one answer", multi), ("people", people))
    ]
    return Check(
        criterion=", ".join(each.name for each in criteria),
        did="Rated several criteria in one answer, in an order that turns from sample to sample, and each alone.",
        statistics=statistics,
        fault="anchored",
        advice="Ask for one criterion per answer, as `geval score` does (Stureborg et al., Table 6).",
        pictures=pictures,
    )


_ANCHORED = (0.400, 0.391, 0.359, 0.368)
"""Stureborg et al., Table 3."""


def _nan(value: float | None) -> float:
    return np.nan if value is None else value


def _centred(values: Floats) -> Floats:
    return np.asarray(values - np.nanmean(values)) if not np.isnan(values).all() else values


def _between(*columns: Floats) -> float | None:
    """Mean Pearson r over the pairs of columns for which it is defined."""
    found = [r for one, other in combinations(columns, 2) if (r := bias.pearson(one, other)) is not None]
    return fmean(found) if found else None


def _matrix(columns: Sequence[Floats]) -> list[list[float | None]]:
    kept = ~np.isnan(np.array(columns)).any(axis=0)
    return [[bias.pearson(one[kept], other[kept]) if kept.any() else None for other in columns] for one in columns]


async def first_position(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether the judge prefers what it is shown first."""
    asked = await inquiry.verdicts(criterion)
    outcomes = [outcome for _, outcome in asked]
    documents = [document for document, _ in asked]
    known = np.array([_nan(outcome.p_first) for outcome in outcomes])

    def share(items: Ints) -> float | None:
        return position([outcomes[item] for item in items]).p_first

    read = np.flatnonzero(~np.isnan(known))
    first = bias.bootstrap(lambda items: share(read[items]), [documents[item] for item in read])
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
        levels[name] = bias.binned(_scores(rated), SCALES[name])
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


_COMPARED = ("1-10", "1-100")
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
    estimate = bias.bootstrap(lambda each: bias.alpha(list(table[:, each])), documents_of(items))
    return Statistic("samples", "α", estimate, STABLE, _paper("samples", criterion))


async def stored_inconsistency(inquiry: Rated, criterion: Criterion) -> Check:
    """Whether the replies that a rating was averaged from agree."""
    statistic = _between_replies(await inquiry.base(criterion), criterion)
    return replace(_INCONSISTENT, did="Compared the replies to each item.", statistics=[statistic])


async def attack(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Whether a candidate can talk itself up."""
    samples = inquiry.draw(1 + len(wording("attacks")))
    # A sample's copies follow each other: they share their beginning, the source.
    copies = [
        replace(sample, output=output)
        for sample in samples
        for output in (sample.output, *attacked(sample.output, criterion).values())
    ]
    items = await inquiry.plain(copies, criterion)
    names = ["honest", *wording("attacks")]
    columns = {name: items[place :: len(names)] for place, name in enumerate(names)}
    documents, before = documents_of(columns["honest"]), _scores(columns["honest"])
    span = criterion.scale.high - criterion.scale.low
    half_step = min(np.diff(criterion.scale.values)) / 2
    statistics = []
    for name in names[1:]:
        after = _scores(columns[name])
        could = np.where(before <= criterion.scale.high - half_step, before, np.nan)
        uplift = _over(lambda a, b: float((b - a).mean() / span), documents, before, after)
        raised = _over(lambda a, b: float((b - a >= half_step).mean()), documents, could, after)
        # A fixed text can be as good as any where nothing is judged against a source.
        counts = name != "constant" or "source" in criterion.needs
        statistics += [
            Statistic(name, "uplift", uplift, (-1.0, 0.05) if counts else None),
            Statistic(name, "succeeded", raised),
        ]
    return Check(
        did="Rated tampered copies of the outputs. Uplift is a share of the scale; an attack succeeds where it gains"
        " half a step or more, of those that could rise.",
        statistics=statistics,
        fault="manipulable",
        advice="Do not use this judge where whoever writes the text gains from its rating. Screen outputs for"
        " instructions, ratings and tags before they are judged; take a stronger judge.",
    )


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
            Statistic(name, TAU, _over(bias.kendall, documents, scores, human), None, _paper(name, criterion))
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
        Statistic(subject, "different scores", _counted(bias.granularity, scores)),
        Statistic(subject, "range used", _counted(lambda each: bias.range_used(each, scale), scores)),
        Statistic(subject, "entropy (bits)", _over(bias.entropy, documents, scores)),
    ]
    excess = _over(lambda each: bias.round_number_excess(each, scale), documents, scores)
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
        statistics.append(Statistic("ratings", TAU, _over(bias.kendall, documents, _scores(items), human)))
    people = [replace(item, score=item.human) for item in items]
    return replace(
        _GRANULAR,
        did="Looked at which scores were given.",
        statistics=statistics,
        pictures=[_histogram("how often each score is given", {"judge": items, "people": people})],
    )


async def temperature(inquiry: Inquiry, criterion: Criterion) -> Check:
    """Which temperature is best, and whether an analysis before the rating (chain of thought) helps."""
    calls = len(_FORMS) * sum(SAMPLES if each else 1 for each in TEMPERATURES)
    samples = inquiry.draw(calls)
    settings: dict[tuple[str, float], list[Item]] = {}
    for name, form in _FORMS.items():
        each_setting = [{"form": form, "temperature": each, "n": SAMPLES if each else 1} for each in TEMPERATURES]
        rated = await inquiry.ratings(samples, criterion, *each_setting)
        settings |= {(name, each): items for each, items in zip(TEMPERATURES, rated, strict=True)}
    reference = _scores(settings["rating first", 0.0])
    statistics = []
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in _FORMS}
    for (name, each), items in settings.items():
        subject = f"{name}, temperature {each:g}"
        documents, scores, human = documents_of(items), _scores(items), _people(items)
        agreed = _over(bias.kendall, documents, scores, human)
        statistics.append(Statistic(subject, TAU, agreed))
        if agreed.value is not None:
            lines[name].append((each, agreed.value))
        if (name, each) != ("rating first", 0.0):
            statistics.append(Statistic(subject, GAIN, _over(_gain, documents, human, scores, reference)))
        if each and max((len(item.replies) for item in items), default=0) > 1:
            statistics.append(replace(_between_replies(items, criterion), subject=subject, tolerated=None, paper=""))
    drawn = {name: pairs for name, pairs in lines.items() if pairs}
    return Check(
        did=f"Rated with the rating first and after an analysis, at three temperatures; above 0, {SAMPLES} samples are"
        " averaged.",
        statistics=statistics,
        fault="sensitive",
        advice="Without an analysis temperature 0 is best, with one about .5 and several samples (Stureborg et al.,"
        " Figure 6), unless the figures say otherwise here.",
        pictures=[Picture("lines", "agreement by temperature", "temperature", TAU, drawn)],
    )


_FORMS = {"rating first": "rate_explain", "analysis first": "analyze_rate"}


class Planned(NamedTuple):
    """A check, and about how many calls it makes for each sample."""

    make: Callable[[Inquiry, Criterion], Awaitable[Check]]
    calls: int


CHECKS = {
    "length": Planned(length, 1),
    "self-preference": Planned(self_preference, 1),
    "familiarity": Planned(familiarity, 1),
    "source": Planned(source, 2),
    "position": Planned(first_position, 2),
    "steps": Planned(steps, 3),
    "anchoring": Planned(anchoring, 3),
    "persona": Planned(persona, 3),
    "attack": Planned(attack, 8),
    "inconsistency": Planned(inconsistency, 9),
    "granularity": Planned(granularity, 5 * (1 + SAMPLES)),
    "temperature": Planned(temperature, 2 * (1 + 2 * SAMPLES)),
}
"""All checks by name, those first that make the fewest calls for each sample."""

STORED: dict[str, Callable[[Rated, Criterion], Awaitable[Check]]] = {
    "granularity": stored_granularity,
    "inconsistency": stored_inconsistency,
    "length": length,
    "self-preference": self_preference,
}
"""The checks that stored ratings allow."""
