"""Tells lm-evaluation-harness where the tasks of `lm_eval_geval` are, as long as it does not ask by itself.

The harness looks for tasks in its own folder and in those given as `--include_path`. An entry point for tasks
(`lm_eval.tasks`) is declared in this project, but no release of the harness reads it yet. So `geval_lm_eval_hook.pth`,
a line that Python runs when it starts, waits for one import, that of `lm_eval.tasks.manager`, and only then loads this
module: what is found there looks into our folder, too. No file of ours lies in the harness's package, nothing else is
touched, and the start of an interpreter takes some .1 ms longer.

`GEVAL_LM_EVAL=0` in the environment turns it off. Where the harness reads the entry point, this does nothing.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_asked = False


def find_spec(name: str) -> ModuleSpec | None:
    """What the other finders find, with a loader that calls `extend` on the module."""
    global _asked
    if _asked:  # by the line below: the other finders' turn
        return None
    _asked = True
    try:
        spec = importlib.util.find_spec(name)
    finally:
        _asked = False
    if spec and spec.loader:
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            extend(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def extend(manager: Any) -> None:
    """Let the harness's task manager index our folder behind its own: tasks of `--include_path` still go before ours.

    Nothing happens where our folder is indexed already, or the package in it was imported: the entry point was read.
    """
    package = importlib.util.find_spec("lm_eval_geval")
    if not package or not package.submodule_search_locations or not hasattr(manager, "TaskIndex"):
        return
    builtin, ours = Path(manager.__file__).parent, Path(package.submodule_search_locations[0], "tasks")
    upstream = manager.TaskIndex

    class TaskIndex(upstream):  # type: ignore[misc, valid-type]
        @staticmethod
        def build(paths: Iterable[Path], **options: Any) -> Any:
            folders = list(paths)
            read = "lm_eval_geval.tasks" in sys.modules or ours.resolve() in [Path(each).resolve() for each in folders]
            if builtin in folders and not read:
                folders.insert(folders.index(builtin) + 1, ours)
            return upstream.build(folders, **options)

    manager.TaskIndex = TaskIndex
