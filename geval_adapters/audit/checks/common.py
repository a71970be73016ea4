"""What several checks share: plans that rate samples in several ways, and Stureborg et al.'s figures and scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...agreement.judged import Item
from ...criteria import Criterion, Scale
from ...samples import Sample
from ..asking import LEAST, Answered, Asking, Plan, Question, Unmeasurable, item_of
from ..ratings import Ratings, Reliability
from ..results import Check

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


class Rated(NamedTuple):
    """Samples that were asked about, and the answers as items, by the names of the questions."""

    samples: Sequence[Sample]
    items: Mapping[str, Sequence[Item]]
    reliability: Reliability

    def ratings(self, scale: Scale) -> Ratings:
        """As shares of a scale, which all of them are on."""
        return Ratings.of(self.items, scale, self.reliability)


def rated(
    asking: Asking,
    criterion: Criterion,
    ask: Callable[[Sample], Mapping[str, Question]],
    conclude: Callable[[Rated], Check],
    samples: Sequence[Sample] | None = None,
) -> Plan:
    """A plan that asks some questions about each sample.

    Raises:
        Unmeasurable: there are too few samples.
    """
    chosen = asking.samples if samples is None else samples
    if len(chosen) < LEAST:
        raise Unmeasurable(f"needs {LEAST} samples, and there are {len(chosen)}")

    def done(answered: Answered) -> Check:
        subjects = [chosen[place] for place, _ in answered]
        names = list(answered[0][1])
        items = {
            name: [item_of(chosen[place], criterion, rows[name]) for place, rows in answered if "score" in rows[name]]
            for name in names
        }
        return conclude(Rated(subjects, items, asking.reliability))

    return Plan([ask(sample) for sample in chosen], done)


def tampered(sample: Sample, output: str) -> Sample:
    """The sample with another output."""
    return replace(sample, output=output)


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


def stureborg(row: str, criterion: Criterion) -> str:
    """What Stureborg et al. (2024) found for a criterion, or on average."""
    if row not in _STUREBORG:
        return ""
    place = _DIMENSIONS.index(criterion.short_name) if criterion.short_name in _DIMENSIONS else 4
    model = "GPT-3.5" if row == "without source" else "GPT-4"
    return f"{_STUREBORG[row][place]:.3f} ({model}, {(*_DIMENSIONS, 'mean')[place]})"
