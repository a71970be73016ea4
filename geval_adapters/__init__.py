"""A G-Eval judge that can be trusted: text in, a rating with its distribution, coverage and provenance out."""

from .comparison import Comparer, Comparison, Verdict
from .criteria import Criterion, Scale, criteria
from .errors import GEvalError, InputError, JudgeError
from .judge.base import Judge, Usage
from .judge.client import LiteLLMJudge
from .rating import GEval, Rating
from .reading import Reading, read_logprobs, read_text, read_verdict, read_verdict_logprobs
from .samples import Sample, read_samples
from .signature import Signature

__all__ = [
    "Comparer",
    "Comparison",
    "Criterion",
    "GEval",
    "GEvalError",
    "InputError",
    "Judge",
    "JudgeError",
    "LiteLLMJudge",
    "Rating",
    "Reading",
    "Sample",
    "Scale",
    "Signature",
    "Usage",
    "Verdict",
    "criteria",
    "read_logprobs",
    "read_samples",
    "read_text",
    "read_verdict",
    "read_verdict_logprobs",
]
