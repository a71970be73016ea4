"""The plan of the house: what may import what, how long a file may be, and what must stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
CORE = "geval_adapters"
ADAPTERS = (
    "deepeval_geval",
    "inspect_geval",
    "langchain_geval",
    "lm_eval_geval",
    "mlflow_geval",
    "opentelemetry_geval",
    "promptfoo_geval",
    "pytest_geval",
    "ray_geval",
    "trl_geval",
)

FLOORS = [
    ["errors"],
    ["hub", "inspect_logs", "fence"],
    ["rows", "content", "rubrics", "settings_file", "seen"],
    ["criteria"],
    ["samples", "structured", "messages"],
    ["judge.base", "signature", "examples", "judged"],
    ["prompts", "reading"],
    ["judge", "agreement", "order"],
    ["ranking", "recipes"],
    ["rating", "comparison"],
    ["audit", "labels"],
    ["jury"],
    ["tune"],
    ["report"],
    ["runs"],
    ["cli"],
    ["__main__"],
]
"""From the ground up: a room imports only from the floors below its own."""

LONGEST = 400
LONGER = {
    "benchmarks/throughput.py",
    "tests/agreement/test_agreement.py",
    "tests/audit/test_audit.py",
    "tests/ranking/test_ranking.py",
    "tests/runs/test_runs.py",
}
"""Files that are too long, still. This list only ever shrinks."""

HEAVY = {
    "aiohttp", "datasets", "jinja2", "langchain_classic", "langchain_core", "langsmith", "litellm", "lm_eval",
    "matplotlib", "numpy", "openai", "pyarrow", "ray", "scipy", "yaml",
}  # fmt: skip


@cache
def modules() -> dict[str, Path]:
    """All modules that are shipped, by their dotted names."""
    folders = [ROOT / CORE, *(ROOT / "integrations" / adapter for adapter in ADAPTERS)]
    found = {}
    for folder in folders:
        for file in folder.rglob("*.py"):
            parts = file.relative_to(folder.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def imports(name: str) -> Iterator[tuple[str, str | None]]:
    """What a module imports, in functions and for type checkers, too: a module, and the name taken from it, if any."""
    package = name if modules()[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                yield (whole, None) if whole in modules() else (source, alias.name)


def room(name: str) -> str:
    """The room that a module of the core lies in."""
    inner = name.removeprefix(f"{CORE}.")
    return inner if inner == "judge.base" else inner.partition(".")[0]


def core() -> list[str]:
    return [name for name in modules() if name.startswith(f"{CORE}.")]


def against_the_plan() -> dict[tuple[str, str], list[str]]:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    found: dict[tuple[str, str], list[str]] = {}
    for name in core():
        for imported, _ in imports(name):
            if imported == CORE or imported.startswith(f"{CORE}."):
                pair = room(name), room(imported) if imported != CORE else CORE
                if pair[0] != pair[1] and not floor.get(pair[1], len(FLOORS)) < floor[pair[0]]:
                    found.setdefault(pair, []).append(name)
    return found


def test_every_room_has_its_floor():
    assert {room(name) for name in core()} == {room for rooms in FLOORS for room in rooms}


def test_a_room_imports_only_from_the_floors_below():
    assert against_the_plan() == {}


def test_no_module_imports_itself_by_a_circle():
    edges = {name: {imported for imported, _ in imports(name) if imported in modules()} - {name} for name in modules()}
    for package in [name for name, file in modules().items() if file.name == "__init__.py"]:
        # A package hands on what its files hold; that its files name their neighbours through it would be a circle.
        edges[package] = {each for each in edges[package] if each.startswith(f"{package}.")}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            for each in edges[name]:
                visit(each, (*path, name))
            done.add(name)

    for name in edges:
        visit(name, ())


def too_long() -> list[str]:
    files = [file for folder in (CORE, "integrations", "benchmarks", "tests") for file in (ROOT / folder).rglob("*.py")]
    return sorted(
        str(file.relative_to(ROOT)) for file in files if len(file.read_text(encoding="utf-8").splitlines()) > LONGEST
    )


def test_no_file_is_longer_than_one_reads_at_a_time():
    assert [name for name in too_long() if name not in LONGER] == []


def handed_on(package: str) -> set[str]:
    """A package's `__all__`."""
    for node in tree(package).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return {str(name) for name in ast.literal_eval(node.value)}
    return set()


