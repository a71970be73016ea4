"""The judge behind a model string: a LiteLLM model, an embedded one, or the deployments of a router.

It knows two routes to a provider (`routes`); both get the same request and return the same response, so all that
follows (retries, limits, what a model turns out not to take, usage and cost) is written once.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..errors import JudgeError
from ..messages import count_images, text_of
from . import local
from .base import Answer, Judge, Reply, Usage, log
from .cache import ReplyCache
from .direct import DirectRoute
from .faults import UNREACHABLE, Access, Fault, pause_after
from .litellm_route import LiteLLMRoute
from .loops import PerLoop
from .marks import marked
from .options import sendable_options
from .pace import Budget, Pace
from .parameters import TOP_LOGPROBS, Parameters, refused_parameter
from .prices import cost_of, facts, sees
from .responses import Counts, Response, counts_of, replies_of, without_echoes
from .router import read_router
from .secrets import keep_secrets_in, redact, without_login

PATIENCE = 600.0
"""Seconds that a request waits in all."""
IMAGE_TOKENS = 1500
"""Tokens that an image is taken for, before a reply tells."""
LONG = 30.0
"""A wait of so many seconds is told."""


class LiteLLMJudge(Judge):
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
        options: further parameters for each request (`reasoning_effort`, `top_p`, `extra_body`); part of signatures.
        cache: a folder in which replies are kept for later runs, or a `ReplyCache`.

    Attributes:
        parameters: which optional parameters the model takes.
        budget: what was sent and spent, and may be.
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
        options: Mapping[str, Any] | None = None,
        cache: str | Path | ReplyCache | None = None,
    ) -> None:
        self._router = read_router(router, model) if router else None
        self.name = self._router.name if self._router else model or local.default_model()
        self.options = sendable_options(options or {})
        keep_secrets_in(dict(self.options))
        self._cache = cache if isinstance(cache, ReplyCache) else ReplyCache(cache) if cache else None
        self.timeout = timeout
        self.retries = retries
        self.concurrency = min(concurrency, local.SLOTS) if self._provider == "local" else concurrency
        self.rpm, self.tpm = rpm, tpm
        self.budget = Budget(max_requests, max_cost)
        self._given = (api_base, api_key)
        self._direct = direct
        self.parameters = Parameters(self.name, n=local.SLOTS if self._provider == "local" else 128)
        self.faults: Counter[str] = Counter()
        self._access = Access()
        self._is_ready = False
        self._tokens_per_byte = 0.3  # an estimate on the safe side; replies tell better
        self._making = PerLoop(asyncio.Lock)
        self._paces = PerLoop(self._new_pace)
        claude = "claude" in self.name and not self._goes_direct
        self.caches_what_is_marked = claude and bool(facts(self.name).get("supports_prompt_caching"))
        if max_cost is not None and self.price(1, 0, 0, 1) is None:
            raise JudgeError(f"{self.name}: its price is not known, so max_cost cannot be kept; use max_requests")

    @property
    def _goes_direct(self) -> bool:
        return self._direct and self._provider in ("local", "hosted_vllm", "openai")

    @property
    def _provider(self) -> str:
        return self.name.partition("/")[0]

    @property
    def _model(self) -> str:
        return self.name.partition("/")[2]

    @cached_property
    def _route(self) -> DirectRoute | LiteLLMRoute:
        base, key = self._given
        model = self._model
        if self._provider == "local":
            base, key = local.serve(model)
            model = "local"
        if self._goes_direct:
            return DirectRoute(self.name, model, base, key)
        if self._router:
            route = LiteLLMRoute(self._router.models, router=self._router)
        else:
            route = LiteLLMRoute([f"openai/{model}" if self._provider == "local" else self.name], base, key)
        self.parameters.refuse(route.undeclared)
        return route

    async def _ready(self) -> None:
        """Make the route, in a thread: importing LiteLLM or starting a server takes seconds."""
        if not self._is_ready:
            async with self._making.here():
                if not self._is_ready:
                    await asyncio.to_thread(lambda: self._route)
                    self._is_ready = True

    @cached_property
    def _continues(self) -> bool:
        """Whether the model goes on with an answer that is begun for it."""
        return self._provider in ("local", "hosted_vllm") or bool(facts(self.name).get("supports_assistant_prefill"))

    def sees(self) -> bool | None:
        """Whether it can be shown images; no embedded model can, and of a router's, all must."""
        return False if self._provider == "local" else sees(*(self._router.models if self._router else [self.name]))

    async def takes(self, parameter: str) -> bool:
        """Whether an optional parameter is believed to be taken, as far as that is known."""
        if not self._goes_direct:
            await self._ready()  # LiteLLM knows what the provider declares
        return self.parameters.takes(parameter)

    async def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        n: int = 1,
        temperature: float | None = None,
        max_tokens: int | None = None,
        logprobs: bool = False,
        stop: str | None = None,
        start: str = "",
        shared: int = 0,
        about: str = "",
        now: bool = False,
        schema: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return `n` replies: in one request where the provider can, else in as many as it takes.

        `shared` characters at the beginning of the last message are marked for caches that need that.
        """

        def ask(n: int) -> Awaitable[Answer]:
            return self._ask(messages, n, temperature, max_tokens, logprobs, stop, start, shared, schema)

        if self._cache is None:
            return await ask(n)
        names = [f"{self._provider.upper()}_{name}" for name in ("API_BASE", "BASE_URL")]
        bases = [each and without_login(each) for each in (self._given[0], *map(os.environ.get, names))]
        request = {
            "model": self.name, "base": bases, "messages": list(messages),
            "temperature": temperature, "max_tokens": max_tokens, "logprobs": logprobs, "stop": stop, "start": start,
            "options": dict(self.options), "continues": self._continues,
            **({"schema": schema} if schema else {}),
        }  # fmt: skip
        return await self._cache.answer(request, n, ask)

    async def _ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        n: int,
        temperature: float | None,
        max_tokens: int | None,
        logprobs: bool,
        stop: str | None,
        start: str,
        shared: int,
        schema: Mapping[str, Any] | None,
    ) -> Answer:
        await self._ready()
        most = self.parameters.most["n"]
        if self._provider == "local":
            messages = await asyncio.to_thread(local.inert_messages, messages, self._model)
        body: dict[str, Any] = {**self.options, "messages": list(messages)}
        if self.caches_what_is_marked:
            body["messages"][-1] = marked(messages[-1], shared, again=n > most)
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
        if schema:
            form = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if n == 1:
            return await self._ask_once(body, 1)
        answer, models = Answer([], Usage()), dict[str, None]()
        while (left := n - len(answer.replies)) > 0:
            share = min(left, most)
            alone = not answer.replies and (share > 1 or self.caches_what_is_marked)  # the others profit from its reply
            asked = [self._ask_once(body, share) for _ in range(1 if alone else left // share)]
            for each in [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked):
                answer = Answer(
                    answer.replies + each.replies, answer.usage + each.usage, None, answer.without | each.without
                )
                models |= {each.model: None} if each.model else {}
                most = min(most, len(each.replies))
        return Answer(answer.replies[:n], answer.usage, "+".join(sorted(models)) or None, answer.without)

    async def _ask_once(self, body: dict[str, Any], n: int) -> Answer:
        """As many of `n` replies as one request brings, at least one."""
        try:
            (replies, usage, answered), without = await self.parameters.send(body | {"n": n}, self._request)
        except Fault as fault:
            unseen = count_images(body["messages"]) and fault.about_request
            why = f"{fault.message} (the request holds images: does {self.name} see them?)" if unseen else fault.message
            return Answer([Reply("", error=why)] * n, Usage(requests=1, cost=None if fault.may_cost else 0.0))
        return Answer(replies[:n], usage, answered, without)

    async def _request(self, body: dict[str, Any]) -> Response:
        """One response, after as many tries as are allowed. Raises Fault or JudgeError."""
        attempt = 0
        patience = PATIENCE
        while True:
            try:
                return await self._send(body)
            except Fault as fault:
                fault.message = redact(fault.message)
                if refused_parameter(fault, body):
                    raise
                self.faults[fault.kind] += 1
                if self._access.ends(fault):
                    raise JudgeError(f"{self.name}: {fault.message}{self._route.hint(fault.status)}") from None
                pause = pause_after(fault, attempt)
                tired = pause > patience or (fault.status != 429 and attempt >= self.retries)
                if pause > patience and fault.retry_after:
                    fault.message += f" (asks to wait {fault.retry_after:.0f} s)"
                if not fault.passes or tired:
                    if fault.status == UNREACHABLE and not self._access.ever:
                        raise JudgeError(f"{self.name}: {fault.message}") from None
                    raise
                if pause >= LONG:
                    log.warning("%s asks to wait: the next try is in %.0f s (%s)", self.name, pause, fault.message[:80])
                patience -= pause
                attempt += 1
            await asyncio.sleep(pause)

    async def _send(self, body: dict[str, Any]) -> Response:
        """One request, when its turn comes. Raises Fault, JudgeError or StopError."""
        pace = self._paces.here()
        size, tokens, reserved = self._estimate(body)
        await pace.enter(tokens)
        began = time.monotonic()
        leave = pace.release
        try:
            self.budget.reserve(reserved)
            spent: float | None = None
            try:
                response = await self._answer(body)
                counts = counts_of(response)
                answered = redact(str(response.get("model") or "unknown"))[:200] if self._router else None
                usage = self._usage(counts, answered or "")
                spent = usage.cost
                replies = [without_echoes(reply, self._route.secrets) for reply in replies_of(response)]
            except Fault as fault:
                spent = spent if fault.may_cost else 0.0
                raise
            finally:
                self.budget.settle(reserved, spent)
            self._access.granted()
            if counts and size and counts.prompt:
                self._tokens_per_byte += 0.1 * (counts.prompt / size - self._tokens_per_byte)
            kind = (body.get("max_tokens"), body.get("n"))
            extra = counts.prompt + counts.completion - tokens if counts else 0.0
            leave = partial(pace.leave, began, kind, extra)
            return Response(replies, usage, answered)
        except Fault as fault:
            if fault.too_many:
                leave = partial(pace.leave_refused, began)
            raise
        finally:
            leave()

    async def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._route.send(body, self.timeout)
        except (TimeoutError, asyncio.TimeoutError):
            raise Fault(408, f"no answer within {self.timeout:g} s", kind="no answer in time") from None

    def _estimate(self, body: Mapping[str, Any]) -> tuple[int, float, float]:
        """Bytes of a request's prompt; the tokens it may take, and the dollars, where these are limited."""
        if self.tpm is None and self.budget.max_cost is None:
            return 0, 0.0, 0.0
        prompt, completion = self._tokens(body)
        cost = self.price(int(prompt), 0, 0, completion) or 0.0
        return round(prompt / self._tokens_per_byte), prompt + completion, cost

    def _tokens(self, body: Mapping[str, Any]) -> tuple[float, int]:
        """Tokens of a request's prompt, about, and of its replies at the most."""
        size = sum(len(text_of(message).encode()) for message in body["messages"])
        room = body.get("max_tokens") or body.get("max_completion_tokens") or 1024
        images = count_images(body["messages"]) * IMAGE_TOKENS
        return size * self._tokens_per_byte + images, body.get("n", 1) * room

    def _new_pace(self) -> Pace:
        return Pace(self.concurrency, self.rpm, self.tpm)

    def _usage(self, counts: Counts | None, answered: str) -> Usage:
        if counts is None:
            return Usage(requests=1, cost=0.0 if self._provider == "local" else None)
        cost = self.price(counts.prompt, counts.cached, counts.written, counts.completion, answered)
        return Usage(counts.prompt, counts.cached, counts.completion, 1, cost)

    @property
    def asks_in_batches(self) -> bool:
        """Whether what is asked now costs the price of batches."""
        return False

    def price(
        self,
        prompt: int,
        cached: int,
        written: int,
        completion: int,
        answered: str = "",
        batch: bool | None = None,
    ) -> float | None:
        """Dollars for so many tokens; before a router has chosen, by the dearest of its models.

        `batch` says at which price, the ordinary one or that of batches; None is as this judge asks.
        """
        if self._provider == "local":
            return 0.0
        in_batch = self.asks_in_batches if batch is None else batch
        names = [self.name]
        if self._router:
            names = [answered] if facts(answered) else self._router.models
        costs = [cost_of(name, prompt, cached, completion, written, in_batch) for name in names]
        return None if None in costs else max(cost for cost in costs if cost is not None)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without what belongs to this one: the key, servers, connections, event loops."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("_route", "_continues", "_paces")}
        state["_is_ready"] = False
        base = self._given[0]
        router = self._router and self._router.without_keys()
        return state | {"_given": (base and without_login(base), None), "_router": router}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._paces = PerLoop(self._new_pace)
