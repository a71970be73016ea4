"""Reward functions: completions in, a reward from 0 to 1 for each, None where the judge gave none.

TRL names a reward in its logs by `__name__`, and calls it with keywords: `prompts`, `completions`, the data set's
columns, `log_extra` and `log_metric`, and others. A None is left out of its sums.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from geval_adapters import Comparer, Criterion, GEval, InputError, Judge, Rating, Sample, Usage, Verdict
from geval_adapters.errors import one_of
from geval_adapters.judge import run
from geval_adapters.judged import judged
from geval_adapters.samples import ALIASES, to_sample

COLUMNS = {**{field: ALIASES[field] for field in ("reference", "context", "rubric")}, "source": ()}
"""In which columns a field is looked for; the prompt is the source where no column is."""

METHODS = ("average", "win-ratio")
"""How the comparisons of a group become rewards: those ways to rank whose scores lie between 0 and 1."""

Row = dict[str, Any]
"""What came of one completion: `reward`, and what is logged beside it."""


class Reward(ABC):
    """What the reward functions share: prompts and completions as samples, and what is logged.

    Attributes:
        criterion: by what is judged.
    """

    criterion: Criterion

    def __init__(self, name: str, columns: Mapping[str, str] | None) -> None:
        self.__name__ = name
        if unknown := set(columns or {}) - set(COLUMNS):
            raise InputError(f"unknown field {', '.join(sorted(unknown))}; columns are for {', '.join(COLUMNS)}")
        self._columns = {**COLUMNS, **{field: (column,) for field, column in (columns or {}).items()}}

    @abstractmethod
    async def _rows(self, samples: Mapping[int, Sample]) -> dict[int, Row]:
        """What came of each sample, by its place."""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """A reward for each completion.

        Args:
            prompts: the prompt of each: a text, or a list of messages.
            completions: what was written to it, likewise.
            columns: what else the trainer passes; a list with a value for each completion can be a field.

        Raises:
            InputError: there is no column for a field that the criterion needs. A row without a value has no reward.
            JudgeError: the judge cannot be asked at all: no key, no such model, no server from the first.
        """
        return run(self.areward(prompts, completions, **columns))

    async def areward(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """A reward for each completion; see `__call__`."""
        for field in self.criterion.needs:
            if field != "source" and not any(name in columns for name in self._columns.get(field, ())):
                raise InputError(
                    f"no {field}, which {self.criterion.name} needs, among {', '.join(columns) or 'no columns'};"
                    f' say which it is, as in columns={{"{field}": "…"}}'
                )
        samples: dict[int, Sample] = {}
        unusable: dict[int, Row] = {}
        for place, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            try:
                samples[place] = self._sample(place, prompt, completion, columns, len(prompts))
            except InputError as error:
                unusable[place] = {"reward": None, "error": str(error)}
        rows = unusable | await self._rows(samples)
        told = [rows[place] for place in range(len(prompts))]
        self._log(told, **columns)
        return [row["reward"] for row in told]

    def _sample(self, place: int, prompt: Any, completion: Any, columns: Mapping[str, Any], count: int) -> Sample:
        row: dict[str, Any] = {"id": str(place), "source": prompt, "output": completion}
        for field, names in self._columns.items():
            given = [columns[name] for name in names if isinstance(columns.get(name), Sequence)]
            if given and len(given[0]) == count:
                row[field] = given[0][place]
        sample = to_sample(row)
        if absent := sample.missing(self.criterion.needs):
            raise InputError(f"no {' and no '.join(absent)}, which {self.criterion.name} needs")
        return sample

    def _log(self, told: Sequence[Row], log_extra: Any = None, log_metric: Any = None, **_: Any) -> None:
        """To the trainer's table of completions and its metrics, where it has them."""
        if log_extra:
            for name in ("error", "std_error", "coverage", "method", "signature"):
                log_extra(f"{self.__name__} {name}", [row.get(name) for row in told])
        if log_metric:
            log_metric(f"{self.__name__}/unrated", fmean(row["reward"] is None for row in told))
            costs = [row.get("cost", 0.0) for row in told]
            if None not in costs:
                log_metric(f"{self.__name__}/dollars", sum(costs))


