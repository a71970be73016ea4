"""What the tests of the lm-eval tasks share: a scripted model, and a run of the unmodified harness with it."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GEVAL_TEST_DATA", ROOT.parent / "shared" / "data"))
TASKS = ROOT / "integrations" / "lm_eval_geval" / "tasks"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the rated data is not in {DATA} (GEVAL_TEST_DATA)")


class Scripted(LM):
    """A model that answers by a rule.

    Args:
        reply: what it writes for a document, and for which repetition of the request.
        loglikelihood: the log-likelihood of a continuation, for a document and the continuation's place in it.
    """

    def __init__(self, reply=None, loglikelihood=None):
        super().__init__()
        self._reply = reply
        self._loglikelihood = loglikelihood

    def generate_until(self, requests, disable_tqdm=False):
        repeated = Counter()
        replies = []
        for request in requests:
            replies.append(self._reply(request.doc, repeated[id(request)]))
            repeated[id(request)] += 1
        return replies

    def loglikelihood(self, requests, disable_tqdm=False):
        return [(self._loglikelihood(request.doc, request.idx), False) for request in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError


@cache
def _manager(metadata):
    return TaskManager(include_path=str(TASKS), include_defaults=False, metadata=dict(metadata))


def evaluate(task, model, *, limit=None, data=DATA, **metadata):
    """Run a task or group as `lm_eval` does; the result as the harness returns it."""
    manager = _manager(tuple(sorted({"data": str(data), **metadata}.items())))
    return simple_evaluate(model, tasks=[task], task_manager=manager, limit=limit, bootstrap_iters=0)


def figures(result, task):
    """A task's metrics by name."""
    return {
        key.partition(",")[0]: value
        for key, value in result["results"][task].items()
        if "," in key and "_stderr" not in key
    }
