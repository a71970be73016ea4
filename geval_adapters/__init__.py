"""A G-Eval judge that can be trusted: text in, a rating with its distribution, coverage and provenance out."""

from typing import TYPE_CHECKING, Any

from .comparison import Comparer, Comparison, RankedDocument, Verdict
from .criteria import Criterion, Example, Scale, load_criteria
from .errors import BusyError, GEvalError, InputError, JudgeError, MissingPackageError, StopError, require
from .examples import Shots
from .judge import Answer, Judge, LiteLLMJudge, Reply, Usage
from .rating import GEval, Rating
from .reading import Reading, read_logprobs, read_many, read_text, read_verdict, read_verdict_logprobs
from .rubrics import ItemRating, Rubric, RubricItem
from .samples import Sample, read_samples
from .signature import Signature

if TYPE_CHECKING:
    from .jury import Jury


def __getattr__(name: str) -> Any:
    """`__version__`, and what needs numpy, looked up when it is asked for."""
    if name == "Jury":
        from .jury import Jury

        return Jury
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .signature import version

    return version()


__all__ = [
    "Answer",
    "BusyError",
    "Comparer",
    "Comparison",
    "Criterion",
    "Example",
    "GEval",
    "GEvalError",
    "InputError",
    "ItemRating",
    "Judge",
    "JudgeError",
    "Jury",
    "LiteLLMJudge",
    "MissingPackageError",
    "RankedDocument",
    "Rating",
    "Reading",
    "Reply",
    "Rubric",
    "RubricItem",
    "Sample",
    "Scale",
    "Shots",
    "Signature",
    "StopError",
    "Usage",
    "Verdict",
    "load_criteria",
    "read_logprobs",
    "read_many",
    "read_samples",
    "read_text",
    "read_verdict",
    "read_verdict_logprobs",
    "require",
]
