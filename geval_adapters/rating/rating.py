"""A rating: what a judge makes of one sample, and all that is known about that number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..fence import sendable
from ..judge.base import Usage
from ..judge.sampling import Method
from ..rubrics import ItemRating
from ..samples import Sample
from ..signature import Signature


@dataclass(frozen=True)
class Rating:
    """What a judge makes of one sample.

    Attributes:
        sample: what was rated.
        criterion: the criterion's name.
        score: the estimate on the criterion's scale, or None where there is none; `error` then says why.
        normalized: `(score − low) / (high − low)`.
        distribution: score to probability, summing to one.
        coverage: the share of the mass that lies on the scale; with samples, of the replies that could be read.
        bounds: the lowest and the highest score if what was not covered were known.
        std_error: `s / √n_valid` of the replies' scores, None for fewer than two; adaptively, see `judge.Sequential`.
        method: `logprobs`, `samples` or `single`: how the score was read; `jury`, where it was made of several judges'
            ratings; None where the judge was not asked.
        n_valid, n_failed: replies that were read, and those that were not.
        rationale: what the judge said about it, where the form lets it.
        error: why there is no score.
        unread: the replies that could not be read, each with the reason.
        usage: what it cost.
        signature: names all that could change the score; equal signatures mean comparable scores.
        served: the models that the provider says gave the replies, with their fingerprints; no part of the signature.
        items: by a rubric, what the judge says of each item. The score is then `rubrics.tally`'s, which faults can
            bring below 0; `normalized` is the same, but never under 0; there is no distribution.
    """

    sample: Sample
    criterion: str
    score: float | None
    normalized: float | None
    distribution: Mapping[float, float] = field(hash=False)
    coverage: float
    bounds: tuple[float, float]
    std_error: float | None
    method: Method | Literal["jury", "cascade"] | None
    n_valid: int
    n_failed: int
    rationale: str | None
    error: str | None
    usage: Usage
    signature: Signature
    human: float | None = None
    unread: tuple[tuple[str, str], ...] = ()
    served: tuple[str, ...] = ()
    items: tuple[ItemRating, ...] = ()

    def __str__(self) -> str:
        """One line: which sample, by what, how much, and how sure that is."""
        name = f"{self.sample.id}: " if self.sample.id else ""
        if self.score is None:
            said = f"{name}{self.criterion} not rated: {self.error}"
        else:
            error = "" if self.std_error is None else f" ± {self.std_error:.2g}"
            bounds = "" if self.coverage > 0.995 else f", bounds {self.bounds[0]:.3g} to {self.bounds[1]:.3g}"
            how = f"{self.method}, n {self.n_valid + self.n_failed}, coverage {self.coverage:.2f}{bounds}"
            how += f", {self.sample.left_out} turns left out" if self.sample.left_out else ""
            said = f"{name}{self.criterion} {self.score:.3g}{error} ({how})"
        return "".join(each if each.isprintable() else " " for each in said)

    def to_dict(self) -> dict[str, Any]:
        """One row of a ratings file."""
        return {
            "id": self.sample.id,
            "doc_id": self.sample.doc_id,
            "system_id": self.sample.system_id,
            "criterion": self.criterion,
            "score": self.score,
            "normalized": self.normalized,
            "distribution": {f"{score:g}": p for score, p in self.distribution.items()},
            "coverage": self.coverage,
            "bounds": list(self.bounds),
            "std_error": self.std_error,
            "method": self.method,
            "n_valid": self.n_valid,
            "n_failed": self.n_failed,
            "rationale": self.rationale,
            "error": self.error,
            "unread": [{"reply": sendable(reply), "reason": sendable(reason)} for reply, reason in self.unread],
            "usage": vars(self.usage),
            "signature": str(self.signature),
            "served": list(self.served),
            "items": [each.to_dict() for each in self.items],
            "human": self.human,
            "output": self.sample.output,
            "images": [image.name for image in self.sample.images],
            "left_out": self.sample.left_out,
            "reference": self.sample.reference,
            "sample": self.sample.digest,
        }
