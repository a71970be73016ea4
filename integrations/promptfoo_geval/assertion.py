"""What promptfoo calls: an output and its context in, what promptfoo calls a grading result out.

An assertion that raises is a failure to promptfoo, with the error's text as its reason, and stays one where it is
turned round (`not-python`), while a result with `pass: false` becomes a pass there. So what is not rated raises.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from geval_adapters import GEval, GEvalError, InputError, Rating, Sample, Usage
from geval_adapters.judge import run
from geval_adapters.report import plain_lines
from geval_adapters.samples import ALIASES, to_sample

FIELDS = ("source", "reference", "context", "rubric")
"""Fields of a sample that are taken from the test's variables, by the names that the core knows."""

OWN = ("criterion", "at_least", "fields")
"""What an assertion's `config` may hold besides keywords of `GEval`."""

Result = dict[str, Any]


def get_assert(output: Any, context: Mapping[str, Any]) -> Result:
    """Rate an output, as the assertion's `config` says.

    Args:
        output: what the provider gave: text, or what it became when it was parsed as JSON.
        context: promptfoo's `vars`, `prompt` and `config`. The config names the `criterion` (or several), a bar on its
            scale (`at_least`), which variable is a field where it is not called so (`fields: {source: article}`), and
            keywords of `GEval` (`model`, `n`, `explain`, `cache` …).

    Returns:
        `pass`: whether each rating reaches `at_least`; `score`: the mean of the ratings, from 0 to 1; `reason`,
        `namedScores`, `componentResults` for several criteria, `tokensUsed`, and in `metadata` the ratings.

    Raises:
        InputError: the config cannot be used, or a field is missing that the criterion needs.
        JudgeError: the judge cannot be asked at all.
        GEvalError: an output was not rated; the text says why.
    """
    config = dict(context.get("config") or {})
    names = config.pop("criterion", None)
    at_least, fields = config.pop("at_least", None), config.pop("fields", {})
    if not names:
        raise InputError("no criterion: say by what in the assertion's config, as in criterion: coherence")
    gevals = _gevals(json.dumps([[names] if isinstance(names, str | Mapping) else names, config], sort_keys=True))
    sample = _sample(output, context, fields)
    ratings = run(_rated(gevals, sample))
    if unrated := [f"{rating.criterion} was not rated: {rating.error}" for rating in ratings if rating.error]:
        raise GEvalError("; ".join(unrated))
    results = [_result(rating, at_least) for rating in ratings]
    return results[0] if len(results) == 1 else _together(results)


async def _rated(gevals: Sequence[GEval], sample: Sample) -> list[Rating]:
    return await asyncio.gather(*(geval.arate(sample) for geval in gevals))


@cache
def _gevals(told: str) -> list[GEval]:
    """The judges that a config describes, kept for the next call of this process."""
    criteria, options = json.loads(told)
    try:
        return [GEval(criterion, **options) for criterion in criteria]
    except TypeError as error:
        raise InputError(f"the assertion's config: {error}; beside keywords of GEval it has {', '.join(OWN)}") from None


def _sample(output: Any, context: Mapping[str, Any], fields: Mapping[str, str]) -> Sample:
    if unknown := set(fields) - set(FIELDS):
        raise InputError(f"fields: unknown {', '.join(sorted(unknown))}; known: {', '.join(FIELDS)}")
    given = context.get("vars") or {}
    row: dict[str, Any] = {
        "output": output if isinstance(output, str | list) else json.dumps(output, ensure_ascii=False)
    }
    for field in FIELDS:
        names = (fields[field],) if field in fields else ALIASES[field]
        row[field] = next((given[name] for name in names if given.get(name) is not None), None)
    if row["source"] is None:
        row["source"] = context.get("prompt")
    return to_sample(row)


def _result(rating: Rating, at_least: float | None) -> Result:
    passed = at_least is None or (rating.score is not None and rating.score >= at_least)
    bar = "" if at_least is None else f", {'at least' if passed else 'under'} {at_least:g}"
    usage = rating.usage
    return {
        "pass": passed,
        "score": rating.normalized,
        "reason": f"{rating}{bar}" + (f": {plain_lines(rating.rationale)}" if rating.rationale else ""),
        "namedScores": {rating.criterion: rating.normalized},
        "tokensUsed": _tokens(usage),
        "metadata": {"geval": {rating.criterion: rating.to_dict()}},
    }


def _together(results: Sequence[Result]) -> Result:
    """Several criteria: all must pass, and the score is their mean."""
    tokens: dict[str, int] = {}
    for result in results:
        tokens = {name: tokens.get(name, 0) + count for name, count in result["tokensUsed"].items()}
    return {
        "pass": all(result["pass"] for result in results),
        "score": fmean(result["score"] for result in results),
        "reason": "\n".join(result["reason"] for result in results),
        "namedScores": {name: score for result in results for name, score in result["namedScores"].items()},
        "componentResults": list(results),
        "tokensUsed": tokens,
        "metadata": {"geval": {name: row for each in results for name, row in each["metadata"]["geval"].items()}},
    }


def _tokens(usage: Usage) -> dict[str, int]:
    total = usage.prompt_tokens + usage.completion_tokens
    cached, requests = usage.cached_tokens, usage.requests
    counts = {"total": total, "prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
    return {**counts, "cached": cached, "numRequests": requests}
