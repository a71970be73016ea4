"""What LiteLLM's bundled table says of models: what they cost and what they can."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

from .litellm_route import import_litellm


@cache
def facts(model: str) -> dict[str, Any]:
    """What LiteLLM's bundled table says of a model: prices per token, and what it supports; empty where unknown.

    The file is read without importing LiteLLM, which takes seconds.
    """
    table = _table()
    return dict(table.get(model) or table.get(model.partition("/")[2]) or {})


def cost_of(
    model: str, prompt: int, cached: int, completion: int, written: int = 0, batch: bool = False
) -> float | None:
    """Dollars for so many tokens, those read from and written to a cache among the prompt's; None if not known.

    >>> cost_of("openai/gpt-4o-mini", 1_000_000, 0, 0)
    0.15

    In a batch it is what the table says, else half: what the providers that have batches ask.

    >>> cost_of("openai/gpt-4o-mini", 1_000_000, 0, 0, batch=True)
    0.075
    """
    price = facts(model)
    if batch:
        price = {name: price.get(f"{name}_batches", value / 2) for name, value in price.items() if name in _PER_TOKEN}
    if "input_cost_per_token" not in price:
        return None
    fresh, output = price["input_cost_per_token"], price.get("output_cost_per_token", 0.0)
    read = price.get("cache_read_input_token_cost", fresh)
    write = price.get("cache_creation_input_token_cost", fresh)
    return float((prompt - cached - written) * fresh + cached * read + written * write + completion * output)


def knows_batch_price(model: str) -> bool:
    """Whether LiteLLM's table has the price of a model's batches; where it has none, half the usual one is taken."""
    return "input_cost_per_token_batches" in facts(model)


_PER_TOKEN = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)


@cache
def _table() -> dict[str, dict[str, Any]]:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "model_prices_and_context_window_backup.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def sees(*models: str) -> bool | None:
    """Whether all of these models can be shown images, as LiteLLM's table says; None where one is not in it.

    >>> sees("openai/gpt-4o-mini"), sees("openai/gpt-3.5-turbo"), sees("hosted_vllm/mine")
    (True, False, None)
    """
    if any(facts(model) and not facts(model).get("supports_vision") for model in models):
        return False
    return True if all(map(facts, models)) else None


def declares(model: str, parameter: str) -> bool:
    """Whether a model takes an optional parameter as far as LiteLLM knows; True for models that it does not know."""
    declared = import_litellm().get_supported_openai_params(model=model)
    return declared is None or parameter in declared


def count_tokens(model: str, text: str) -> int:
    """How many tokens a text has for a model, as LiteLLM counts them; for models it has no tokenizer of, about."""
    litellm = import_litellm()
    return int(litellm.token_counter(model=model, text=text))
