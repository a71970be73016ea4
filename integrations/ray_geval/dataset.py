"""Rating and ranking the rows of a Ray dataset by a pool of workers, each with a judge of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from geval_adapters import Comparer, Criterion, GEval, InputError, Judge, LiteLLMJudge, Sample, StopError, Usage
from geval_adapters.judge import Budget, run
from geval_adapters.judged import judged
from geval_adapters.samples import ALIASES, numbered, sample_of

from .schema import RANKING, RATING, to_table

if TYPE_CHECKING:
    import ray.data

BATCH = 128
"""Rows that a worker is handed at once: enough that handing them over takes no time beside rating them."""

STOPPED = "stopped: "
"""How the error of a row begins that was not rated because its worker's part of the budget was spent."""


def rate_dataset(
    ds: ray.data.Dataset, geval: GEval, *, concurrency: int | None = None, batch_size: int = BATCH
) -> ray.data.Dataset:
    """Append the columns of `RATING` to a dataset, lazily, as `map_batches` does.

    Rows are streamed: neither this process nor the object store ever holds all of them. Their number and order are
    kept (for that, `preserve_order` is set for the dataset's execution). Neighbours of the same source (equal `doc_id`,
    or equal source) go to one worker, one after the other, so that the judge's prefix cache serves them: a batch ends
    where a source does. Cut are only a source of more than `batch_size` rows, and one at every sixteenth batch or at
    the end of a large block. Where the rows of a source lie apart, `ds.sort("doc_id")` brings them together first:
    that would not stream, and is not done unasked.

    A row that cannot be rated is a row with an `error` and no score; so is one that a worker's part of the budget did
    not reach. A worker that dies is started again, as often as it takes, and its batches are asked again: no row is
    lost or there twice, but what it had asked is paid for twice, and its part of the budget begins anew.

    Args:
        ds: rows with `output` and what else the criterion needs, under the names that `geval score` knows. Columns
            named as in `RATING` are replaced. Rows without `id`, or `doc_id` and `system_id`, have an empty one.
        geval: rates them. It travels without a key: the workers take theirs from their environment.
        concurrency: workers, each with a judge and connections of its own; the default is one per CPU of the cluster.
            The judge's limits (concurrency, rpm, tpm, max_cost, max_requests) are totals: each worker gets an equal
            part, and there are never more workers than requests allowed at once.
        batch_size: rows that a worker is handed at once, and that are lost to a crash.

    Raises:
        InputError: a dataset without the columns that the criterion needs, as far as its schema is known.
        JudgeError: with `steps="auto"`, the judge cannot be asked. Raised by a worker, it ends the execution as
            any error in a user's function does: as the cause of a `RayTaskError`.
    """
    _check_columns(ds, geval.criterion)
    geval.prepare()
    batches = ds.map_batches(
        _cut,
        batch_size=16 * batch_size,  # small blocks are put together, so that few sources end with a block
        batch_format="pyarrow",
        fn_kwargs={"size": batch_size},
    ).repartition(target_num_rows_per_block=1)
    workers = workers_of(geval.judge, concurrency)
    rated = batches.map_batches(_Rater, batch_size=None, fn_constructor_args=(geval, workers), **pool(workers))
    rated.context.execution_options.preserve_order = True
    return rated


def rank_dataset(
    ds: ray.data.Dataset, comparer: Comparer, *, concurrency: int | None = None, **options: Any
) -> ray.data.Dataset:
    """Rank the rows of each document among themselves, and append the columns of `RANKING`.

    Candidates of one document have the same `doc_id`, or else the same source, wherever they lie: Ray shuffles the
    dataset by it first. A document's rows come out together, best first; documents come in no particular order.

    Args:
        ds, concurrency: as for `rate_dataset`.
        comparer: compares them.
        options: passed to `Comparer.rank`: select, budget, method, seed.

    Raises:
        InputError: as for `rate_dataset`.
        JudgeError: from a worker, as for `rate_dataset`; a `StopError` among them, when its budget is spent.
    """
    _check_columns(ds, comparer.criterion)
    workers = workers_of(comparer.judge, concurrency)
    documents = ds.map_batches(_with_document, batch_format="pyarrow").groupby("doc_id", num_partitions=4 * workers)
    return documents.map_groups(_Ranker, fn_constructor_args=(comparer, workers, options), **pool(workers))


