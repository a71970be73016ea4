"""What is told of ratings: as JSON has it for reports, and in the message of a test that failed."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from geval_adapters import Rating, Scale
from geval_adapters.report import mean_of, plain

FILL = "run once without --geval-offline, by the same judge and settings, and the replies are kept"

LOWEST = 3
"""How many of several ratings a message shows."""
WITH_IT = ("source", "reference", "context")


def record(ratings: Sequence[Rating], scale: Scale) -> dict[str, Any]:
    """A rating, and how sure it is: its bounds, and where samples were drawn, `t · std_error` (95 %) around them."""
    (rating,) = ratings
    low, high = rating.bounds
    if rating.std_error is not None:
        from scipy.special import stdtrit

        reach = float(stdtrit(rating.n_valid - 1, 0.975)) * rating.std_error
        low, high = max(scale.low, low - reach), min(scale.high, high + reach)
    kept = ("score", "normalized", "std_error", "coverage", "bounds", "method", "n_valid", "n_failed", "error")
    row = rating.to_dict()
    known = rating.score is not None and rating.method != "single"
    return {
        "criterion": rating.criterion,
        "n": 1,
        **{name: row[name] for name in kept},
        "low": low if known else None,
        "high": high if known else None,
        "distribution": row["distribution"],
        "signature": row["signature"],
        "sample": row["sample"],
    }


def mean_record(ratings: Sequence[Rating], scale: Scale) -> dict[str, Any]:
    """The mean of several ratings with its interval on the scale; None where one of them has no score."""
    unrated = [rating for rating in ratings if rating.score is None]
    mean = mean_of([] if unrated else [rating.to_dict() for rating in ratings])
    return {
        "criterion": ratings[0].criterion,
        "n": len(ratings),
        "score": mean.value,
        "low": None if mean.low is None else max(scale.low, mean.low),
        "high": None if mean.high is None else min(scale.high, mean.high),
        "interval": "not all were rated" if unrated else mean.method or mean.why_not,
        "not_rated": len(unrated),
        "error": unrated[0].error if unrated else None,
        "signature": " + ".join(dict.fromkeys(str(rating.signature) for rating in ratings)),
    }


def is_close(told: Mapping[str, Any]) -> bool:
    """Whether what was to be reached lies within the interval, so that another run may end otherwise."""
    least, low, high = told["at_least"], told["low"], told["high"]
    return None not in (least, low, high) and low < least <= high


def under(ratings: Sequence[Rating], told: dict[str, Any], scale: Scale) -> str:
    """Why a rating is not enough: the rating, how it was read, what the judge said, and what was judged."""
    (rating,) = ratings
    lines = [
        ("rating", f"{_figure(told)} on {scale}{_error_bar(told)}"),
        ("distribution", _distribution(rating)),
        ("method", f"{rating.method}, n {rating.n_valid + rating.n_failed}, coverage {rating.coverage:.2f}"),
        ("reason", plain(rating.rationale or "", 600)),
        ("judged", cut(rating.sample.output, 300)),
        *((name, cut(getattr(rating.sample, name) or "", 150)) for name in WITH_IT),
        ("signature", plain(str(rating.signature), 300)),
    ]
    return "\n".join([f"{_head(told)}", *_aligned(lines)])


def mean_under(ratings: Sequence[Rating], told: dict[str, Any], scale: Scale) -> str:
    """Why a mean is not enough: the mean with its interval, and the lowest ratings."""
    lowest = sorted(ratings, key=lambda rating: rating.score or 0.0)[:LOWEST]
    lines = [
        ("mean", f"{_figure(told)} of {len(ratings)} on {scale}{_error_bar(told)}"),
        ("interval", told["interval"]),
        *(
            (f"lowest {place}", f"{rating.score:.3g}: {cut(rating.sample.output, 150)}{_because(rating)}")
            for place, rating in enumerate(lowest, start=1)
        ),
        ("signature", plain(told["signature"], 300)),
    ]
    return "\n".join([_head(told), *_aligned(lines)])


def unrated(ratings: Sequence[Rating], asked: int) -> str:
    """Why there is no score."""
    first = ratings[0]
    several = f" ({len(ratings)} of {asked} outputs)" if asked > 1 else ""
    replies = [("reply", plain(reply, 300)) for reply, _ in first.unread[:1]]
    lines = [("reason", plain(first.error or "", 600)), *replies, ("judged", cut(first.sample.output, 300))]
    return "\n".join([f"{plain(first.criterion)} was not rated{several}", *_aligned(lines)])


def cut(text: str, limit: int) -> str:
    """A text's beginning on one line, without control characters, and how long it is where it is cut."""
    shown = plain(text, limit)
    return f"{shown} ({len(text):,} characters)" if len(text) > limit else shown


def _head(told: dict[str, Any]) -> str:
    return f"{plain(told['criterion'])}: {_figure(told)} is under {told['at_least']:g}"


def _figure(told: dict[str, Any]) -> str:
    return f"{told['score']:.3g}" + (f" ± {told['std_error']:.2g}" if told.get("std_error") is not None else "")


def _error_bar(told: dict[str, Any]) -> str:
    if told["low"] is None:
        return ", no error bar" + (": one reply was read" if told["n"] == 1 else "")
    close = f"; {told['at_least']:g} lies within that" if is_close(told) else ""
    return f", {told['low']:.3g} to {told['high']:.3g}{close}"


def _because(rating: Rating) -> str:
    return f" ({plain(rating.rationale)})" if rating.rationale else ""


def _distribution(rating: Rating) -> str:
    likely = sorted(rating.distribution.items(), key=lambda each: -each[1])[:5]
    return ", ".join(f"{score:g}: {share:.0%}" for score, share in sorted(likely) if share >= 0.005)


def _aligned(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Names and what they name, as wide as the terminal; those that name nothing are left out."""
    width = max(40, min(shutil.get_terminal_size().columns, 120) - len("E   "))
    room = max(len(name) for name, _ in lines) + 2
    for name, text in lines:
        if text:
            begin = f"{name:<{room}}"
            yield textwrap.fill(text, width, initial_indent=begin, subsequent_indent=" " * room, break_long_words=False)
