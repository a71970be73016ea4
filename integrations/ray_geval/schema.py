"""Ratings as Arrow tables: their columns, and the way there and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from geval_adapters.fence import sendable

RATING = pa.schema(
    {
        "id": pa.string(),
        "doc_id": pa.string(),
        "system_id": pa.string(),
        "criterion": pa.string(),
        "score": pa.float64(),
        "normalized": pa.float64(),
        "distribution": pa.map_(pa.float64(), pa.float64()),
        "coverage": pa.float64(),
        "bounds": pa.list_(pa.float64()),
        "std_error": pa.float64(),
        "method": pa.string(),
        "n_valid": pa.int64(),
        "n_failed": pa.int64(),
        "rationale": pa.string(),
        "error": pa.string(),
        "unread": pa.list_(pa.struct({"reply": pa.string(), "reason": pa.string()})),
        "usage": pa.struct(
            {
                "prompt_tokens": pa.int64(),
                "cached_tokens": pa.int64(),
                "completion_tokens": pa.int64(),
                "requests": pa.int64(),
                "cost": pa.float64(),
                "from_cache": pa.int64(),
            }
        ),
        "signature": pa.string(),
        "served": pa.list_(pa.string()),
        "items": pa.list_(
            pa.struct(
                {
                    "criterion": pa.string(),
                    "points": pa.float64(),
                    "tags": pa.list_(pa.string()),
                    "p": pa.float64(),
                    "coverage": pa.float64(),
                    "bounds": pa.list_(pa.float64()),
                    "std_error": pa.float64(),
                    "method": pa.string(),
                    "n_valid": pa.int64(),
                    "n_failed": pa.int64(),
                    "rationale": pa.string(),
                    "error": pa.string(),
                }
            )
        ),
        "human": pa.float64(),
        "output": pa.string(),
        "images": pa.list_(pa.string()),
        "left_out": pa.int64(),
        "reference": pa.string(),
        "sample": pa.string(),
    }
)
"""The columns that `rate_dataset` appends, those of `Rating.to_dict()`; a score that there is none of is null."""

RANKING = pa.schema(
    [
        *(RATING.field(name) for name in ("id", "doc_id", "system_id", "criterion", "score")),
        pa.field("rank", pa.int64()),
        RATING.field("std_error"),
        pa.field("calls", pa.int64()),
        *(RATING.field(name) for name in ("method", "n_valid", "n_failed", "error", "usage", "signature", "human")),
    ]
)
"""The columns that `rank_dataset` appends, those of `RankedDocument.rows()`."""


def to_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema = RATING) -> pa.Table:
    """Rows, as `Rating.to_dict()` and `RankedDocument.rows()` give them, as a table.

    Text that no UTF-8 is (lone surrogates) becomes U+FFFD, as what a judge is shown does.

    >>> to_table([{"id": "a", "distribution": {"4": 0.75, "5": 0.25}}])["distribution"].to_pylist()
    [[(4.0, 0.75), (5.0, 0.25)]]
    """
    stored = []
    for row in rows:
        stored.append({name: sendable(value) if isinstance(value, str) else value for name, value in row.items()})
        if distribution := row.get("distribution"):
            stored[-1]["distribution"] = [(float(score), p) for score, p in distribution.items()]
    return pa.Table.from_pylist(stored, schema)


def to_row(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A row of such a table as `Rating.to_dict()` gives it.

    >>> to_row({"id": "a", "distribution": [(4.0, 0.75), (5.0, 0.25)]})["distribution"]
    {'4': 0.75, '5': 0.25}
    """
    return {**stored, "distribution": {f"{score:g}": p for score, p in stored["distribution"] or ()}}
