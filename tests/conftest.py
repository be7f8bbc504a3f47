"""What holds for every test: it does not depend on how quick the machine is, and what shares servers stays together.

Local deployments do not wait for the disk: tests kill processes, never the machine, and what a process has written
outlives it either way. Generated examples may take their time.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

os.environ["PERDURE_LOCAL_FSYNC"] = "off"

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_TESTS = Path(__file__).parent
# Of these folders each file may run apart from the others; the tests of another folder share a lab.
_FOLDERS_OF_FILES = {"decisions", "integration", "temporal", "workflows"}
_LONGEST = ("integration", "chaos")


class _Together(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """What `-n 2` gives to one process as a whole: a file, or a folder whose tests share a lab."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePath(nodeid.partition("::")[0]).relative_to(_TESTS.name)
        return str(file if str(file.parent) in _FOLDERS_OF_FILES else file.parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Together:
    """Keep together what shares servers."""
    return _Together(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest where several processes share the tests: none has nothing to do in the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.relative_to(_TESTS).parts[0] not in _LONGEST)
