"""G-Eval as an assertion of promptfoo: a file that says `from promptfoo_geval import get_assert` is all it needs."""

from .assertion import get_assert

__all__ = ["get_assert"]
