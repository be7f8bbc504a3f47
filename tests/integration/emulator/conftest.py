"""One emulator for the run, and others to be killed.

Tests share the cloud of the one, so each works in accounts of its own; settings, faults and ledger are set back before
each.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator_process import Cloud, EmulatorProcess

from localcloud.aws.control import Emulator


@pytest.fixture(scope="session")
def emulator_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorProcess]:
    running = EmulatorProcess(tmp_path_factory.mktemp("emulator")).start()
    yield running
    running.end(signal.SIGTERM)


@pytest.fixture
def emulator(emulator_process: EmulatorProcess) -> Iterator[Emulator]:
    with emulator_process.control() as control:
        control.reset_config()
        control.clock(speed=1.0, advance_seconds=86400)  # what earlier tests left in progress is done
        control.clear()
        control.reset_ledger()
        yield control


@pytest.fixture
def payer(emulator_process: EmulatorProcess, emulator: Emulator) -> Cloud:
    """The payer's clients; settings, faults and ledger are as at the start."""
    return emulator_process.cloud()


@pytest.fixture
def own_emulator(tmp_path: Path) -> Iterator[EmulatorProcess]:
    """An emulator for one test, which may kill it."""
    own = EmulatorProcess(tmp_path)
    yield own
    if own.process is not None and own.process.poll() is None:
        own.end(signal.SIGKILL)
