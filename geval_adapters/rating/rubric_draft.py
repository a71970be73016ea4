"""A rubric that a judge drafts from a criterion and a few samples, for people to edit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..criteria import Criterion, Scale
from ..errors import InputError, JudgeError
from ..fence import shielded
from ..judge.base import Judge
from ..messages import Messages, user_message
from ..prompts import check, render, shipped_text, surroundings, wording
from ..rubrics import Rubric, looks_like_rubric
from ..samples import Sample

ROOM = 4096
"""Tokens that a draft may take."""

MOST_ITEMS = 100
"""Items that a draft may have: what people can be asked to read."""


async def drafted_rubric(judge: Judge, criterion: Criterion, samples: Sequence[Sample]) -> Criterion:
    """A criterion of its own, with the rubric that the judge writes for another one.

    Raises:
        InputError: the criterion is a rubric already, or a sample lacks a field that it needs.
        JudgeError: the judge cannot be asked, or its reply holds no rubric that can be used.
    """
    if criterion.by_items:
        raise InputError(f"criterion {criterion.name!r} is a rubric already")
    messages = draft_messages(criterion, samples)
    (reply, *_) = (await judge.ask(messages, temperature=0.0, max_tokens=ROOM)).replies
    try:
        if reply.error:
            raise InputError(reply.error)
        rubric = rubric_in(reply.text)
    except InputError as error:
        raise JudgeError(f"{judge.name} wrote no rubric that can be used: {error}; ask another --model") from None
    kept = {name: getattr(criterion, name) for name in ("definition", "task", "needs", "optional")}
    return Criterion(
        f"{criterion.short_name}_rubric",
        scale=Scale.of("0-1"),
        origin=f"drafted by {judge.name}",
        rubric=rubric,
        **kept,
    )


def draft_messages(criterion: Criterion, samples: Sequence[Sample]) -> Messages:
    """What a judge is told that drafts a rubric; of images, only their marks.

    Raises:
        InputError: a sample lacks a field that the criterion needs.
    """
    noun = str(wording("tasks")[criterion.task]["fields"]["output"])
    shown = []
    for sample in samples:
        check(criterion, sample)
        shown.append(shielded(surroundings(criterion, sample) | {noun: sample.output}).items())
    values = {"label": criterion.label, "definition": criterion.meaning, "samples": shown, "noun": noun}
    return [user_message(render(shipped_text("write_rubric.jinja"), values), (), ())]


def rubric_in(reply: str) -> Rubric:
    r"""The rubric in a reply: the last JSON list in it that has the shape of one.

    Raises:
        InputError: there is none, or it cannot be used.

    >>> rubric_in('Here:\n```json\n[{"criterion": "Is short.", "points": 2}]\n```').items[0].points
    2.0
    """
    found = [each for each in _lists(reply) if each and looks_like_rubric(each) and isinstance(each[0], dict)]
    if not found:
        raise InputError(f"there is no list of items in its reply {' '.join(reply.split())[:80]!r}")
    if len(found[-1]) > MOST_ITEMS:
        raise InputError(f"its list has {len(found[-1])} items, and may have {MOST_ITEMS}")
    rubric = Rubric.of(found[-1])
    items = [
        replace(item, criterion=_printable(item.criterion), tags=tuple(map(_printable, item.tags))) for item in rubric
    ]
    return Rubric(tuple(items))


def _lists(reply: str) -> Iterator[list[object]]:
    """The JSON lists in a text, one after the other; those inside of another one do not count."""
    decoder = json.JSONDecoder()
    place = reply.find("[")
    tries = 0
    while place >= 0 and tries < 1000:
        tries += 1
        try:
            value, place = decoder.raw_decode(reply, place)
            yield value
        except (ValueError, RecursionError):
            place += 1
        place = reply.find("[", place)


def _printable(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def as_yaml(criterion: Criterion, remarks: Sequence[str] = ()) -> str:
    """A criterion by rubric as a file that people edit and `GEval` takes, below some remarks."""
    import yaml

    usual = vars(Criterion("-", "-", criterion.scale))
    fields = ("name", "definition", "task", "needs", "optional", "judges", "cut_at", "origin")
    told = {name: value for name in fields if (value := getattr(criterion, name)) != usual[name]}
    data = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
    items = [
        {"criterion": item.criterion, "points": int(item.points) if item.points % 1 == 0 else item.points}
        | ({"tags": list(item.tags)} if item.tags else {})
        for item in criterion.rubric or ()
    ]
    head = "".join(f"# {_printable(remark)}\n" for remark in remarks)
    return head + yaml.safe_dump(data | {"rubric": items}, sort_keys=False, allow_unicode=True, width=110)