# --- how many workers, and what each may do --------------------------------------------------------------------------


def cpus() -> int:
    """How many CPUs the cluster has."""
    import ray

    return int(ray.cluster_resources().get("CPU", 1))


def workers_of(judge: Judge, asked: int | None) -> int:
    """How many workers there are to be: none that could not make a request."""
    most = asked or cpus()
    if isinstance(judge, LiteLLMJudge) and not _serves_itself(judge):
        most = min(most, judge.concurrency)
        if judge.budget.max_requests is not None:
            most = min(most, judge.budget.max_requests - judge.budget.requests)
    return max(1, most)


def divide(judge: Judge, workers: int) -> None:
    """Leave the judge its part of what all workers may do together."""
    if not isinstance(judge, LiteLLMJudge) or _serves_itself(judge):
        return
    judge.concurrency //= workers
    judge.rpm, judge.tpm = (total and total / workers for total in (judge.rpm, judge.tpm))
    most, cost = judge.budget.max_requests, judge.budget.max_cost
    judge.budget = Budget(
        None if most is None else (most - judge.budget.requests) // workers,
        None if cost is None else (cost - judge.budget.cost) / workers,
    )


def _serves_itself(judge: Judge) -> bool:
    """Whether each worker has a model of its own, so that there is nothing to divide."""
    return judge.name.startswith("local/")


def pool(workers: int, calls: int = 2) -> dict[str, Any]:
    """Workers that mostly wait for replies, so that half a CPU will do; one CPU is left for reading.

    Each is handed several batches at once, so that while the last replies to one are awaited, the next is under way;
    none is handed more than it works on, or the one that starts first would have what another could do.
    """
    import ray

    return {
        "batch_format": "pyarrow",
        "num_cpus": min(0.5, (cpus() - 1) / workers),
        "compute": ray.data.ActorPoolStrategy(
            size=workers,
            max_tasks_in_flight_per_actor=calls,
            max_concurrent_calls_per_actor=calls,
            enable_true_multi_threading=True,
        ),
    }


# --- what the workers do ---------------------------------------------------------------------------------------------


class _Rater:
    """Rates batches as `_cut` makes them."""

    def __init__(self, geval: GEval, workers: int) -> None:
        divide(geval.judge, workers)
        self.geval = geval

    def __call__(self, packed: pa.Table) -> pa.Table:
        table = pa.ipc.open_stream(packed["batch"][0].as_buffer()).read_all()
        samples = [_sample(row, self.geval.criterion) for row in table.to_pylist()]
        rows: dict[int, dict[str, Any]] = {}

        usable = [each for each in samples if isinstance(each, Sample)]

        async def rate() -> str:
            """Rate them all; why that ended early, if so."""
            try:
                async for rating in self.geval.arate_many(usable, as_completed=True):
                    rows[id(rating.sample)] = rating.to_dict()
            except StopError as error:  # what has been rated is paid for, and the other workers may have something left
                return f"{STOPPED}of the worker's part of the budget, {error}"
            return ""

        stopped = run(rate())
        criterion = self.geval.criterion.name
        return _append(
            table,
            [
                (rows.get(id(each)) or _failed(vars(each), criterion, stopped)) if isinstance(each, Sample) else each
                for each in samples
            ],
            RATING,
        )


