"""People's labels: what a label is, reading those that there are, and estimating with them."""

from .correction import corrected_difference, corrected_mean
from .rows import Draw, Label, read_labels

__all__ = ["Draw", "Label", "corrected_difference", "corrected_mean", "read_labels"]
