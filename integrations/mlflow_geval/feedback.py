"""What an experiment's traces hold, as rows of ours: samples to be rated, and people's feedback as their labels."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import mlflow
from mlflow.entities import AssessmentSourceType, Feedback, Trace

from geval_adapters import InputError

from .fields import as_sample

log = logging.getLogger("geval_adapters")


def samples(experiment: str) -> list[dict[str, Any]]:
    """The traces' inputs and outputs as rows for `geval score`, each with its trace's id.

    Raises:
        InputError: there is no such experiment.
    """
    found = []
    for trace in _traces(experiment):
        inputs, outputs = (json.loads(text) if text else None for text in (trace.data.request, trace.data.response))
        if outputs is not None:  # else it failed
            sample = as_sample(inputs, outputs, trace=trace)
            texts = {"source": sample.source, "output": sample.output, "context": sample.context}
            found.append({"id": trace.info.trace_id} | {name: text for name, text in texts.items() if text is not None})
    return found


def labels(experiment: str) -> list[dict[str, Any]]:
    """People's feedback as rows for `geval estimate --labels`: numbers, and true as 1 and false as 0.

    Feedback that was corrected counts as it stands now; other values (texts) are left out, and counted in a warning.

    Raises:
        InputError: there is no such experiment.
    """
    found, other = [], 0
    for trace in _traces(experiment):
        for each in trace.info.assessments:
            people = isinstance(each, Feedback) and each.source.source_type == AssessmentSourceType.HUMAN
            if not people or each.valid is False:
                continue
            if not isinstance(each.value, int | float):
                other += 1
                continue
            row = {
                "id": each.trace_id,
                "criterion": each.name,
                "score": float(each.value),
                "annotator": each.source.source_id,
            }
            found.append(row | ({"note": each.rationale} if each.rationale else {}))
    if other:
        log.warning("%d feedbacks of people in %s are no numbers, and were left out", other, experiment)
    return found


def _traces(experiment: str) -> Iterator[Trace]:
    known = mlflow.get_experiment_by_name(experiment)
    if known is None:
        raise InputError(f"no experiment {experiment!r} at {mlflow.get_tracking_uri()}")
    yield from mlflow.search_traces(locations=[known.experiment_id], return_type="list")
