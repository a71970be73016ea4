"""What pytest looks at: an adapter, its tests and its page, only where its framework is installed.

Frameworks that hold back what the others take newer stand in an environment of their own (the dependency group
`adapters`); what belongs to them has the marker of that name, and they call nobody while they are tested. What needs a
browser's window is `heavy`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
FRAMEWORKS = {"langchain": "langchain_classic", "lm_eval": "lm_eval", "ray": "ray"}
APART = {"deepeval": "deepeval", "inspect": "inspect_ai", "mlflow": "mlflow", "opentelemetry": "opentelemetry.sdk"}
"""Adapter to the module of its framework; those `APART` are tested in the environment of the group `adapters`."""
TOKENIZERS = Path(str(find_spec("litellm").origin)).parent / "litellm_core_utils" / "tokenizers"
"""LiteLLM brings the encodings that other packages would fetch to count tokens."""

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(TOKENIZERS))


def belongs(adapter: str) -> list[Path]:
    """The adapter's package, and its files of tests."""
    return [ROOT / "integrations" / f"{adapter}_geval", *(ROOT / "tests/integrations").glob(f"test_{adapter}*.py")]


def there(module: str) -> bool:
    """Whether a module is installed, inside of a package that need not be."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


MISSING = [adapter for adapter, module in (FRAMEWORKS | APART).items() if not there(module)]
collect_ignore = [str(path) for adapter in MISSING for path in belongs(adapter)]


def pytest_report_header() -> str | None:
    return f"not installed, so not tested: {', '.join(MISSING)}" if MISSING else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    apart = [path for adapter in APART for path in belongs(adapter)]
    pages = tuple(f"[{adapter}.md]" for adapter in APART)  # of the docs, in tests/test_docs.py
    for item in items:
        if item.name.endswith(pages) or any(item.path.is_relative_to(path) for path in apart):
            item.add_marker(pytest.mark.adapters)
        elif "window" in getattr(item, "fixturenames", ()):  # a real browser, for minutes
            item.add_marker(pytest.mark.heavy)