class GEvalReward(Reward):
    """Rates each completion: the reward is the rating, normalized to 0…1; a rubric's is the share of its points.

    Args:
        criterion, model, options: as for `GEval`.
        columns: which column of the data set is a field, as in `{"reference": "solution"}`, where it is not called so.

    Raises:
        InputError: an unknown criterion, field or option value.

    >>> GEvalReward("helpfulness", "openai/gpt-4o-mini").__name__
    'geval_helpfulness'
    """

    def __init__(
        self,
        criterion: str | Criterion | Mapping[str, Any],
        model: str | Judge | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.geval = GEval(criterion, model, **options)
        self.criterion = self.geval.criterion
        super().__init__(f"geval_{self.criterion.short_name}", columns)

    async def _rows(self, samples: Mapping[int, Sample]) -> dict[int, Row]:
        parts = [(place, part) for place, sample in samples.items() for part in judged(sample, self.criterion)]
        ratings: dict[int, list[Rating]] = {place: [] for place in samples}
        places = iter(parts)
        async for rating in self.geval.arate_many([part for _, part in parts]):
            ratings[next(places)[0]].append(rating)
        return {place: _of_ratings(each) for place, each in ratings.items()}


class GroupReward(Reward):
    """Compares the completions of one prompt with each other, in both orders: the reward is how it stands in its group.

    What stands together in one call is a group: a trainer must not part it among processes.

    Args:
        criterion, model, options: as for `Comparer`.
        method: `average`, the mean probability of being the better one, or `win-ratio`.
        select, budget: which pairs are compared, and how many calls that may take for a group, as in `Comparer.arank`.
        columns: as for `GEvalReward`.

    Raises:
        InputError: an unknown criterion, field, method or option value.

    >>> GroupReward("helpfulness", "openai/gpt-4o-mini").__name__
    'geval_group_helpfulness'
    """

    def __init__(
        self,
        criterion: str | Criterion,
        model: str | Judge | None = None,
        *,
        method: str = "average",
        select: str = "symmetric",
        budget: int | None = None,
        columns: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.comparer = Comparer(criterion, model, **options)
        self.criterion = self.comparer.criterion
        self._ranked = {"method": one_of("method", method, METHODS), "select": select, "budget": budget}
        super().__init__(f"geval_group_{self.criterion.short_name}", columns)

    async def _rows(self, samples: Mapping[int, Sample]) -> dict[int, Row]:
        groups: dict[tuple[str | None, ...], dict[int, Sample]] = {}
        for place, each in samples.items():
            groups.setdefault((each.source, each.reference, each.context), {})[place] = each
        found = await asyncio.gather(*(self._group(list(group.values())) for group in groups.values()))
        return {int(row["id"]): row for rows in found for row in rows}

    async def _group(self, samples: Sequence[Sample]) -> list[Row]:
        ranked = await self.comparer.arank(samples, **self._ranked)
        own: dict[str, list[Verdict]] = {each.id: [] for each in samples}
        for verdict in ranked.verdicts:
            own[verdict.first.id].append(verdict)
            own[verdict.second.id].append(verdict)
        return [{**row, "reward": row["score"], **_of_verdicts(own[row["id"]])} for row in ranked.rows(self.criterion)]


class AsyncReward:
    """A reward as a coroutine function, which TRL runs beside its others.

    >>> AsyncReward(GEvalReward("helpfulness", "openai/gpt-4o-mini")).__name__
    'geval_helpfulness'
    """

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.__name__ = reward.__name__

    async def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """A reward for each completion; see `Reward`."""
        return await self.reward.areward(prompts, completions, **columns)


def _of_verdicts(verdicts: Sequence[Verdict]) -> Row:
    """How the comparisons of one completion were read, and its half of what they cost."""
    cost = sum((verdict.usage for verdict in verdicts), Usage()).cost
    coverage = fmean(verdict.coverage for verdict in verdicts) if verdicts else None
    return {
        "coverage": coverage,
        "method": verdicts[0].method if verdicts else None,
        "cost": None if cost is None else cost / 2,
    }


def _of_ratings(ratings: Sequence[Rating]) -> Row:
    """One reward: the mean over the parts that the criterion judges, None where one of them has none."""
    scores = [rating.normalized for rating in ratings if rating.normalized is not None]
    first = ratings[0]
    return {
        "reward": fmean(scores) if len(scores) == len(ratings) else None,
        "error": next((rating.error for rating in ratings if rating.error), None),
        "std_error": first.std_error if len(ratings) == 1 else None,
        "coverage": fmean(rating.coverage for rating in ratings),
        "method": first.method,
        "signature": str(first.signature),
        "cost": sum((rating.usage for rating in ratings), Usage()).cost,
    }
