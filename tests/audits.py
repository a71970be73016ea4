"""Audits of synthetic judges, fast."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
import synthetic

from geval_adapters import load_criteria
from geval_adapters.agreement import intervals
from geval_adapters.audit import Audit, AuditRun, Request

CONSISTENCY = {"summeval/consistency": load_criteria()["summeval/consistency"]}
BOTH = CONSISTENCY | {"summeval/fluency": load_criteria()["summeval/fluency"]}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Audits resample little, and keep what they write to themselves; for modules that import it."""
    monkeypatch.setitem(intervals.bootstrap.__kwdefaults__, "resamples", 120)
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path / "cache"))


def run(judge: synthetic.Unbiased, checks: Sequence[str], given: dict = CONSISTENCY, **options) -> Audit:
    samples = options.pop("samples", None) or synthetic.samples()
    run = AuditRun(Request("x.jsonl", samples, given, judge, checks, **{"budget": 4000} | options))
    asyncio.run(run.ask())
    return run.result()


def verdicts(found: Audit) -> dict[str, str]:
    return {check.name: check.verdict for check in found.checks}
