"""The plugin: options, fixtures, and the table at the end. Loading it imports nothing but pytest and this file."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .asserting import Asserting

PROPERTY = "geval "
"""How the properties begin that a test's ratings become; what follows is the criterion's name."""

_memory = pytest.StashKey[dict[str, Any]]()
_told = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What users may say on the command line and in their ini file."""
    group = parser.getgroup("geval", "ratings by an LLM judge (geval-adapters)")
    group.addoption(
        "--geval-model",
        metavar="MODEL",
        help="who rates: a LiteLLM model, or local/...; default: geval_model of the ini file, then $GEVAL_MODEL",
    )
    group.addoption(
        "--geval-cache",
        metavar="FOLDER",
        help="where replies are kept for later runs; default: geval_cache of the ini file, then pytest's own cache",
    )
    group.addoption(
        "--geval-offline", action="store_true", help="rate by the kept replies alone: one that is missing is an error"
    )
    parser.addini("geval_model", "who rates: a LiteLLM model, or local/...", default="")
    parser.addini("geval_cache", "where replies are kept for later runs, seen from this file", default="")
    parser.addini("geval_offline", "rate by the kept replies alone", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Make room for the judges of this process, and for what its tests tell."""
    config.stash[_memory] = {}
    config.pluginmanager.register(_Told(), "geval-told")


@pytest.fixture(scope="session")
def geval_settings() -> dict[str, Any]:
    """What ratings are made with: keywords of `GEval` (`recipe`, `n`, `api_base`, …), and `criterion`. Override it.

    A `model` in it is a string or a judge. The rationale is asked for unless it says `{"explain": False}`.
    """
    return {}


@pytest.fixture
def geval(request: pytest.FixtureRequest, geval_settings: dict[str, Any]) -> Asserting:
    """Assertions on ratings by an LLM judge, as in `geval.assert_at_least(output, 4, criterion="fluency")`."""
    from .asserting import Asserting

    config, node = request.config, request.node

    def tell(told: dict[str, Any]) -> None:
        text = json.dumps(told)
        node.stash.setdefault(_told, []).append(text)
        node.user_properties.append((PROPERTY + told["criterion"], text))

    model = (
        config.getoption("--geval-model")
        or geval_settings.get("model")
        or config.getini("geval_model")
        or os.environ.get("GEVAL_MODEL")
    )
    return Asserting(
        {**geval_settings, "model": model},
        cache=cache_folder(config),
        offline=config.getoption("--geval-offline") or config.getini("geval_offline"),
        memory=config.stash[_memory],
        tell=tell,
    )


def cache_folder(config: pytest.Config) -> Path | None:
    """Where replies are kept: where the user says, else in pytest's cache, unless that is switched off."""
    if named := config.getoption("--geval-cache"):
        return config.invocation_params.dir / str(named)
    if named := config.getini("geval_cache"):
        return (config.inipath.parent if config.inipath else config.rootpath) / str(named)
    cache: pytest.Cache | None = getattr(config, "cache", None)  # there is none with -p no:cacheprovider
    return cache.mkdir("geval") if cache else None


class _Told:
    """What tests told of their ratings, on their reports, which xdist brings to where the terminal is.

    Not read from the properties: those may be anybody's.
    """

    def __init__(self) -> None:
        self.by_test: dict[str, list[dict[str, Any]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put on the report what its test told."""
        report = yield
        if told := item.stash.get(_told, None):
            report.geval_told = list(told)  # type: ignore[attr-defined]  # what else is said of a test is kept as it is
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test told; its last report has all of it, those of a test that is run again included."""
        if told := getattr(report, "geval_told", None):
            self.by_test[report.nodeid] = [json.loads(each) for each in told]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """The table of ratings, where there are any."""
        if self.by_test:
            from .summary import summary

            terminalreporter.section("geval")
            width = config.get_terminal_writer().fullwidth
            for line in summary(self.by_test, width, config.get_verbosity() > 0):
                terminalreporter.write_line(line)