def test_adapters_take_only_what_the_core_hands_on():
    private = []
    for name in modules():
        if name.partition(".")[0] not in ADAPTERS:
            continue
        for imported, taken in imports(name):
            if imported.partition(".")[0] != CORE:
                continue
            is_package = modules()[imported].name == "__init__.py"
            public = taken in handed_on(imported) if is_package and taken else not (taken or "").startswith("_")
            if imported.count(".") > 1 or not public:
                private.append(f"{name}: {imported}.{taken}")
    assert private == []


def test_the_core_names_no_adapter_and_no_framework():
    frameworks = {"langchain_classic", "langsmith", "lm_eval", "ray"}
    named = {
        (name, imported)
        for name in core()
        for imported, _ in imports(name)
        if imported.partition(".")[0] in {*ADAPTERS, *frameworks}
    }
    assert named == set()


def test_what_begins_with_an_underscore_stays_in_its_file():
    taken = [
        f"{name}: {imported}.{what}"
        for name in modules()
        for imported, what in imports(name)
        if imported in modules() and what and what.startswith("_") and not what.startswith("__")
    ]
    assert taken == []


def test_every_room_says_what_it_hands_on_and_has_it():
    for name, file in modules().items():
        if file.name != "__init__.py" or name == "lm_eval_geval.tasks":
            continue
        assert ast.get_docstring(tree(name)), name
        bound = {imported.rpartition(".")[2] if what is None else what for imported, what in imports(name)}
        bound |= {node.name for node in tree(name).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        bound |= {getattr(target, "id", "") for node in tree(name).body for target in targets(node)}
        assert handed_on(name), name
        assert handed_on(name) <= bound, (name, handed_on(name) - bound)


def targets(node: ast.stmt) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def test_no_module_is_hidden_by_something_of_its_name():
    hidden = []
    for name, file in modules().items():
        if file.name == "__init__.py":
            defined = {node.name for node in tree(name).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
            defined |= {what for _, what in imports(name) if what}
            hidden += [f"{name}.{each}" for each in defined if f"{name}.{each}" in modules()]
    assert hidden == []


@cache
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def distribution(requirement: str) -> str:
    return re.split(r"[\[<>=~!; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_every_package_that_is_imported_is_asked_for():
    needed = {distribution(each) for each in project()["dependencies"]}
    extras = {distribution(each) for extra in project()["optional-dependencies"].values() for each in extra}
    installed = packages_distributions()
    missing = set()
    for name in modules():
        for imported, _ in imports(name):
            top = imported.partition(".")[0]
            if top in sys.stdlib_module_names or top in {CORE, *ADAPTERS}:
                continue
            # What is not installed here goes by its own name, or is a namespace whose first package is its API.
            brought = {each.lower().replace("_", "-") for each in installed.get(top, [top, f"{top}-api"])}
            if not brought & (needed | extras):
                missing.add((name, top))
    assert missing == set()


def test_what_only_an_extra_brings_is_imported_where_it_is_used():
    needed = {distribution(each) for each in project()["dependencies"]}
    installed = packages_distributions()
    at_once = set()
    for name in core():
        for node in tree(name).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for each in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {CORE}:
                if not {found.lower().replace("_", "-") for found in installed.get(each, [each])} & needed:
                    at_once.add((name, each))
    assert at_once == set()


@pytest.mark.parametrize(
    "start",
    ["import geval_adapters", "from geval_adapters.cli import main; sys.argv = ['geval', '--help']; main()"],
    ids=["import", "help"],
)
def test_the_start_is_light(start):
    code = f"import sys\ntry:\n    {start}\nexcept SystemExit:\n    pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_a_first_rating_loads_only_what_it_needs(server, tmp_path):
    row = tmp_path / "row.jsonl"
    row.write_text('{"output": "A text.", "source": "A source."}\n')
    options = ["score", row, "--criterion", "summeval/coherence", "--model", "openai/gpt-4o-mini"]
    code = (
        "import sys, atexit; from geval_adapters.cli import main; atexit.register(lambda: print(*sys.modules)); main()"
    )
    command = [sys.executable, "-c", code, *options, "--output", tmp_path / "rated.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert server.requests
    assert (HEAVY - {"aiohttp", "jinja2", "yaml"}) & set(done.stdout.split()) == set()
