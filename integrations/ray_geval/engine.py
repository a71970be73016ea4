"""What `geval score --engine ray` adds to `geval score`: a cluster, and ratings that come from it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice

import pyarrow as pa

from geval_adapters import GEval, InputError, JudgeError, Rating, Sample
from geval_adapters.prompts import sendable

from .dataset import BATCH, rate_dataset
from .schema import to_rating

SAMPLE = pa.schema(
    {name: pa.string() for name in ("output", "source", "reference", "context", "id", "doc_id", "system_id", "scores")}
)


def connect(address: str | None) -> None:
    """Connect to the cluster at `address`, or where `ray.init()` finds one, else start one on this machine.

    Nothing is reported to anyone: Ray's usage statistics are off, as far as the environment does not say otherwise.

    Raises:
        InputError: Ray is not installed, or no cluster can be reached there.
    """
    # Read when Ray is imported. Under `uv run`, Ray would else build an environment for each worker.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
    except ImportError:
        raise InputError("--engine ray needs Ray: pip install 'geval-adapters[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"no Ray cluster at {address or 'this machine'}: {error}") from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)


def ratings(geval: GEval, samples: Iterable[Sample]) -> Iterator[Rating]:
    """The samples' ratings, in their order, from a cluster's workers.

    The samples are handed to Ray's object store, which spills to disk what does not fit; the ratings are streamed.

    Raises:
        JudgeError: a worker's judge cannot be asked.
    """
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.raise_original_map_exception = True
    blocks = [ray.put(table) for table in _tables(samples)]
    try:
        for table in rate_dataset(ray.data.from_arrow_refs(blocks), geval).iter_batches(
            batch_size=None, batch_format="pyarrow"
        ):
            yield from map(to_rating, table.to_pylist())
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (InputError, JudgeError)):
            raise error.cause from None
        raise


def _tables(samples: Iterable[Sample]) -> Iterator[pa.Table]:
    rows = (
        {name: sendable(text) for name, text in asdict(sample).items() if isinstance(text, str)}
        | {"scores": json.dumps(dict(sample.human))}
        for sample in samples
    )
    while block := list(islice(rows, 16 * BATCH)):
        yield pa.Table.from_pylist(block, SAMPLE)
