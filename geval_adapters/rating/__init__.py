"""How good is it: a judge, a criterion and a sample make a rating."""

from .batchwise import FAILURES, Batchwise
from .geval import GEval
from .pointwise import Pointwise
from .rating import Rating
from .rubric import ByItems
from .way import Way

__all__ = ["FAILURES", "Batchwise", "ByItems", "GEval", "Pointwise", "Rating", "Way"]
