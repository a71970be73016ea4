"""The store of evaluation steps: whole or not there, one for all who write it at once, mended where it is broken."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from geval_adapters import Answer, GEval, InputError, Judge, Reply, Usage


class Writer(Judge):
    """A judge that writes other steps each time."""

    name = "test/writer"
    written = count(1)

    async def ask(self, messages: Sequence[Mapping[str, str]], **_: Any) -> Answer:
        await asyncio.sleep(0.01)
        return Answer([Reply(f"1. Read, draft {next(self.written)}.\n2. Choose.")], Usage(requests=1))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def steps() -> list[str]:
    return GEval("fluency", Writer(), steps="auto").write_steps()


def test_all_who_write_at_once_rate_by_the_same_steps(store: Path) -> None:
    async def together() -> list[list[str]]:
        raters = [GEval("fluency", Writer(), steps="auto") for _ in range(30)]
        return await asyncio.gather(*(rater.awrite_steps() for rater in raters))

    assert len(set(map(tuple, asyncio.run(together())))) == 1
    assert [file.suffix for file in store.iterdir()] == [".json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"steps": []}', '{"steps": [1]}', '{"steps": "a"}', "[" * 100_000])
def test_a_broken_store_is_written_again(store: Path, text: str) -> None:
    before = steps()
    (file,) = store.iterdir()
    file.write_text(text)
    again = steps()
    assert again != before
    assert steps() == again


def test_a_store_that_cannot_be_written_says_what_to_do(store: Path) -> None:
    store.write_text("no folder")
    with pytest.raises(InputError, match=r"cannot be written: .*; set \$GEVAL_CACHE"):
        steps()
