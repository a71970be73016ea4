"""What a run would ask for and cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..judge.batch_apis import has_batches
from ..judge.client import LiteLLMJudge
from ..judge.loops import run
from ..judge.prices import count_tokens, declares, facts, knows_batch_price
from ..judge.sampling import REPLIES
from ..messages import common_prefix, count_images, text_of
from ..rating import GEval
from ..report import dollars, table
from ..samples import Sample

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LEAST_CACHED = 1024
"""Tokens that must be shared before OpenAI's cache serves them, and those of most others."""


@dataclass(frozen=True)
class Estimate:
    """What rating some samples by one criterion would take.

    Attributes:
        judge: who is asked.
        ratings: how many.
        requests: how many, if none has to be sent again.
        prompt_tokens: of all requests, as LiteLLM's tokenizer for the model counts them.
        cacheable_tokens: those of them that the request before has at its beginning too, so that a prefix cache can
            serve them; a provider's does so only from `LEAST_CACHED` tokens on, an engine's of one's own always.
        completion_tokens: the most that the answers may take, what a model thinks before them (`thinks`) not counted:
            nothing limits that, so that tokens and dollars are no ceiling then.
        cost, cost_cached: dollars at the most, without and with such a cache; None where the price is not known.
        cost_batch: dollars at the most with `--batch`; None where the provider has no batches or the price is not
            known. Where LiteLLM's table has no price of batches (`batch_is_half`) it is half the usual one.
        readout: what was assumed of the judge.
        images: how many are sent, in neither tokens nor dollars: providers count them each in its own way.
    """

    judge: str
    criterion: str
    ratings: int
    requests: int
    prompt_tokens: int
    cacheable_tokens: int
    completion_tokens: int
    cost: float | None
    cost_cached: float | None
    cost_batch: float | None
    batch_is_half: bool
    thinks: bool
    readout: str
    images: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return vars(self)


def estimate(geval: GEval, judge: LiteLLMJudge, samples: Iterable[Sample]) -> Estimate:
    """What rating the samples would take; the judge is not asked.

    What LiteLLM declares of the model is taken at its word.
    """
    sampling = geval.way.sampling

    def takes(parameter: str) -> bool:
        known = judge.name.startswith(("local/", "router/")) or declares(judge.name, parameter)
        return known and run(judge.takes(parameter))

    reads_logprobs = sampling.readout != "samples" and takes("logprobs")
    n = sampling.n or (sampling.least if reads_logprobs else max(REPLIES, sampling.least))
    at_once = n if takes("n") else 1
    ratings = requests = prompt = cacheable = completion = images = 0
    least = 0 if judge.name.startswith(("local/", "hosted_vllm/")) else LEAST_CACHED
    previous = ""

    def counted() -> Iterator[Sample]:
        nonlocal ratings
        for sample in samples:
            ratings += 1
            yield sample

    for question, share in geval.way.requests(counted(), n):
        sent = -(-share // at_once)
        content = text_of(question.messages[0])
        tokens = count_tokens(judge.name, content)
        common = common_prefix(previous, content) / max(1, len(content))
        requests += sent
        images += sent * count_images(question.messages)
        prompt += sent * tokens
        shared = [int(tokens * common)] * min(sent, 1) + [tokens] * (sent - 1)
        cacheable += sum(each for each in shared if each >= least)
        completion += share * question.room
        previous = content
    return Estimate(
        judge=judge.name,
        criterion=geval.criterion.name,
        ratings=ratings,
        requests=requests,
        prompt_tokens=prompt,
        cacheable_tokens=cacheable,
        completion_tokens=completion,
        cost=judge.price(prompt, 0, 0, completion, batch=False),
        cost_cached=judge.price(prompt, cacheable, 0, completion, batch=False),
        cost_batch=judge.price(prompt, 0, 0, completion, batch=True) if has_batches(judge.name) else None,
        batch_is_half=not knows_batch_price(judge.name),
        thinks=bool(facts(judge.name).get("supports_reasoning")),
        readout="log-probabilities" if reads_logprobs else f"{n * geval.way.rounds} samples",
        images=images,
    )


def estimates_table(estimates: Iterable[Estimate], console: Console) -> RenderableType:
    """What a dry run shows: one row per judge and criterion."""
    estimates = list(estimates)
    several = len({each.judge for each in estimates}) > 1
    rows = [
        [
            *([each.judge] if several else []),
            each.criterion,
            str(each.ratings),
            each.readout,
            f"{each.requests:,}",
            f"{each.prompt_tokens:,}" + f" + {each.images:,} images" * bool(each.images),
            f"{each.cacheable_tokens / max(1, each.prompt_tokens):.0%}",
            f"{each.completion_tokens:,}" + " + thinking" * each.thinks,
            dollars(each.cost) + " + images" * bool(each.images) + " + thinking" * each.thinks,
            dollars(each.cost_cached) + " + images" * bool(each.images) + " + thinking" * each.thinks,
            "-" if each.cost_batch is None else dollars(each.cost_batch) + " (half, assumed)" * each.batch_is_half,
        ]
        for each in estimates
    ]
    heads = (
        *("criterion", "ratings", "read by", "requests", "prompt tokens", "cacheable", "completion tokens at most"),
        *("cost at most", "with a prefix cache", "with --batch"),
    )
    return table(("judge", *heads) if several else heads, rows, console)
