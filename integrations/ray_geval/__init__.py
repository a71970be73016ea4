"""G-Eval on Ray Data: a dataset of texts in, the same dataset with ratings out.

>>> import ray_geval
>>> ray_geval.rate_dataset.__name__
'rate_dataset'
"""

from .dataset import RATING, rank_dataset, rate_dataset

__all__ = ["RATING", "rank_dataset", "rate_dataset"]
