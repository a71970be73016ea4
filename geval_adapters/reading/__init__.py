"""A judge's reply becomes a distribution over the scale."""

from ..criteria import FORMS
from .combined import Combined, combine
from .distribution import MIN_COVERAGE, Reading
from .several import read_many
from .text import read_text
from .tokens import read_logprobs
from .verdict import LABELS, read_verdict, read_verdict_logprobs

__all__ = [
    "FORMS",
    "LABELS",
    "MIN_COVERAGE",
    "Combined",
    "Reading",
    "combine",
    "read_logprobs",
    "read_many",
    "read_text",
    "read_verdict",
    "read_verdict_logprobs",
]
