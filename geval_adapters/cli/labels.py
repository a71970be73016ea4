"""What the verbs that take labels share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..criteria import find_criterion
from ..errors import InputError

if TYPE_CHECKING:
    from ..labels.joined import Joined


def columns_of(fields: Sequence[str]) -> dict[str, str]:
    """Field to column name, from options `FIELD=COLUMN`.

    Raises:
        InputError: an option that is not of this form.
    """
    pairs = [each.partition("=") for each in fields]
    if wrong := [field for field, (name, _, column) in zip(fields, pairs, strict=True) if not name or not column]:
        raise InputError(f"--field {wrong[0]}: expected FIELD=COLUMN, such as score=stars")
    return {name: column for name, _, column in pairs}


def scale_of(data: Joined) -> tuple[float, float]:
    """The lowest and the highest score of the ratings' criterion, or where it is not known, of all that were given."""
    if data.scale:
        return data.scale
    try:
        scale = find_criterion(data.name).scale
        ends = [scale.low, scale.high]
    except InputError:
        ends = []
    given = [score for item in data.items for score in (item.score, *item.distribution, *item.people.values())]
    ends += [score for score in given if score is not None]
    return min(ends), max(ends)


def ratings_of(path: str, criterion: str) -> Joined:
    """The ratings of a file by one criterion, which is named like anywhere else.

    Raises:
        InputError: there are none, or of several criteria of that name.
    """
    from ..labels.joined import read_ratings

    everything = read_ratings(path)
    found = [each for each in everything if criterion in (each.key, each.name, each.name.rpartition("/")[2])]
    if not found:  # a YAML file, or free text
        try:
            name = find_criterion(criterion).name
        except InputError:
            name = criterion
        found = [each for each in everything if each.name == name]
    if len(found) != 1:
        names = [each.criterion for each in found or everything]
        told = "can be" if found else "has no ratings there, but"
        raise InputError(f"{path}: {criterion!r} {told} {' or '.join(names)}")
    return found[0]
