"""G-Eval for Inspect AI: scorers, and Inspect's models as the judge.

Inspect finds the scorers by the entry point of its own name: `inspect score run.eval --scorer inspect_geval/geval`.
"""

from geval_adapters import require

require("inspect", "inspect_ai")

from .model import InspectJudge
from .scorers import clustered_stderr, geval, geval_criteria, geval_pairwise

__all__ = ["InspectJudge", "clustered_stderr", "geval", "geval_criteria", "geval_pairwise"]
