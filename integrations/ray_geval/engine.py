"""What `geval score --engine ray` adds to `geval score`: a cluster, and ratings that come from it."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from itertools import islice
from math import ceil
from typing import Any

import pyarrow as pa

from geval_adapters import GEval, GEvalError, InputError, LiteLLMJudge, Sample
from geval_adapters.errors import StopError

from .dataset import BATCH, STOPPED, cpus, rate_dataset
from .folder import RatingsFolder
from .schema import RATING, to_row

__all__ = ["RatingsFolder", "connect", "rate"]

SAMPLE = pa.schema(
    {name: pa.string() for name in ("output", "source", "reference", "context", "id", "doc_id", "system_id", "scores")}
)


def connect(address: str | None) -> None:
    """Connect to the cluster at `address`, or where `ray.init()` finds one, else start one on this machine.

    Nothing is reported to anyone: Ray's usage statistics are off, as far as the environment does not say otherwise.

    Raises:
        InputError: there is no cluster at the address.
    """
    # Read when Ray is imported. Under `uv run`, Ray would else build an environment for each worker.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # it would print what befalls workers among the ratings
    import ray.data

    if ray.is_initialized():
        return
    try:
        if place := re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address or ""):
            socket.create_connection((place[1], int(place[2])), timeout=10).close()  # Ray would try for ten minutes
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"no Ray cluster at {address or 'this machine'}: {error}") from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)


async def rate(geval: GEval, samples: Iterable[Sample]) -> AsyncGenerator[dict[str, Any]]:
    """The samples' ratings, as rows of a ratings file in the samples' order, from a cluster's workers.

    The samples are handed to Ray's object store, which spills to disk what does not fit; the ratings are streamed.

    Raises:
        JudgeError: a worker's judge cannot be asked; a `StopError`, when its part of the budget is spent, after all
            that the others could rate.
    """
    import ray.data

    signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's would wait for an await, and there is none
    ray.data.DataContext.get_current().enable_progress_bars = False
    total, blocks = 0, []
    for table in _tables(samples):
        total += table.num_rows
        blocks.append(ray.put(table))
    if not blocks:
        return
    ended: GEvalError | None = None
    workers = min(cpus(), ceil(total / BATCH))
    rated = rate_dataset(ray.data.from_arrow_refs(blocks), geval, concurrency=workers)
    rated.context.raise_original_map_exception = True
    try:
        for table in rated.iter_batches(batch_size=None, batch_format="pyarrow"):
            for row in map(to_row, table.select(RATING.names).to_pylist()):
                _settle(geval, row["usage"])
                if (row["error"] or "").startswith(STOPPED):
                    ended = StopError(row["error"].removeprefix(STOPPED))
                else:
                    yield row
    except ray.exceptions.RayTaskError as error:
        if not isinstance(error.cause, GEvalError):
            raise
        said = str(error.cause).partition("\nFailed to ")[0]  # Ray adds what it thinks of retries
        ended = type(error.cause)(said)
    if ended:  # outside of the handler: Ray's error holds on to the workers
        raise ended


def _settle(geval: GEval, usage: Mapping[str, Any]) -> None:
    """Count what was spent elsewhere, so that the next criterion has what is left."""
    if isinstance(geval.judge, LiteLLMJudge):
        geval.judge.budget.requests += usage["requests"]
        geval.judge.budget.cost += usage["cost"] or 0.0


def _tables(samples: Iterable[Sample]) -> Iterator[pa.Table]:
    rows = (vars(sample) | {"scores": json.dumps(dict(sample.human))} for sample in samples)
    while block := list(islice(rows, 16 * BATCH)):
        yield pa.Table.from_pylist(block, SAMPLE)
