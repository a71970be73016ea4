"""G-Eval for DeepEval: metrics for its test cases and its conversations, for `assert_test` and `evaluate`."""

from geval_adapters import require

require("deepeval", "deepeval")

from .metrics import ConversationalGEvalMetric, GEvalMetric

__all__ = ["ConversationalGEvalMetric", "GEvalMetric"]
