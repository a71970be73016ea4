"""G-Eval for LangChain and LangSmith.

Importing this package also makes LangChain's own `load_evaluator` know the names `geval` and `pairwise_geval`.
"""

from geval_adapters import require

require("langchain", "langchain_classic", "langsmith")

from .chat_model import ChatModelJudge
from .evaluators import GEvalEvaluator, PairwiseGEvalEvaluator, RatingError
from .loading import GEvalType, load_evaluator, register
from .smith import geval_evaluator, pairwise_geval_evaluator

register()

__all__ = [
    "ChatModelJudge",
    "GEvalEvaluator",
    "GEvalType",
    "PairwiseGEvalEvaluator",
    "RatingError",
    "geval_evaluator",
    "load_evaluator",
    "pairwise_geval_evaluator",
]