class _Ranker:
    """Ranks the rows of one document."""

    def __init__(self, comparer: Comparer, workers: int, options: dict[str, Any]) -> None:
        divide(comparer.judge, workers)
        self.comparer = comparer
        self.options = options

    def __call__(self, table: pa.Table) -> pa.Table:
        criterion = self.comparer.criterion
        seen: Counter[str] = Counter()
        places: dict[str, int] = {}
        good, order, rows = [], [], []
        for place, row in enumerate(table.to_pylist()):
            sample = _sample(row, criterion)
            if isinstance(sample, Sample):
                good.append(numbered(sample, place + 1, seen))
                places[good[-1].id] = place
            else:
                order.append(place)
                rows.append(sample)
        ranked = list(self.comparer.rank(good, **self.options).rows(criterion)) if good else []
        order = [places[row["id"]] for row in ranked] + order
        return _append(table.take(pa.array(order)), ranked + rows, RANKING)


def _cut(table: pa.Table, size: int) -> Iterator[pa.Table]:
    """The table in batches of `size` rows or a few more, so that neighbours of one source are in the same.

    Each is one row of bytes, so that Ray hands it on as it is. A source of more than `size` rows is cut.
    """
    columns = [table[name].to_pylist() for name in ("doc_id", *ALIASES["source"]) if name in table.column_names]
    sources = [next((value for value in row if value is not None), None) for row in zip(*columns, strict=True)]
    start = 0
    for end in range(1, len(table) + 1):
        within = end < len(table) and sources and sources[end] is not None and sources[end] == sources[end - 1]
        if end == len(table) or end - start >= size * (2 if within else 1):
            batch = table.slice(start, end - start)
            packed = pa.BufferOutputStream()
            with pa.ipc.new_stream(packed, batch.schema) as stream:
                stream.write_table(batch)
            yield pa.table({"batch": pa.array([packed.getvalue().to_pybytes()], pa.large_binary())})
            start = end


def _with_document(table: pa.Table) -> pa.Table:
    """The table with the `doc_id` that its samples have."""
    columns = {name: table[name].to_pylist() for name in ("doc_id", *ALIASES["source"]) if name in table.column_names}
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    documents = [sample_of({"output": "", **row}).doc_id for row in rows]
    return _append(table, [{"doc_id": document} for document in documents], pa.schema([RATING.field("doc_id")]))


def _check_columns(ds: ray.data.Dataset, criterion: Criterion) -> None:
    """Refuse a dataset that cannot be rated, where its columns are known before anything is executed."""
    schema = ds.schema(fetch_if_missing=False)
    for field in ("output", *criterion.needs) if schema else ():
        if not set(ALIASES[field]) & set(schema.names):
            raise InputError(
                f"the dataset has no column {' or '.join(ALIASES[field])}: it has {', '.join(schema.names)};"
                f' ds.rename_columns({{"…": "{field}"}}) gives one that name'
            )


def _sample(row: Mapping[str, Any], criterion: Criterion) -> Sample | dict[str, Any]:
    """The row as a sample, or the row that says why it is none."""
    try:
        sample, *others = judged(sample_of(row), criterion)
        if others:
            raise InputError(f"criterion {criterion.name!r} judges each part of a row: give each a row of its own")
        if absent := sample.missing(criterion.needs):
            raise InputError(f"no {' and no '.join(absent)}")
    except InputError as error:
        return _failed(row, criterion.name, str(error))
    return sample


def _failed(row: Mapping[str, Any], criterion: str, error: str) -> dict[str, Any]:
    """A row that was not rated, and why."""
    texts = {name: row.get(name) for name in ("id", "doc_id", "system_id", "output")}
    return {
        **{name: None if text is None else str(text) for name, text in texts.items()},
        **{"criterion": criterion, "error": error, "usage": vars(Usage())},
    }


def _append(table: pa.Table, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """The table with the rows' columns, in place of its own of the same names."""
    table = table.drop_columns([name for name in schema.names if name in table.column_names])
    for field, column in zip(schema, to_table(rows, schema).columns, strict=True):
        table = table.append_column(field, column)
    return table
