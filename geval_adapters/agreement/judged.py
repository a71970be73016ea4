"""What a judge said of many items, from a file of its ratings or of its replies."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ..criteria import FORMS, Criterion, Form, OffGrid
from ..errors import InputError, one_of
from ..reading.combined import combine
from ..reading.text import read_text
from ..rows import read_rows
from ..samples import Sample, numbered, sample_of
from ..signature import criterion_of, judge_of

log = logging.getLogger("geval_adapters")

USUAL_FORM: Form = "rate_explain"
"""How raw replies are read that come without a word on the form in which they were asked for."""


@dataclass(frozen=True)
class Item:
    """One rated item.

    Attributes:
        id, document, system: which it is.
        score, human: the judge's score, and people's mean; None where there is none.
        replies: the scores of the single replies that `score` was averaged from.
        output, reference: the rated text, and an expected one.
        annotators: the scores of single people, where they are known.
    """

    id: str
    document: str | None
    system: str | None
    score: float | None
    human: float | None
    replies: tuple[float | None, ...] = ()
    output: str | None = None
    reference: str | None = None
    annotators: tuple[float, ...] = ()


@dataclass(frozen=True)
class JudgedFile:
    """What one judge said.

    Attributes:
        file: where it stands, or what it is.
        items: by id.
        unread: replies that could not be read.
    """

    file: str
    items: Mapping[str, Item]
    unread: int


def read_judged(
    path: str | Path, criterion: Criterion, form: Form | None = None, off_grid: OffGrid = "keep"
) -> JudgedFile:
    """What a judge said, from ratings of `geval score` or from raw replies in the released G-Eval format.

    Raises:
        InputError: as from `read_judges`, and where several judges stand in the file.
    """
    judges = read_judges(path, criterion, form, off_grid)
    if len(judges) > 1:
        names = "; ".join(each.file for each in judges)
        raise InputError(
            f"{path}: holds ratings of {len(judges)} judges ({names}): take their panel's, NAME.jury.jsonl"
        )
    return judges[0]


def read_judges(
    path: str | Path, criterion: Criterion, form: Form | None = None, off_grid: OffGrid = "keep"
) -> list[JudgedFile]:
    """What each judge said that stands in a file, from ratings of `geval score` or raw replies in G-Eval's format.

    Raw replies are read in the form that their row names in a column `form`, else in the given one; where there is
    neither, in `USUAL_FORM`, and a warning says so.

    Raises:
        InputError: the file cannot be read, has neither scores nor replies, nothing about this criterion, or was made
            with another form than the given one.
    """
    guessed = False

    def form_of(row: Mapping[str, Any]) -> Form:
        nonlocal guessed
        own: Form | None = row.get("form") and one_of("form", row["form"], FORMS)
        if own and form and own != form:
            raise InputError(f"was made with form {own}, and is to be read as {form}")
        guessed |= not (own or form)
        return own or form or USUAL_FORM

    seen: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
    unread: Counter[_Key] = Counter()
    others: Counter[str] = Counter()

    def item(row: Mapping[str, Any], number: int) -> tuple[_Key, Item] | None:
        key = criterion_of(row.get("signature"), criterion.name), judge_of(row.get("signature"))
        if "all_responses" in row:
            sample = numbered(sample_of(row), number, seen[key])
            shown = [text for text in (sample.source, sample.context, sample.output) if text]
            readings = [
                read_text(reply, criterion.scale, form_of(row), criterion, off_grid=off_grid, shown=shown)
                for reply in row["all_responses"]
            ]
            unread[key] += sum(reading.score is None for reading in readings)
            score = combine(readings).score if readings else None
            return key, _item(sample, score, sample.human_score(criterion), tuple(each.score for each in readings))
        if "score" not in row:
            raise InputError("has neither a score nor all_responses")
        if row.get("criterion", criterion.name) != criterion.name:
            others[str(row["criterion"])] += 1
            return None
        identity = str(row.get("id", number))
        seen[key][identity] += 1
        if seen[key][identity] > 1:
            raise InputError(f"the id {identity!r} stands here a second time")
        unread[key] += int(row.get("n_failed") or 0)
        place = (identity, row.get("doc_id"), row.get("system_id"))
        texts = (row.get("output"), row.get("reference"))
        return key, Item(*place, row["score"], row.get("human"), replies_of(row), *texts)

    def items(row: Mapping[str, Any], number: int) -> list[tuple[_Key, Item] | None]:
        several = row["ratings"] if "ratings" in row and "score" not in row else [{}]  # a log of Inspect's has several
        return [item({**row, **each}, number) for each in several]

    by_key: defaultdict[_Key, dict[str, Item]] = defaultdict(dict)
    for who, each in filter(None, (each for group in read_rows(path, items) for each in group)):
        by_key[who][each.id] = each
    if not by_key:
        raise InputError(
            f"{path}: holds no ratings of {criterion.name!r}{', but of ' * bool(others)}{', '.join(others)}"
        )
    if guessed:
        log.warning("%s: says nowhere in which form its replies were asked for; read as %s", path, USUAL_FORM)
    keys = list(dict.fromkeys(name for name, _ in by_key))
    chosen = criterion.key if criterion.key in keys else keys[0]
    if len(keys) > 1 and chosen != criterion.key:
        raise InputError(
            f"{path}: holds ratings of {len(keys)} criteria of that name, {', '.join(keys)}, none of which is"
            f" {criterion.key}: name the YAML file of one"
        )
    own = {who: items for who, items in by_key.items() if who[0] == chosen}
    if left := sum(map(len, by_key.values())) - sum(map(len, own.values())):
        log.warning("%s: %d ratings by another criterion of that name than %s are left out", path, left, chosen)
    several = len(own) > 1
    return [JudgedFile(who[1] if several else str(path), items, unread[who]) for who, items in sorted(own.items())]


_Key = tuple[str, str]
"""The criterion's name with its hash, and the judge's."""


def replies_of(row: Mapping[str, Any]) -> tuple[float | None, ...]:
    """The scores of the single replies that a row of `geval score` was averaged from; empty where it was not.

    >>> replies_of({"method": "samples", "distribution": {"2": 0.5, "4": 0.5}, "n_valid": 2, "n_failed": 1})
    (2.0, 4.0, None)
    """
    if row.get("method") != "samples":
        return ()
    read = [float(score) for score, p in row["distribution"].items() for _ in range(round(p * row["n_valid"]))]
    return (*read, *[None] * row["n_failed"])


def _item(sample: Sample, score: float | None, human: float | None, replies: tuple[float | None, ...]) -> Item:
    place = (sample.id, sample.doc_id, sample.system_id)
    return Item(*place, score, human, replies, sample.output, sample.reference)


def average(files: Sequence[JudgedFile]) -> JudgedFile:
    """The judges' mean score, for the items that all of them have and scored (Chiang & Lee 2023, §3.3)."""
    shared = [key for key in files[0].items if all(key in judged.items for judged in files)]
    items = {}
    for key in shared:
        scores = [judged.items[key].score for judged in files]
        given = [score for score in scores if score is not None]
        items[key] = replace(files[0].items[key], score=fmean(given) if len(given) == len(scores) else None, replies=())
    return JudgedFile(f"average of {len(files)} judges", items, sum(judged.unread for judged in files))
