"""Asking a model: the judge's contract, its client and routes, pace and prices, the embedded judge, and sampling."""

from .base import Answer, Judge, Reply, Usage
from .cache import NoReplyError, ReplyCache
from .client import LiteLLMJudge
from .faults import Access, Fault
from .judges import judge_of
from .local import default_model
from .loops import concurrently, run, stream
from .pace import Budget, Pace
from .parameters import TOP_LOGPROBS, Parameters
from .prices import cost_of, facts, sees
from .responses import reply_of, served_by, without_echoes
from .sampling import METHODS, READOUTS, REPLIES, Question, Sampled, Sampling, Sequential
from .secrets import keep_secret, keep_secrets_in, redact, without_keys

__all__ = [
    "METHODS",
    "READOUTS",
    "REPLIES",
    "TOP_LOGPROBS",
    "Access",
    "Answer",
    "Budget",
    "Fault",
    "Judge",
    "LiteLLMJudge",
    "NoReplyError",
    "Pace",
    "Parameters",
    "Question",
    "Reply",
    "ReplyCache",
    "Sampled",
    "Sampling",
    "Sequential",
    "Usage",
    "concurrently",
    "cost_of",
    "default_model",
    "facts",
    "judge_of",
    "keep_secret",
    "keep_secrets_in",
    "redact",
    "reply_of",
    "run",
    "sees",
    "served_by",
    "stream",
    "without_echoes",
    "without_keys",
]
