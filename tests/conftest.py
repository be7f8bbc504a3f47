"""What holds for every test: it does not depend on how quick the machine is, and what shares servers stays together.

Local deployments do not wait for the disk: tests kill processes, never the machine, and what a process has written
outlives it either way. Generated examples may take their time. Which tests run is chosen in `running/selection.py`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path, PurePath

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from engine.garbage_collection import collect_seldom
from tests.running import selection
from tests.running.failed_servers import keep_servers
from tests.running.progress import Progress

os.environ["PERDURE_LOCAL_FSYNC"] = "off"

# Background jobs of a script ignore SIGINT, and so would the programs to which tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_TESTS = Path(__file__).parent
# Of these folders each file may run apart from the others; the tests of another folder share a lab.
_FOLDERS_OF_FILES = {"integration", "workflows"}


class _Together(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """What one of several processes gets as a whole: a file, or a folder whose tests share a lab."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePath(nodeid.partition("::")[0]).relative_to(_TESTS.name)
        alone = file.parts[0] == "decisions" or str(file.parent) in _FOLDERS_OF_FILES
        return str(file if alone else file.parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Together:
    """Keep together what shares servers."""
    return _Together(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our own."""
    selection.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose before xdist starts its processes."""
    selection.choose_run(config)
    selection.choose_processes(config)


def pytest_configure(config: pytest.Config) -> None:
    """Report progress by area where many tests run; do not walk ten thousand collected tests for garbage."""
    collect_seldom()
    if config.option.run != "named" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing that the chosen run does not hold; others may have reasons of their own."""
    return selection.holds_nothing(config, collection_path) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest where several processes share the tests: none has nothing to do in the end."""
    selection.select(config, items)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: selection.rank(config, item.path))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end."""
    collect_seldom()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the servers of a test that failed."""
    report = yield
    if report.failed:
        keep_servers(item, report)
    return report
