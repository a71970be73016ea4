"""The checks of an audit: what is asked of the judge, and which figures are taken from the answers.

Each check is a function of an inquiry and a criterion. It returns what it did, its statistics beside what the papers
found, and what to do about a finding. Papers: Stureborg et al. (2024, arXiv 2405.01724), Chiang & Lee (2023), Liusie et
al. (2024), Liu et al. (2023).
"""

from __future__ import annotations

from dataclasses import replace

from ...agreement.meta_eval import Item
from ...criteria import Criterion
from .. import scalars as coefficients
from ..asking import SAMPLES, Inquiry
from ..results import Check, Picture, Statistic
from .common import GAIN, TAU, TEMPERATURES, _gain, _over, _people, _scores, documents_of
from .inconsistency import _between_replies


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
        agreed = _over(coefficients.kendall, documents, scores, human)
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
