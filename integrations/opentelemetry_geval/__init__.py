"""Ratings as OpenTelemetry's event `gen_ai.evaluation.result`, on the span of what was judged."""

from geval_adapters import require

require("opentelemetry", "opentelemetry")

from .events import EVENT, rate, record

__all__ = ["EVENT", "rate", "record"]
