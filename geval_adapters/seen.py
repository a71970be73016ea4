"""What was met, of millions: in some twenty bytes each instead of hundreds."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable


class Seen:
    """Which texts, or tuples of them, were met: the set of their hashes, of 64 bits.

    That two of a million have one hash, so that one is taken for met, happens in one of 40 million such sets.

    >>> seen = Seen()
    >>> seen.add("a")
    >>> "a" in seen, "b" in seen, len(seen)
    (True, False, 1)
    """

    def __init__(self) -> None:
        self._size = 0
        self._buckets: dict[int, array[int]] = {}

    def add(self, item: Hashable) -> None:
        """Put one in, if it is not there."""
        key = _hash(item)
        bucket = self._buckets.setdefault(key >> 48, array("Q"))
        if key not in bucket:
            bucket.append(key)
            self._size += 1

    def __contains__(self, item: Hashable) -> bool:
        key = _hash(item)
        return key in self._buckets.get(key >> 48, ())

    def __len__(self) -> int:
        return self._size


class Tally:
    """How often texts were met of which few come again; as a `Counter` has it.

    >>> tally = Tally()
    >>> tally["a"] += 1
    >>> tally["a"] += 1
    >>> tally["a"], "a" in tally, tally["b"], "b" in tally
    (2, True, 0, False)
    """

    def __init__(self) -> None:
        self._once = Seen()
        self._again: dict[str, int] = {}

    def __getitem__(self, text: str) -> int:
        return self._again.get(text) or int(text in self._once)

    def __setitem__(self, text: str, count: int) -> None:
        self._once.add(text)
        if count > 1:
            self._again[text] = count

    def __contains__(self, text: str) -> bool:
        return text in self._once


def _hash(item: Hashable) -> int:
    return int.from_bytes(hashlib.blake2b(repr(item).encode(), digest_size=8).digest(), "big")
