"""What is installed: the harness finds the tasks by itself, and they are those of the source."""

from __future__ import annotations

import filecmp
import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from pathlib import Path

import lm_eval
import pytest
import yaml
from harness import TASKS
from lm_eval.tasks import TaskManager
from typer.testing import CliRunner

from geval_adapters import load_criteria
from geval_adapters.cli.app import app
from geval_adapters.prompts import Prompt, wording
from lm_eval_geval import harness, listing

ROOT = TASKS.parents[2]


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def test_no_file_of_ours_lies_inside_the_harness():
    names = [str(file) for file in distribution("geval-adapters").files or []]
    assert names
    assert not [name for name in names if name.startswith("lm_eval/")]
    assert not (Path(lm_eval.__file__).parent / "tasks" / "geval").exists()


def test_the_installed_hook_is_that_of_the_source():
    installed = Path(importlib.util.find_spec("geval_lm_eval_hook").origin)
    for name in ("geval_lm_eval_hook.py", "geval_lm_eval_hook.pth"):
        assert (installed.parent / name).read_text() == (ROOT / "integrations" / name).read_text(), "reinstall"


FAKE = {  # a harness of a few lines, so that this does not read fourteen thousand task files
    "lm_eval/__init__.py": "",
    "lm_eval/tasks/__init__.py": "from lm_eval.tasks.manager import TaskManager",
    "lm_eval/tasks/_index.py": """
class TaskIndex:
    @staticmethod
    def build(paths):
        return [str(path) for path in paths]
""",
    "lm_eval/tasks/manager.py": """
from pathlib import Path
from lm_eval.tasks._index import TaskIndex

class TaskManager:
    def __init__(self, include_path=(), include_defaults=True):
        paths = [Path(__file__).parent] if include_defaults else []
        self.paths = TaskIndex().build([*paths, *PLUGINS(), *map(Path, include_path)])
""",
}
ASIS = "PLUGINS = lambda: []"
READS = """
def PLUGINS():
    from importlib.metadata import distribution, entry_points
    return [Path(point.load().__file__).parent for point in entry_points(group="lm_eval.tasks")]
"""


@pytest.fixture
def folders(tmp_path):
    """Which folders a fresh interpreter's task manager looks into, with a harness that ends in these lines."""

    def run(ending, arguments="", **environment):
        for name, text in FAKE.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text + (ending if name.endswith("manager.py") else ""))
        code = f"from lm_eval.tasks import TaskManager; print(*TaskManager({arguments}).paths, sep=chr(10))"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), **environment}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.stderr == ""
        return [name.replace(str(TASKS), "ours").replace(str(tmp_path), "") for name in done.stdout.split()]

    return run


def test_the_task_manager_looks_into_our_folder_after_its_own_and_before_the_user_s(folders):
    assert folders(ASIS) == ["/lm_eval/tasks", "ours"]
    assert folders(ASIS, "include_path=['/mine']") == ["/lm_eval/tasks", "ours", "/mine"]
    assert folders(ASIS, "include_path=['/mine'], include_defaults=False") == ["/mine"]


def test_a_folder_is_indexed_once_also_where_the_harness_reads_the_entry_point_or_the_user_names_it(folders):
    assert folders(READS) == ["/lm_eval/tasks", "ours"]
    assert folders(ASIS, f"include_path=[{str(TASKS)!r}]") == ["/lm_eval/tasks", "ours"]


def test_the_hook_can_be_turned_off(folders):
    assert folders(ASIS, GEVAL_LM_EVAL="0") == ["/lm_eval/tasks"]


def test_the_hook_loads_nothing_until_the_harness_is_imported():
    code = "import sys; print([name for name in sys.modules if 'geval' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_an_older_harness_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr("lm_eval_geval.harness.version", lambda name: "0.4.11")
    with pytest.raises(ImportError, match=r"lm-eval 0\.4\.11 is installed.* 0\.4\.12 or newer: pip install --upgrade"):
        harness.check()


def test_the_task_files_are_what_the_generator_writes(tmp_path):
    runpy.run_path(str(TASKS / "_generate_configs.py"))["write"](tmp_path)
    written = files(tmp_path)
    assert len(written) > 80
    assert filecmp.cmpfiles(tmp_path, TASKS, written, shallow=False)[0] == written
    head = "# Written by _generate_configs.py."
    assert written == [name for name in files(TASKS) if (TASKS / name).read_text().startswith(head)]


@pytest.fixture(scope="module")
def manager():
    return TaskManager(include_path=str(TASKS), include_defaults=False)


def test_every_listed_name_is_one_for_the_harness_and_the_other_way_round(manager):
    listed = listing.tasks()
    assert {name for each in listed for name in (each.name, *each.tasks)} == set(manager.all_tasks)
    assert {each.name for each in listed if each.tasks} == set(manager.all_groups)
    assert all(len(each.about) > 15 and "\n" not in each.about for each in listed)


def test_the_include_path_leads_to_the_tasks():
    assert "summeval_geval" in TaskManager(include_path=str(listing.INCLUDE_PATH), include_defaults=False).all_groups


VALIDATE = """
import sys
from lm_eval.tasks._index import TaskIndex
# Of all that the harness brings, only these: reading some fourteen thousand other files takes long.
TaskIndex._iter_yaml_files = staticmethod(lambda root: sorted(root.glob("*/*geval*.yaml")))
from lm_eval.__main__ import cli_evaluate
cli_evaluate()
"""


def test_the_harness_validates_every_task_without_being_told_a_path(manager):
    arguments = ["validate", "--tasks", ",".join(manager.all_tasks)]
    done = subprocess.run([sys.executable, "-c", VALIDATE, *arguments], capture_output=True, text=True, check=False)
    assert "All tasks found and valid" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize("form", ["score_only", "free_text", "rate_explain", "analyze_rate"])
def test_a_task_leaves_the_room_and_stops_where_its_form_does(form):
    text = re.sub(r"!function \S+", "x", (TASKS / f"_{form}_yaml").read_text())
    sent = yaml.safe_load(text)["generation_kwargs"]
    prompt = Prompt(load_criteria()["fluency"], form)
    assert sent["max_gen_toks"] >= prompt.room(explain=False)
    assert prompt.stop(explain=False) in (None, *sent["until"])


def test_no_wording_stands_in_the_task_files():
    words = {wording("tasks")[task]["intro"][:30] for task in wording("tasks")}
    words |= {criterion.definition[:30] for criterion in load_criteria().values() if criterion.definition}
    for name in files(TASKS):
        text = (TASKS / name).read_text()
        assert not any(each in text for each in words), name


@pytest.mark.parametrize("group", ["lm_eval.metrics", "lm_eval.filters", "lm_eval.aggregations"])
def test_newer_releases_find_the_judge_by_name(group):
    (point,) = (point for point in entry_points(group=group) if point.name == "geval")
    assert callable(point.load())


def test_listing_the_tasks_does_not_wait_for_the_harness():
    code = "import sys, lm_eval_geval.listing as l; l.tasks(); print('lm_eval' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_the_command_line_lists_the_groups_and_where_they_are():
    result = CliRunner().invoke(app, ["tasks"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len([line for line in lines if "_geval" in line or "geval_" in line]) == len(listing.tasks())
    assert str(listing.INCLUDE_PATH) in result.stderr.replace("\n", "")
    listed = json.loads(CliRunner().invoke(app, ["tasks", "--json"]).stdout)
    assert listed["include_path"] == str(listing.INCLUDE_PATH)
    assert "summeval_geval_coherence" in next(t for t in listed["tasks"] if t["name"] == "summeval_geval")["tasks"]
