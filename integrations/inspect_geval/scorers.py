"""Inspect's scorers: rated by a criterion, by several, and compared with what another system wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from inspect_ai.model import ChatMessage, GenerateConfig, Model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState
from inspect_ai.util import collect

from geval_adapters import Comparer, Criterion, GEval, InputError, Judge, Rating, Sample, Verdict
from geval_adapters.judge import without_keys
from geval_adapters.samples import to_sample

from .asked import Asked

CriterionLike = str | Criterion | Mapping[str, Any]
Config: TypeAlias = "GenerateConfig | Mapping[str, Any]"
Value = Literal["score", "normalized"]
FIELDS = ("context", "doc_id", "system_id")
"""Fields of a sample that are looked for in the metadata of Inspect's."""
KNOWN = ("id", "doc_id", "system_id", "human", "output", "reference", "rationale")
"""What a row of ours says that stands elsewhere in Inspect's log."""
SAID = ("p_first", "coverage", "bounds", "method", "n_valid", "n_failed", "error", "usage", "signature", "served")
"""What is kept of each verdict."""


def _name(scorer: str) -> str:
    """What Inspect calls a scorer: it puts the package's name before it, but not in an editable install, which it knows
    only by the distribution's name.
    """
    return scorer if {"site-packages", "dist-packages"} & {*Path(__file__).parts} else f"inspect_geval/{scorer}"


@metric(name=_name("clustered_stderr"))
def clustered_stderr(cluster: str = "doc_id") -> Metric:
    """Standard error of the mean where samples of one document belong together: Inspect's own, by an entry of the
    sample's metadata. A sample without it is a document of its own; where all are, it is the plain standard error.

    NaN for fewer than two documents, of which none can be estimated.
    """
    clustered = stderr(cluster=cluster)

    def value(scores: list[SampleScore]) -> float:
        documents = [(each.sample_metadata or {}).get(cluster) for each in scores]
        named = [f"sample {number}" if name is None else name for number, name in enumerate(documents)]
        if len(set(named)) < 2:
            return float("nan")
        told = [
            each.model_copy(update={"sample_metadata": {cluster: name}})
            for each, name in zip(scores, named, strict=True)
        ]
        return float(clustered(told))

    return value


@scorer(name=_name("geval"), metrics=[mean(), clustered_stderr()])
def geval(
    criterion: CriterionLike,
    *,
    model: str | Model | None = None,
    model_role: str = "grader",
    judge: str | Judge | None = None,
    config: Config | None = None,
    value: Value = "score",
    fields: Mapping[str, str] | None = None,
    **options: Any,
) -> Scorer:
    """Rate outputs by a criterion.

    The sample's input is the source, its target the reference. The score's explanation is the judge's rationale (with
    `explain=True`), its metadata all the rest of the rating: method, coverage, bounds, standard error, failed replies,
    usage, signature. What could not be rated is `Score.unscored` with the reason: Inspect leaves it out of each metric,
    and counts it.

    Args:
        criterion: as for `GEval`.
        model: one of Inspect's models as the judge.
        model_role: without it, the model with this role. The model that is evaluated does not judge itself unasked.
        judge: instead, a LiteLLM model string, `local/…`, or a `Judge`, which go past Inspect's models.
        config: further settings of the model's requests, such as `GenerateConfig(cache=True, batch=True)`.
        value: what the score's value is: on the criterion's scale, or from 0 to 1.
        fields: field (context, doc_id, system_id) to the entry of the sample's metadata that holds it, where that is
            not called so.
        options: as for `GEval`: recipe, scale, form, steps, n, readout, explain …; for a model string the judge's, too.

    Raises:
        InputError: as for `GEval`; two judges were named; a key is among the options.
        JudgeError: from a score: the judge cannot be asked at all.
        PrerequisiteError: from a score: no model has the role.
    """
    asked = Asked(lambda judge: GEval(criterion, judge, **_shown(options)), model, model_role, judge, config)
    names = _names(fields)

    async def score(state: TaskState, target: Target) -> Score:
        return as_score(await _rated(asked, _sample(state, target, names)), value)

    return score


@scorer(name=_name("geval_criteria"), metrics={"*": [mean(), clustered_stderr()]})
def geval_criteria(
    criteria: Sequence[CriterionLike],
    *,
    model: str | Model | None = None,
    model_role: str = "grader",
    judge: str | Judge | None = None,
    config: Config | None = None,
    value: Value = "score",
    fields: Mapping[str, str] | None = None,
    **options: Any,
) -> Scorer:
    """Rate outputs by several criteria: one score, whose value, metadata and metrics go by the criteria's names.

    A criterion that could not be rated is NaN, which Inspect counts as unscored for that criterion alone. For the
    arguments, see `geval`.

    Raises:
        InputError: there are no criteria; else as for `geval`.
    """
    wanted = [criteria] if isinstance(criteria, str | Criterion | Mapping) else list(criteria)
    if not wanted:
        raise InputError('no criteria: pass ["coherence", "fluency"], or criteria of your own')
    several = [
        Asked(lambda judge, each=each: GEval(each, judge, **_shown(options)), model, model_role, judge, config)  # type: ignore[misc]
        for each in wanted
    ]
    names = _names(fields)

    async def score(state: TaskState, target: Target) -> Score:
        sample = _sample(state, target, names)
        ratings: list[Rating] = await collect(*(_rated(asked, sample) for asked in several))
        scores = {rating.criterion: as_score(rating, value) for rating in ratings}
        told = [f"{name}: {each.explanation}" for name, each in scores.items() if each.explanation]
        return Score(
            value={name: each.as_float() for name, each in scores.items()},
            answer=sample.output,
            explanation="\n\n".join(told) or None,
            metadata={name: each.metadata for name, each in scores.items()},
        )

    return score


