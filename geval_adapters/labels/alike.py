"""Whether ratings are of one kind, so that their numbers mean the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ..errors import InputError
from ..signature import Signature
from .joined import Joined


def differing(everything: Iterable[Joined]) -> str:
    """In which way ratings are not all of one kind, by their signatures; empty where they are."""
    signatures = list(dict.fromkeys(each for data in everything for each in data.signatures))
    if len(signatures) < 2:
        return ""
    try:
        told = "; ".join(Signature.parse(signatures[0]).differences(Signature.parse(signatures[1])))
    except InputError:
        told = f"{signatures[0]!r} and {signatures[1]!r}"
    return f"there are ratings with {len(signatures)} different signatures: {told}"


def served_note(runs: Mapping[str, Joined]) -> Iterator[str]:
    """A warning where the provider did not serve one model throughout, within runs and between them.

    Args:
        runs: ratings by the same criterion, by what they are called.
    """
    counts = {
        name: Counter(each for item in run.items if item.score is not None for each in item.served)
        for name, run in runs.items()
    }
    if len(set().union(*counts.values())) < 2:
        return
    said = [
        f"{name}: {', '.join(f'{model} {count} x' for model, count in served.most_common())}"
        for name, served in counts.items()
        if served
    ]
    title = next(iter(runs.values())).criterion
    yield f"{title} was not rated by one served model, so that scores may differ for that alone: {'; '.join(said)}"
