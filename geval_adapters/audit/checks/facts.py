"""Whether a fluent output with a wrong fact is rated as well as the true one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...criteria import Criterion
from ...samples import Sample
from .. import measures
from ..asking import LEAST, Asking, Plan, Question, Unmeasurable
from ..ratings import MATTERS, RETEST, Ratings
from ..results import Check, Statistic
from .common import rated, tampered

TRUE, WRONG = "as it is", "facts changed"
DROP = "fall beyond a retest"


async def check(asking: Asking, criterion: Criterion) -> Plan:
    """Outputs, twice, and copies in which every number and name is another one."""
    if not {"source", "context"} & set(criterion.needs):
        raise Unmeasurable("the criterion is not about the source or the facts")
    plain = await asking.plain(criterion)
    changed = {sample.id: wrong for sample in asking.samples if (wrong := with_wrong_facts(sample)) is not None}
    samples = [sample for sample in asking.samples if sample.id in changed]
    if len(samples) < LEAST:
        raise Unmeasurable(f"needs {LEAST} outputs that share a number or a name with their source")

    def ask(sample: Sample) -> Mapping[str, Question]:
        return {
            TRUE: asking.rating(plain, sample),
            RETEST: asking.rating(plain, sample, draw=1),
            WRONG: asking.rating(plain, tampered(sample, changed[sample.id])),
        }

    return rated(asking, criterion, ask, lambda each: conclude(each.ratings(criterion.scale)), samples)


def conclude(ratings: Ratings) -> Check:
    """Ratings must fall where facts are wrong, beyond what a retest does, by a size that matters."""
    true, again, wrong = (ratings.scores[name] for name in (TRUE, RETEST, WRONG))
    # Either verdict rests on one end of the interval: each of them holds in 95 %.
    fall = ratings.over(
        lambda a, b, c, weights: measures.shift(c, (a + b) / 2, weights), true, again, wrong, confidence=0.9
    )
    return Check(
        did="Rated outputs once more, and copies as fluent in which the numbers and names that they share with their"
        " source were changed.",
        statistics=[Statistic(WRONG, DROP, fall, (MATTERS, 1.0))],
        fault="takes fluency for truth",
        advice="Do not trust this judge with facts: take a stronger one, or check claim by claim against the source.",
        notes=["Only outputs that share a number or a name with their source take part."],
    )


def with_wrong_facts(sample: Sample) -> str | None:
    """The output with each number and name that its source has, too, changed; None where it has none.

    A number becomes another one of as many digits, a name (a capitalised word inside a sentence) the next other name
    of the source.

    >>> source = "In 1998 the mayor, Ann Lee, met Bob Ray."
    >>> with_wrong_facts(Sample("On Monday Ann met the press in 1998.", source=source))
    'On Monday Lee met the press in 2009.'
    """
    source = " ".join(text for text in (sample.source, sample.context) if text)
    names = list(dict.fromkeys(re.findall(r"(?<=[a-z,;] )[A-Z][a-z]{2,}", source)))
    names += [name for name in re.findall(r"(?<=[A-Z][a-z]{2} )[A-Z][a-z]+", source) if name not in names]
    names = list(dict.fromkeys(names))
    numbers = set(re.findall(r"\d+", source))
    edits = 0

    def other(match: re.Match[str]) -> str:
        nonlocal edits
        word = str(match[0])
        if word in numbers:
            edits += 1
            return "".join(str((int(digit) + 1) % 10) for digit in word)
        if word in names and len(names) > 1:
            edits += 1
            return str(names[(names.index(word) + 1) % len(names)])
        return word

    changed = re.sub(r"\d+|[A-Z][a-z]+", other, sample.output)
    return changed if edits else None
