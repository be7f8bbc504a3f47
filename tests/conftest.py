"""What holds for every test: it does not depend on how quick the machine is, and what shares servers stays together.

Local deployments do not wait for the disk: tests kill processes, never the machine, and what a process has written
outlives it either way. Generated examples may take their time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["PERDURE_LOCAL_FSYNC"] = "off"

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_TESTS = Path(__file__).parent
_FOLDERS_OF_FILES = {_TESTS / name for name in ("decisions", "integration", "temporal", "workflows")}
_LONGEST = ("integration", "chaos")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tell `-n 2 --dist loadgroup` what one process runs: a file's tests, or those of a folder that shares a lab.

    What takes longest begins first, so that the other process is not left with nothing to do in the end.
    """
    for item in items:
        shared = item.path if item.path.parent in _FOLDERS_OF_FILES else item.path.parent
        item.add_marker(pytest.mark.xdist_group(str(shared.relative_to(_TESTS))))
    if hasattr(config, "workerinput"):  # one of several processes
        items.sort(key=lambda item: item.path.relative_to(_TESTS).parts[0] not in _LONGEST)
