"""A judge whose replies are shared: what one way of rating has asked, another need not ask again."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..judge.base import Answer, Judge, Reply, Took, Usage
from ..judge.client import LiteLLMJudge


class _Paid(NamedTuple):
    """A reply, and what it took; None where that is not known."""

    reply: Reply
    took: Took | None
    model: str | None
    without: frozenset[str]


class Shared:
    """The replies that one judge has given, by request, for all who ask through `Sharing`."""

    def __init__(self) -> None:
        self.replies: defaultdict[str, list[_Paid]] = defaultdict(list)
        self.several_at_once = False


class Sharing(Judge):
    """A judge for one way of rating: replies that another way has asked for are taken from there.

    The third reply to a request is the third for everybody, so that five samples are the first five of twenty; one who
    asks the same twice gets two replies. `Answer.usage` is what it *would* have cost alone; what was really sent is in
    the inner judge's budget.

    Args:
        inner: who is asked for what nobody has asked yet.
        shared: what has been asked.
    """

    def __init__(self, inner: LiteLLMJudge, shared: Shared) -> None:
        self.inner = inner
        self.shared = shared
        self.name = inner.name
        self.concurrency = inner.concurrency
        self.options = inner.options
        self.caches_what_is_marked = inner.caches_what_is_marked
        self._taken: Counter[str] = Counter()

    async def takes(self, parameter: str) -> bool:
        """As the inner judge has it."""
        return await self.inner.takes(parameter)

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        n: int = 1,
        shared: int = 0,
        about: str = "",
        now: bool = False,
        **parameters: Any,
    ) -> Answer:
        """The replies that are there, and the others from the inner judge; failed ones are asked for anew next time."""
        key = json.dumps([list(messages), about, parameters], sort_keys=True, default=str)
        first = self._taken[key]
        self._taken[key] += n
        known = self.shared.replies[key]
        missing = max(0, first + n - len(known))
        failed: list[Reply] = []
        spent = Usage()
        if missing:
            answer = await self.inner.ask(messages, n=missing, shared=shared, about=about, now=now, **parameters)
            told, new = answer.usage, [reply for reply in answer.replies if reply.took is None]
            took = Took.of(told, len(new)) if told.from_cache < len(answer.replies) else None
            for reply in answer.replies:
                if reply.error is None:
                    paid = _Paid(reply, reply.took or took, answer.model, answer.without)
                    self.shared.several_at_once |= paid.took is not None and paid.took.shared
                    known.append(paid)
                else:
                    failed.append(reply)
            spent = told if len(failed) == len(answer.replies) else spent
        taken = known[first : first + n]
        models = dict.fromkeys(each.model for each in taken if each.model)
        without = frozenset[str]().union(*(each.without for each in taken))
        return Answer(
            [each.reply for each in taken] + failed[: n - len(taken)],
            self._alone(taken) + spent,
            "+".join(models) or None,
            without,
        )

    def _alone(self, taken: Sequence[_Paid]) -> Usage:
        """What these replies would have cost, had nobody else asked for them."""
        if not taken:
            return Usage()
        at_once = self.inner.parameters.most["n"] if self.shared.several_at_once else 1
        requests = math.ceil(len(taken) / at_once)
        took = [each.took for each in taken if each.took]
        if len(took) < len(taken):
            return Usage(requests=requests, cost=None)
        prompt, cached = requests * took[0].prompt, requests * took[0].cached
        completion = sum(each.completion for each in took)
        cost = self.inner.price(prompt, cached, 0, completion, batch=False)
        return Usage(prompt, cached, completion, requests, cost)
