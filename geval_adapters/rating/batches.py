"""Which samples share a request in a round, and how what a request cost is shared out among them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from heapq import heapify, heapreplace
from statistics import fmean
from typing import TypeVar

from ..judge.base import Usage

S = TypeVar("S")
T = TypeVar("T", bound=Hashable)


def batches(
    items: Sequence[T], source: Mapping[T, Hashable], scores: Mapping[T, float], size: int, rng: random.Random
) -> list[list[T]]:
    """Some items in batches at random; where their scores are known, with high and low ones in each.

    Items of one source go in blocks of half a batch at the most: their source is shown once for the block, and yet no
    batch is of one source alone, for what a judge makes of a batch as a whole would else be taken for the source's.
    Where every item has a source of its own, a block is an item. The items of a source are dealt to its blocks, and
    the blocks to the batches, in the order of their scores, so that each gets one of every stratum (the heterogeneous
    batches of BatchEval, Yuan et al. 2024).

    >>> scores = {name: float(score) for score, name in enumerate("abcdef")}
    >>> dealt = batches("abcdef", {name: name for name in "abcdef"}, scores, 2, random.Random(0))
    >>> all(min(batch) in "abc" and max(batch) in "def" for batch in dealt), len(dealt)
    (True, 3)
    """
    known = [scores[item] for item in items if item in scores]
    value = dict.fromkeys(items, fmean(known) if known else 0.0) | {item: scores[item] for item in scores}
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(source[item], []).append(item)
    most = max(1, size // 2) if len(groups) > 1 else size
    blocks: list[list[T]] = []
    for group in groups.values():
        hands: list[list[T]] = [[] for _ in range(-(-len(group) // most))]
        _deal([[item] for item in _ranked(group, value.__getitem__, rng)], hands, most, rng)
        blocks += hands
    ranked = _ranked(blocks, lambda block: fmean(value[item] for item in block), rng)
    count = -(-len(items) // size)
    made: list[list[T]] = [[] for _ in range(count)]
    while lacking := _deal(ranked, made, size, rng):
        count += -(-lacking // size)
        made = [[] for _ in range(count)]
    return [_in_order(batch, source, rng) for batch in made if batch]


def _ranked(things: Sequence[S], value: Callable[[S], float], rng: random.Random) -> list[S]:
    """In the order of their values, equal ones at random."""
    return sorted(rng.sample(things, len(things)), key=value)


def _deal(blocks: Iterable[Sequence[T]], hands: Sequence[list[T]], size: int, rng: random.Random) -> int:
    """Give each block to the hand that has least, at random among equals; how many items find no room."""
    least = [(len(hand), rng.random(), at) for at, hand in enumerate(hands)]
    heapify(least)
    lacking = 0
    for block in blocks:
        held, _, at = least[0]
        if held + len(block) > size:
            lacking += len(block)
        else:
            hands[at].extend(block)
            heapreplace(least, (held + len(block), rng.random(), at))
    return lacking


def _in_order(batch: Sequence[T], source: Mapping[T, Hashable], rng: random.Random) -> list[T]:
    """A batch in random order, those of one source beside each other."""
    place = {each: rng.random() for each in dict.fromkeys(source[item] for item in batch)}
    return sorted(rng.sample(batch, len(batch)), key=lambda item: place[source[item]])


def shared_out(usage: Usage, parts: int) -> list[Usage]:
    """What a request cost, in parts that add up to it: tokens in whole numbers, dollars to the last bit.

    >>> each = shared_out(Usage(prompt_tokens=10, requests=1, cost=0.1), 3)
    >>> [(part.prompt_tokens, part.requests) for part in each], sum(each, Usage()).cost
    ([(4, 1), (3, 0), (3, 0)], 0.1)
    """
    unit = math.ulp(usage.cost or 0.0)
    split = {each.name: _split(getattr(usage, each.name), parts) for each in fields(usage) if each.name != "cost"}
    costs = [None] * parts if usage.cost is None else [n * unit for n in _split(round(usage.cost / unit), parts)]
    return [Usage(**{name: values[at] for name, values in split.items()}, cost=costs[at]) for at in range(parts)]


def _split(total: int, parts: int) -> list[int]:
    whole, rest = divmod(total, parts)
    return [whole + (at < rest) for at in range(parts)]
