"""Asking a model: the judge's contract, its client and routes, pace and prices, the embedded judge, and sampling."""

from .base import Answer, Judge, Reply, Usage
from .client import TOP_LOGPROBS, LiteLLMJudge, default_model, judge_of
from .loops import concurrently, run, stream
from .pace import Budget, Pace
from .prices import cost_of, facts
from .routes import redact
from .sampling import METHODS, READOUTS, SAMPLES, Combined, Elicitation, Sequential, combine

__all__ = [
    "METHODS",
    "READOUTS",
    "SAMPLES",
    "TOP_LOGPROBS",
    "Answer",
    "Budget",
    "Combined",
    "Elicitation",
    "Judge",
    "LiteLLMJudge",
    "Pace",
    "Reply",
    "Sequential",
    "Usage",
    "combine",
    "concurrently",
    "cost_of",
    "default_model",
    "facts",
    "judge_of",
    "redact",
    "run",
    "stream",
]
