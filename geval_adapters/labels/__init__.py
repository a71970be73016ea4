"""People's labels: what a label is, and reading those that there are."""

from .rows import Draw, Label, read_labels

__all__ = ["Draw", "Label", "read_labels"]
