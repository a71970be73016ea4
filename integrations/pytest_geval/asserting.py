"""What the fixture `geval` is: assertions on ratings, whose messages show what the judge said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from geval_adapters import GEvalError, InputError, Rating, Sample, Scale, Usage
from geval_adapters.judge import NoReplyError
from geval_adapters.judged import judged
from geval_adapters.samples import SampleLike, to_sample

from . import words
from .judging import Judging

FIELDS = frozenset(Sample.__dataclass_fields__) - {"output"}
"""Keywords that belong to what is judged; all others say how."""


class RatingError(GEvalError):
    """No rating came of it: an error of the test, neither a pass nor a low score.

    Attributes:
        ratings: those without a score.
    """

    def __init__(self, said: str, ratings: Iterable[Rating] = ()) -> None:
        super().__init__(said)
        self.ratings = tuple(ratings)


class Asserting:
    """Ratings and assertions of one test.

    Args:
        settings: keywords of `GEval` for all ratings, `model` and `criterion` among them.
        cache: a folder in which the judge's replies are kept for later runs.
        offline: whether only those are taken.
        memory: the ways of rating that the tests of this process share.
        tell: is told of each rating and each assertion, as JSON has it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        cache: Path | None,
        offline: bool,
        memory: dict[str, Judging],
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        self._settings = {"explain": True, **settings}
        self._cache, self._offline, self._memory, self._tell = cache, offline, memory, tell

    def rate(self, output: SampleLike, **more: Any) -> Rating:
        """Rate an output.

        Args:
            output: a text, a `Sample`, or a row with `output` and what belongs to it.
            more: what belongs to it (`source`, `reference`, `context`), `criterion`, and other keywords of `GEval`.

        Raises:
            RatingError: there is no score; its text says why.
            InputError: an unknown criterion or option, or a field is missing that the criterion needs.
            JudgeError: the judge cannot be asked at all; offline, a reply is not there.
        """
        __tracebackhide__ = True
        return self._assert([output], None, more, words.record, words.under)[0]

    def assert_at_least(self, output: SampleLike, least: float, **more: Any) -> Rating:
        """Rate an output, and fail where its score, on the criterion's scale, is under `least`; see `rate`.

        Raises:
            AssertionError: it is under `least`; the text shows the rating and what was judged.
            RatingError, InputError, JudgeError: as in `rate`; an InputError too, where `least` is not on the scale.
        """
        __tracebackhide__ = True
        return self._assert([output], least, more, words.record, words.under)[0]

    def assert_mean_at_least(self, outputs: Iterable[SampleLike], least: float, **more: Any) -> list[Rating]:
        """Rate several outputs, and fail where the mean of their scores is under `least`; see `rate`.

        The mean's interval resamples documents: outputs with one `doc_id`, or one source, are one document.

        Raises:
            AssertionError: it is under `least`; the text shows the mean with its interval, and the lowest ratings.
            RatingError: there are no outputs, or one was not rated: there is no mean of what is left.
            InputError, JudgeError: as in `assert_at_least`.
        """
        __tracebackhide__ = True
        return self._assert(list(outputs), least, more, words.mean_record, words.mean_under)

    def _assert(
        self,
        outputs: Sequence[SampleLike],
        least: float | None,
        more: Mapping[str, Any],
        record: Callable[[Sequence[Rating], Scale], dict[str, Any]],
        under: Callable[[Sequence[Rating], dict[str, Any], Scale], str],
    ) -> list[Rating]:
        __tracebackhide__ = True
        try:
            ratings, spent, scale = self._rated(outputs, least, more, alone=record is words.record)
        except NoReplyError as error:
            raise NoReplyError(f"{error}; {words.FILL}") from None
        except GEvalError as error:  # its text says all; what lies under it would hide that
            raise error.with_traceback(None) from None
        told = {**record(ratings, scale), "at_least": least, "usage": vars(spent)}
        self._tell(told)
        if unrated := [rating for rating in ratings if rating.score is None]:
            raise RatingError(words.unrated(unrated, len(ratings)), unrated)
        if least is not None and told["score"] < least:
            raise AssertionError(under(ratings, told, scale))
        return ratings

    def _rated(
        self, outputs: Sequence[SampleLike], least: float | None, more: Mapping[str, Any], alone: bool
    ) -> tuple[list[Rating], Usage, Scale]:
        """The ratings of some outputs, what they cost, and their scale; `alone` for an output that is one rating."""
        if not outputs:
            raise RatingError("there are no outputs to rate")
        about = {name: value for name, value in more.items() if name in FIELDS}
        judging = self._judging({name: value for name, value in more.items() if name not in FIELDS})
        criterion = judging.criterion
        if least is not None and not criterion.scale.low <= least <= criterion.scale.high:
            raise InputError(f"{least:g} is not on the scale of {criterion.name}, {criterion.scale}")
        samples = [part for each in outputs for part in judged(to_sample(each, **about), criterion)]
        if alone and len(samples) > 1:
            several = f"{criterion.name} makes {len(samples)} ratings of this sample"
            raise InputError(f"{several}: use assert_mean_at_least([…], …)")
        return *judging.rate(samples), criterion.scale

    def _judging(self, more: Mapping[str, Any]) -> Judging:
        settings = {**self._settings, **more}
        key = repr((sorted(settings.items()), self._cache, self._offline))
        if key not in self._memory:
            self._memory[key] = Judging(settings, self._cache, self._offline)
        return self._memory[key]