@scorer(name=_name("geval_pairwise"), metrics=[mean(), clustered_stderr()])
def geval_pairwise(
    criterion: CriterionLike,
    *,
    against: str | None = None,
    model: str | Model | None = None,
    model_role: str = "grader",
    judge: str | Judge | None = None,
    config: Config | None = None,
    fields: Mapping[str, str] | None = None,
    **options: Any,
) -> Scorer:
    """Compare outputs with others of the same input, in both orders: the value is P(the output is better), its mean the
    share of wins.

    Args:
        against: the entry of the sample's metadata that holds the other output; by default it is the target.
        criterion, model, model_role, judge, config, fields: as for `geval`.
        options: as for `Comparer`.

    Raises:
        InputError: as for `geval`.
    """
    asked = Asked(lambda judge: Comparer(criterion, judge, **_shown(options)), model, model_role, judge, config)  # type: ignore[arg-type]
    names = _names(fields)

    async def score(state: TaskState, target: Target) -> Score:
        sample = _sample(state, target, names)
        other = target.text if against is None else state.metadata.get(against)
        if not other:
            why = f"nothing to compare with: no {'target' if against is None else f'{against} in the metadata'}"
            return _unscored(sample, why, "scoring_failed", {})
        comparison = await asked.here().acompare(sample, replace(sample, id=f"{sample.id}/other", output=str(other)))
        there, back = map(_verdict, (comparison.there, comparison.back))
        known = {"criterion": asked.here().criterion.name, "flipped": comparison.flipped, "there": there, "back": back}
        if comparison.p_first is None:
            return _unscored(sample, comparison.error, "grader_failed", known)
        return Score(
            value=comparison.p_first, answer=sample.output, explanation=comparison.there.text or None, metadata=known
        )

    return score


def as_score(rating: Rating, value: Value) -> Score:
    """A rating as Inspect's score."""
    known = {name: each for name, each in rating.to_dict().items() if name not in KNOWN}
    number = getattr(rating, value)
    if number is None:
        return _unscored(rating.sample, rating.error, "grader_failed" if rating.method else "scoring_failed", known)
    return Score(value=number, answer=rating.sample.output, explanation=rating.rationale, metadata=known)


def _unscored(sample: Sample, why: str | None, reason: str, known: dict[str, Any]) -> Score:
    """What has no score; releases of Inspect that have a field for the reason take it from the metadata."""
    return Score.unscored(answer=sample.output, explanation=why, metadata={**known, "unscored_reason": reason})


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {name: each for name, each in verdict.to_dict().items() if name in SAID}


async def _rated(asked: Asked[GEval], sample: Sample) -> Rating:
    """The sample's rating; for want of a field, too, it is one with an error."""
    (rating,) = [each async for each in asked.here().arate_many([sample])]
    return rating


def _shown(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options that may stand in Inspect's log, where it writes all arguments of a scorer."""
    if hidden := set(options) - set(without_keys(options)):
        why = "Inspect writes a scorer's arguments to its log: put it in the environment, or in a LiteLLMJudge"
        raise InputError(f"{', '.join(sorted(hidden))}: {why}")
    return options


def _names(fields: Mapping[str, str] | None) -> dict[str, str]:
    if unknown := set(fields or ()) - set(FIELDS):
        raise InputError(f"unknown field {', '.join(sorted(unknown))}; the metadata may hold {', '.join(FIELDS)}")
    return {name: name for name in FIELDS} | dict(fields or {})


def _sample(state: TaskState, target: Target, names: Mapping[str, str]) -> Sample:
    """What is judged: the output of a sample of Inspect's, with its input, its target and what its metadata holds."""
    found = {field: state.metadata[name] for field, name in names.items() if state.metadata.get(name) is not None}
    return to_sample(
        {
            **{field: each if isinstance(each, list) else str(each) for field, each in found.items()},
            "id": f"{state.sample_id}/{state.epoch}",
            "output": state.output.completion,
            "source": _text(state.input),
            "reference": target.text or None,
        }
    )


def _text(given: str | list[ChatMessage]) -> str:
    """A sample's input as text: of several messages each with its role."""
    if isinstance(given, str):
        return given
    return given[0].text if len(given) == 1 else "\n\n".join(f"{each.role}: {each.text}" for each in given)
