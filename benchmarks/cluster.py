"""Two workers on Ray against one process, and what the driver holds while many rows stream through it.

    uv run python benchmarks/cluster.py [--rounds N] [--prompts N] [--rows N]

One server on loopback answers after 50 ms, in a process of its own (see `throughput.py`). In each round one process
rates the samples by `rate_many`, then two workers by `rate_dataset`, with as many requests under way in all. Workers
need seconds to start, so that Ray's rate is taken from its first batch of ratings to its last. CPU is that of the
process, and of all of Ray's processes on this machine, the driver among them.

Then `--rows` rows are read from Parquet and rated, and the driver's memory is looked at with each batch: its own
(anonymous) memory, and what it has mapped of the object store.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from answering import serve, start
from throughput import CRITERION, MODEL, QUIET, Judge, Run, make_texts, table

CONCURRENCY, WORKERS = 128, 2


def judged(base: str) -> Any:
    from geval_adapters import GEval

    return GEval(CRITERION, f"openai/{MODEL}", api_base=base, concurrency=CONCURRENCY)


def one_process(base: str, rows: list[dict[str, str]]) -> Run:
    from geval_adapters import Sample

    geval = judged(base)
    began = cpu = 0.0
    samples = (Sample(**row) for row in rows)
    for number, rating in enumerate(geval.rate_many(samples)):
        assert rating.score is not None
        if number == 128:  # as much as Ray's first batch
            began, cpu = time.perf_counter(), time.process_time()
    counted = len(rows) - 128
    return Run(counted / (time.perf_counter() - began), 1000 * (time.process_time() - cpu) / counted)


def batches(ds: Any, base: str) -> Iterator[pa.Table]:
    from ray_geval import rate_dataset

    rated = rate_dataset(ds, judged(base), concurrency=WORKERS)
    for batch in rated.iter_batches(batch_size=None, batch_format="pyarrow"):
        assert batch["score"].null_count == 0
        yield batch


def on_ray(base: str, server: int, rows: list[dict[str, str]]) -> tuple[Run, float]:
    """The rate from the first batch to the last, and the seconds until the first."""
    import ray.data

    called = time.perf_counter()
    began = cpu = 0.0
    counted = 0
    for batch in batches(ray.data.from_items(rows), base):
        if began:
            counted += batch.num_rows
        else:
            began, cpu = time.perf_counter(), tree_cpu(server)
    spent = time.perf_counter() - began
    return Run(counted / spent, 1000 * (tree_cpu(server) - cpu) / counted), began - called


def tree_cpu(server: int) -> float:
    """Seconds of CPU of this process and all below it, one of them aside."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = stat.read_text().rpartition(")")[2].split()  # from the third field on
        except OSError:  # it has ended
            continue
        pid = int(stat.parent.name)
        parents[pid], ticks[pid] = int(told[1]), int(told[11]) + int(told[12])

    def below(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and pid != server and below(parents[pid]))

    return sum(spent for pid, spent in ticks.items() if below(pid)) / os.sysconf("SC_CLK_TCK")


def stream(base: str, count: int) -> None:
    import ray.data

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        schema = pa.schema({name: pa.string() for name in ("id", "source", "output")})
        size = 0
        with pq.ParquetWriter(file, schema) as writer:
            for rows in rows_of(count):
                size += sum(len(text) for row in rows for text in row.values())
                writer.write_table(pa.Table.from_pylist(rows, schema))
        gc.collect()
        before, peak, mapped, seen, began = own_memory()[0], 0, 0, 0, time.perf_counter()
        for batch in batches(ray.data.read_parquet(str(file)), base):
            seen += batch.num_rows
            own, shared = own_memory()
            peak, mapped = max(peak, own), max(mapped, shared)
        spent = time.perf_counter() - began
    print(
        f"{seen:,} of {count:,} rows ({size / 1e6:.0f} MB of text) in {spent:.0f} s; the driver's own memory grew"
        f" from {before / 2**20:.0f} to at most {peak / 2**20:.0f} MiB, and it had at most {mapped / 2**20:.0f} MiB of"
        " the object store mapped"
    )


def rows_of(count: int, chunk: int = 4000) -> Iterator[list[dict[str, str]]]:
    for first in range(0, count, chunk):
        yield [
            {"id": str(first + place), "source": source, "output": output}
            for place, (source, output) in enumerate(make_texts(min(chunk, count - first)))
        ]


def own_memory() -> tuple[int, int]:
    """Bytes that this process holds for itself, and bytes of shared memory that it has mapped and touched."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(1024 * int(told[name].split()[0]) for name in ("RssAnon", "RssShmem"))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description="Ray against one process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=50_000)
    arguments = parser.parse_args()
    os.environ |= QUIET
    from ray_geval import engine

    server, pipe = start(serve, Judge)
    base = pipe.recv()
    engine.connect("local")
    rows = next(rows_of(arguments.prompts, arguments.prompts))
    runs: dict[str, list[Run]] = {"one process": [], f"Ray, {WORKERS} workers": []}
    alone, cluster = runs.values()
    starts = []
    for number in range(arguments.rounds):
        alone.append(one_process(base, rows))
        run, seconds = on_ray(base, server.pid or 0, rows)
        cluster.append(run)
        starts.append(seconds)
        print(f"round {number + 1}: {alone[-1]} {run} load {os.getloadavg()[0]:.1f}", flush=True)
    lines = []
    for name, each in runs.items():
        rates, cpus = zip(*each, strict=True)
        ratio = median(run.rate / beside.rate for run, beside in zip(each, alone, strict=True))
        lines.append([name, f"{median(rates):.0f}", f"{ratio:.2f}", f"{median(cpus):.2f}"])
    table(["", "ratings/s", "× one process", "CPU ms a rating"], lines)
    print(f"Ray's first batch came after {median(starts):.0f} s.")
    if arguments.rows:
        stream(base, arguments.rows)
    packages = ", ".join(f"{name} {version(name)}" for name in ("ray", "pyarrow", "aiohttp"))
    print(f"{packages}, Python {platform.python_version()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
