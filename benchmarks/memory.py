"""Peak memory of `geval score`, by the number of rows in its file.

    uv run python benchmarks/memory.py [--rows N ...] [--stub]

For each number of rows a process of its own rates a file of short texts into an output, 64 requests at a time,
against the loopback server of `throughput.py`, which is another process; with `--stub` only the first row is rated,
without a network, and its rating stands for all: what reads, writes and sums up rows is as it is. The same command is
then run once more: it finds all done and asks nothing. Memory is the peak resident set as the system accounts it to
the process.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from answering import counts, serve, start
from throughput import CONCURRENCY, CRITERION, KEY, MODEL, PER_SOURCE, Judge, table

ROWS = (1_000, 10_000, 100_000)


class Run(NamedTuple):
    """Mebibytes, seconds and requests of one run."""

    peak: float
    seconds: float
    requests: int


def write_rows(path: Path, count: int) -> None:
    """Rows of some 200 characters, `PER_SOURCE` outputs to a source."""
    with path.open("w") as file:
        for i in range(count):
            source = f"Source {i // PER_SOURCE}: the council met on Monday and put off its vote on the new bridge."
            output = f"Output {i}: the vote on the bridge was put off."
            file.write(json.dumps({"id": f"row-{i}", "source": source, "output": output}) + "\n")


STUB = """
import asyncio
from dataclasses import replace
from geval_adapters import GEval
from geval_adapters.judge.bodies import parsed
from geval_adapters.judge.direct import DirectRoute
from throughput import response_to
raw = response_to({"messages": [{"content": ""}], "logprobs": True}).partition(b"\\r\\n\\r\\n")[2]
async def send(self, body, timeout):
    await asyncio.sleep(0.005)
    return parsed(raw)
async def arate_many(self, samples, *, as_completed=False):
    first = None
    for number, sample in enumerate(samples):
        first = first or await self.way.rated(sample)
        if number % 50 == 0:
            await asyncio.sleep(0)
        yield replace(first, sample=sample)
DirectRoute.send = send
GEval.arate_many = arate_many
"""
"""Instead of a network, the server's reply; instead of a rating for each row, the first one's."""


def score(path: Path, output: Path, base: str, stub: bool) -> Run:
    """Run the command to its end; where it ends badly, show why."""
    counts(base)
    options = ["--criterion", CRITERION, "--model", f"openai/{MODEL}", "--concurrency", str(CONCURRENCY)]
    code = (STUB if stub else "") + "from geval_adapters.cli import main; main()"
    command = [sys.executable, "-c", code, "score", str(path), *options]
    environment = os.environ | {"OPENAI_API_BASE": base, "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    began = time.perf_counter()
    with (output.parent / "said").open("w+") as said:
        process = subprocess.Popen([*command, "--output", str(output)], env=environment, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        said.seek(0)
        if status:
            sys.exit(said.read())
    peak = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return Run(peak, seconds, counts(base).get("requests", 0))


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of geval score")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, metavar="N", help="rows of the files")
    parser.add_argument("--stub", action="store_true", help="let the first rating stand for all")
    arguments = parser.parse_args()
    server, pipe = start(serve, Judge)
    base = pipe.recv()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "rows.jsonl", Path(folder) / "ratings.jsonl"
        for count in arguments.rows:
            output.unlink(missing_ok=True)
            write_rows(path, count)
            for name in ("rate", "resume"):
                run = score(path, output, base, arguments.stub)
                with output.open() as file:
                    written = sum(1 for _ in file)
                figures = (run.requests, written, round(run.peak), round(run.seconds))
                rows.append([f"{count:,}", name, *(f"{figure:,}" for figure in figures)])
                print(*rows[-1], f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    server.terminate()
    table(["rows", "", "requests", "rows written", "peak MiB", "seconds"], rows)
    version = importlib.metadata.version("geval-adapters")
    print(f"geval-adapters {version}, Python {platform.python_version()}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
