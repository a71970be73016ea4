"""G-Eval on Ray Data: a dataset of texts in, the same dataset with ratings out.

>>> import ray_geval
>>> ray_geval.RATING.field("score").type
DataType(double)
"""

from geval_adapters import require

require("ray", "ray", "pyarrow")

from .dataset import rank_dataset, rate_dataset
from .schema import RANKING, RATING

__all__ = ["RANKING", "RATING", "rank_dataset", "rate_dataset"]
