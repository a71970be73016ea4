"""Asking a model: the judge's contract, its client and routes, pace and prices, the embedded judge, and sampling."""

from .base import Answer, Judge, Reply, Usage
from .client import LiteLLMJudge, default_model, judge_of
from .faults import Access, Fault
from .loops import concurrently, run, stream
from .pace import Budget, Pace
from .parameters import TOP_LOGPROBS, Parameters
from .prices import cost_of, facts
from .responses import reply_of
from .routes import redact
from .sampling import METHODS, READOUTS, REPLIES, Combined, Question, Sampled, Sampling, Sequential, combine

__all__ = [
    "METHODS",
    "READOUTS",
    "REPLIES",
    "TOP_LOGPROBS",
    "Access",
    "Answer",
    "Budget",
    "Combined",
    "Fault",
    "Judge",
    "LiteLLMJudge",
    "Pace",
    "Parameters",
    "Question",
    "Reply",
    "Sampled",
    "Sampling",
    "Sequential",
    "Usage",
    "combine",
    "concurrently",
    "cost_of",
    "default_model",
    "facts",
    "judge_of",
    "redact",
    "reply_of",
    "run",
    "stream",
]
