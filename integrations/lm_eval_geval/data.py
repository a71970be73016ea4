"""The rated texts that a judge is tested on: one loader, and the same items in the same order from every source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geval_adapters import InputError, Sample, read_samples

from . import harness

harness.check()

_UNIEVAL = "https://raw.githubusercontent.com/maszhongming/UniEval/main/reproduce/data"


@dataclass(frozen=True)
class Source:
    """Where a data set is had: on the Hugging Face hub, or as a JSON file in G-Eval's format behind an address."""

    hub: str = ""
    url: str = ""

    @property
    def address(self) -> str:
        """Either of the two."""
        return self.hub or self.url


SOURCES = {
    "summeval": Source(hub="mteb/summeval"),
    "topical_chat": Source(url=f"{_UNIEVAL}/dialogue/topical_chat.json"),
    "qags": Source(url=f"{_UNIEVAL}/fact/qags_cnndm.json"),
}
"""The data sets by their family of criteria."""

_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".parquet", ".csv", ".tsv")
_HUB_SCORES = ("coherence", "consistency", "fluency", "relevance")


def load(family: str, data: str | Path | None = None) -> list[Sample]:
    """The rated outputs of a data set, document by document.

    Sources name and sort their items differently, so all are put in one order: by document, and within a document by
    the letters and digits of the output.

    Args:
        family: a key of `SOURCES`.
        data: a local file, or a folder that holds `<family>*.json` (or JSON Lines, CSV, Parquet), in G-Eval's format
            or in that of the hub data set; without it, the public source is asked.

    Raises:
        InputError: neither a local file nor the public source is there, or it cannot be read.
    """
    samples = list(_local(find_file(family, Path(data))) if data is not None else _public(family))
    return sorted(samples, key=_place)


def find_file(family: str, data: Path) -> Path:
    """The file of a data set: `data` itself, or the one in the folder `data` whose name begins with the family's.

    Raises:
        InputError: there is none, or more than one.
    """
    if not data.is_dir():
        return data
    files = sorted(file for file in data.glob(f"{family}*") if file.name.endswith(_SUFFIXES))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise InputError(f"{data}: expected one file {family}*.json, found {names}; name the file itself")
    return files[0]


def _public(family: str) -> Iterator[Sample]:
    import datasets

    source = SOURCES[family]
    try:
        if source.hub:
            return _from_hub(datasets.load_dataset(source.hub, split="test"))
        return read_samples(datasets.DownloadManager().download(source.url))
    except Exception as error:  # every layer below has errors of its own for "no network"
        raise InputError(
            f"{family}: {source.address} cannot be had ({type(error).__name__}: {error}); give a local copy with"
            f""" --metadata '{{"data": "PATH"}}' (a file in G-Eval's format, or the folder it is in)"""
        ) from None


def _local(file: Path) -> Iterator[Sample]:
    if file.suffix == ".parquet":
        import datasets

        rows = datasets.Dataset.from_parquet(str(file))
        if "machine_summaries" in rows.column_names:
            return _from_hub(rows)
    return read_samples(file)


def _from_hub(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    """One sample for each of a row's summaries; the row has an article, and a list of scores for each dimension."""
    for row in rows:
        for index, output in enumerate(row["machine_summaries"]):
            human = {name: float(row[name][index]) for name in _HUB_SCORES}
            yield Sample(output, source=row["text"], doc_id=str(row["id"]), human=human)


def _place(sample: Sample) -> tuple[str, str, list[tuple[str, float]], str]:
    """Where a sample stands: independent of case and spacing, which differ between copies of the data."""
    text = sample.output.lower()
    letters = re.sub(r"[\W_]+", "", text)
    return sample.doc_id or "", letters, sorted(sample.human.items()), " ".join(text.split())
