"""One rating, one event: the attributes of the GenAI semantic conventions, and beside them what makes it comparable."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger

from geval_adapters import GEval, Rating
from geval_adapters.samples import SampleLike

EVENT = "gen_ai.evaluation.result"


def record(
    rating: Rating,
    span: trace.Span | trace.SpanContext | None = None,
    *,
    response_id: str | None = None,
    label: str | None = None,
    explanation: bool = True,
    logger_provider: LoggerProvider | None = None,
) -> None:
    """Emit a rating as an event, by the logs that are set up; without any, nothing happens.

    What was judged is not in it, nor any reply but the rationale. A rating that came to no score has no value: it has
    `error.type`, and its reason as the explanation.

    Args:
        rating: what was made of the output.
        span: the span of what was judged, or its context where it has ended; by default the current one.
        response_id: the completion's id (`gen_ai.response.id`), for where its span is not known.
        label: what the score means to you, such as `pass`.
        explanation: whether the judge's rationale goes with it.
        logger_provider: instead of the global one.
    """
    if isinstance(span, trace.SpanContext):
        span = trace.NonRecordingSpan(span)
    told: dict[str, Any] = {
        "gen_ai.evaluation.name": rating.criterion,
        "gen_ai.evaluation.score.value": rating.score,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": (rating.rationale if explanation else None) or rating.error,
        "gen_ai.response.id": response_id,
        "error.type": None if rating.score is not None else "unrated",
        "geval.normalized": rating.normalized,
        "geval.method": rating.method,
        "geval.coverage": rating.coverage,
        "geval.bounds": list(rating.bounds),
        "geval.std_error": rating.std_error,
        "geval.n_valid": rating.n_valid,
        "geval.n_failed": rating.n_failed,
        "geval.cost": rating.usage.cost,
        "geval.signature": str(rating.signature),
    }
    get_logger("geval_adapters", logger_provider=logger_provider).emit(
        event_name=EVENT,
        context=trace.set_span_in_context(span or trace.get_current_span()),
        severity_number=SeverityNumber.INFO if rating.score is not None else SeverityNumber.WARN,
        attributes={name: value for name, value in told.items() if value is not None},
    )


def rate(
    geval: GEval,
    output: SampleLike,
    span: trace.Span | trace.SpanContext | None = None,
    *,
    response_id: str | None = None,
    **fields: str,
) -> Rating:
    """Rate an output, as `geval.rate` does, and record that on its span, by default the current one.

    Raises:
        InputError, JudgeError: as from `GEval.rate`; nothing is recorded then.
    """
    rating = geval.rate(output, **fields)
    record(rating, span, response_id=response_id)
    return rating
