"""What `--engine ray` adds to `geval score` and `geval rank`: a cluster, and ratings and rankings that come from it."""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from geval_adapters import (
    Comparer,
    GEval,
    GEvalError,
    InputError,
    LiteLLMJudge,
    RankedDocument,
    Sample,
    StopError,
    Verdict,
)
from geval_adapters.judge import run
from geval_adapters.runs import Engine, Groups, Known, abreast

from .dataset import BATCH, STOPPED, cpus, divide, pool, rate_dataset, workers_of
from .folder import RatingsFolder
from .schema import RATING, to_row

if TYPE_CHECKING:
    import ray.data

__all__ = ["connect", "engine", "rank", "rate"]

SAMPLE = pa.schema(
    {
        name: pa.string()
        for name in ("output", "source", "reference", "context", "id", "doc_id", "system_id", "scores", "rubric")
    }
    | {"left_out": pa.int64()}
)


def engine(address: str | None) -> Engine:
    """The cluster at `address` as what does the work of a run; see `connect`."""
    connect(address)
    return Engine(rate, rank, RatingsFolder)


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

    total, blocks = 0, []
    for table in _tables(samples):
        total += table.num_rows
        blocks.append(ray.put(table))
    if not blocks:
        return
    spent: StopError | None = None
    workers = min(cpus(), ceil(total / BATCH))
    for table in _computed(rate_dataset(ray.data.from_arrow_refs(blocks), geval, concurrency=workers)):
        for row in map(to_row, table.select(RATING.names).to_pylist()):
            _settle(geval, row["usage"])
            if (row["error"] or "").startswith(STOPPED):
                spent = StopError(row["error"].removeprefix(STOPPED))
            else:
                yield row
    if spent:
        raise spent


async def rank(
    comparer: Comparer, groups: Groups, known: Known, keep: Callable[[Verdict], None], **options: Any
) -> AsyncGenerator[tuple[str | None, RankedDocument]]:
    """Rank documents as `geval_adapters.runs.rank_here` does, each by one of a cluster's workers.

    A document's new verdicts come to `keep` when all are there, or when its worker cannot go on.

    Raises:
        InputError: as `Comparer.arank` does.
        JudgeError: as from `rate`.
    """
    import ray.data

    answered: dict[str | None, dict[tuple[str, str], Verdict]] = {name: {} for name in groups}
    for pair, verdict in known.items():
        answered[verdict.first.doc_id][pair] = verdict
    documents = [ray.put(_packed((name, samples, answered[name]))) for name, samples in groups.items()]
    workers = workers_of(comparer.judge, min(cpus(), len(groups)))
    calls = max(1, min(abreast(comparer, groups), len(groups)) // workers)
    ranked = ray.data.from_arrow_refs(documents).map_batches(
        _DocumentRanker,
        batch_size=None,
        fn_constructor_args=(comparer, workers, options),
        **pool(workers, calls),
    )
    spent: StopError | None = None
    for table in _computed(ranked):
        for name, document, verdicts, error in _unpacked(table):
            for verdict in verdicts:
                keep(verdict)
            if document:
                yield name, document
            elif isinstance(error, StopError):  # the other workers may have something left
                spent = StopError(f"of the worker's part of the budget, {error}")
            else:
                raise error
    if spent:
        raise spent


class _DocumentRanker:
    """Ranks a document, and tells its name, its ranking, the new verdicts, and why there is no ranking."""

    def __init__(self, comparer: Comparer, workers: int, options: dict[str, Any]) -> None:
        divide(comparer.judge, workers)
        self.comparer = comparer
        self.options = options

    def __call__(self, table: pa.Table) -> pa.Table:
        ((name, samples, known),) = _unpacked(table)
        new: list[Verdict] = []
        try:
            document = run(self.comparer.arank(samples, known=known, keep=new.append, **self.options))
        except GEvalError as error:  # what has been answered is paid for
            return _packed((name, None, new, error))
        return _packed((name, document, new, None))


def _computed(ds: ray.data.Dataset) -> Iterator[pa.Table]:
    """The dataset's blocks, as they come; what this package raised in a worker is raised here."""
    import ray.data

    signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's would wait for an await, and there is none
    ds.context.enable_progress_bars = False
    ds.context.raise_original_map_exception = True
    ended: GEvalError | None = None
    try:
        yield from ds.iter_batches(batch_size=None, batch_format="pyarrow")
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


def _packed(value: Any) -> pa.Table:
    """A value as a table that Ray hands on as it is."""
    return pa.table({"pickled": pa.array([pickle.dumps(value)], pa.large_binary())})


def _unpacked(table: pa.Table) -> Iterator[Any]:
    return map(pickle.loads, table["pickled"].to_pylist())  # written by `_packed`, on this cluster


def _tables(samples: Iterable[Sample]) -> Iterator[pa.Table]:
    rows = (
        vars(sample)
        | {"scores": json.dumps(dict(sample.human)), "rubric": sample.rubric and json.dumps(sample.rubric.to_list())}
        for sample in map(_texts_alone, samples)
    )
    while block := list(islice(rows, 16 * BATCH)):
        yield pa.Table.from_pylist(block, SAMPLE)


def _texts_alone(sample: Sample) -> Sample:
    if sample.images:
        raise InputError(f"sample {sample.id}: has images, which --engine ray does not send: use --engine local")
    return sample
