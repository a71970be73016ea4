"""G-Eval for MLflow 3: scorers for `mlflow.genai.evaluate`, and people's feedback as labels."""

from geval_adapters import require

require("mlflow", "mlflow")

from .feedback import labels, samples
from .scorers import GEvalScorer, geval

__all__ = ["GEvalScorer", "geval", "labels", "samples"]
