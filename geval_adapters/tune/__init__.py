"""Which way of rating agrees best with people, found with few requests and shown on documents that took no part."""

from .candidates import Candidate, compared, usual
from .halving import Rate, Scored, Split, Trial, Tuned, Tuning
from .sharing import Shared, Sharing

__all__ = ["Candidate", "Rate", "Scored", "Shared", "Sharing", "Split", "Trial", "Tuned", "Tuning", "compared", "usual"]
