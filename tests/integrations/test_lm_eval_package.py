"""What is installed: the harness finds the tasks by itself, and they are those of the source."""

from __future__ import annotations

import filecmp
import json
import re
import runpy
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import lm_eval
import pytest
import yaml
from harness import TASKS
from lm_eval.__main__ import cli_evaluate
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import TaskIndex
from typer.testing import CliRunner

from geval_adapters import load_criteria
from geval_adapters.cli.app import app
from geval_adapters.prompts import Prompt, wording
from lm_eval_geval import listing

INSTALLED = Path(lm_eval.__file__).parent / "tasks" / "geval"


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def test_the_harness_holds_the_same_files_as_the_source():
    assert files(INSTALLED) == files(TASKS), "reinstall: the task files are copied when the package is installed"
    assert filecmp.cmpfiles(INSTALLED, TASKS, files(TASKS), shallow=False)[0] == files(TASKS)


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


def test_the_harness_validates_every_task_without_being_told_a_path(monkeypatch, capsys, manager):
    # Of all that the harness brings, only these: reading some fourteen thousand other files takes long.
    monkeypatch.setattr(TaskIndex, "_iter_yaml_files", lambda root: sorted(root.glob("geval/**/*.yaml")))
    monkeypatch.setattr("sys.argv", ["lm_eval", "validate", "--tasks", ",".join(manager.all_tasks)])
    cli_evaluate()
    assert "All tasks found and valid" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["score_only", "free_text", "rate_explain", "analyze_rate"])
def test_a_task_leaves_the_room_and_stops_where_its_form_does(form):
    text = re.sub(r"!function \S+", "x", (TASKS / f"_{form}_yaml").read_text())
    sent = yaml.safe_load(text)["generation_kwargs"]
    prompt = Prompt(load_criteria()["fluency"], form)
    assert sent["max_gen_toks"] >= prompt.room(explain=False)
    assert prompt.stop(explain=False) in (None, *sent["until"])


def test_no_wording_stands_in_the_task_files():
    words = {wording("tasks")[task]["intro"][:30] for task in wording("tasks")}
    words |= {criterion.definition[:30] for criterion in load_criteria().values()}
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
