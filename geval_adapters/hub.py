"""Rows of data sets on the Hugging Face hub, as they come over the network."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from .errors import InputError, require

PREFIX = "hf:"


def hub_rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and row of `hf:OWNER/NAME[/CONFIG][:SPLIT]`, streamed: only what is asked for is downloaded.

    A data set with one split needs no name of it. Who may see it is as the user's login to the hub says.

    Raises:
        InputError: it is not there or not to be seen, has no such split, or the hub cannot be reached.
        MissingPackageError: `datasets` is not installed.
    """
    require("hub", "datasets")
    name, _, split = path.removeprefix(PREFIX).partition(":")
    owner, *rest = name.split("/", 2)
    if not owner or not rest or not all(rest):
        raise InputError(f"{path}: write hf:OWNER/NAME, hf:OWNER/NAME:SPLIT or hf:OWNER/NAME/CONFIG:SPLIT")
    rows = _streamed(path, f"{owner}/{rest[0]}", rest[1] if rest[1:] else None, split or None)
    number = 0
    while True:
        try:
            row = next(rows, None)
        except Exception as error:
            raise _unreadable(path, error) from None
        if row is None:
            return
        number += 1
        yield number, row


def _streamed(path: str, name: str, config: str | None, split: str | None) -> Iterator[dict[str, Any]]:
    import datasets

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it tells each try; what came of them is told below
    try:
        found = datasets.load_dataset(name, config, split=split, streaming=True)
    except Exception as error:  # of many libraries: the hub's, the network's, those that read the files
        raise _unreadable(path, error) from None
    if split is None:
        if len(found) > 1:
            raise InputError(f"{path}: has the splits {', '.join(found)}; say which, as in {path}:{next(iter(found))}")
        (found,) = found.values()
    return iter(found)


def _unreadable(path: str, error: Exception) -> InputError:
    said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return InputError(f"{path}: {said}")
