"""A G-Eval judge that can be trusted: text in, a rating with its distribution, coverage and provenance out."""

from .criteria import Criterion, Scale, criteria
from .readout import Reading, read_logprobs, read_text

__all__ = ["Criterion", "Reading", "Scale", "criteria", "read_logprobs", "read_text"]
