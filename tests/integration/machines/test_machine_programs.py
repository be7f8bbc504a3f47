"""A machine's program: running while it should, started again when it has died, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from waiting import eventually

from localcloud.machines.programs import Program

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


class Pids:
    """What a program says of itself, and whether it is so."""

    def __init__(self, log_file: Path) -> None:
        self.seen: list[int] = []
        self.program = Program("sleeper", ["sleep", "1000"], os.environ, log_file, self._note)

    def _note(self) -> None:
        if self.program.pid is not None:
            self.seen.append(self.program.pid)

    def living(self) -> list[int]:
        return [pid for pid in self.seen if Path(f"/proc/{pid}").exists()]


@asynccontextmanager
async def running(pids: Pids) -> AsyncIterator[Program]:
    task = asyncio.create_task(pids.program.run())
    try:
        yield pids.program
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_dead_program_is_started_again_and_a_switched_off_one_stays_off(tmp_path: Path) -> None:
    pids = Pids(tmp_path / "log")
    async with running(pids) as program:
        program.restart_delay = 0.1
        program.switch(on=True)
        await eventually(lambda: program.pid is not None)
        os.kill(pids.seen[0], signal.SIGKILL)
        await eventually(lambda: len(pids.seen) == 2 and program.pid == pids.seen[1])
        program.switch(on=False)
        await eventually(lambda: program.pid is None)
        assert pids.living() == []
        program.switch(on=True)
        await eventually(lambda: program.pid is not None)
    assert len(pids.seen) == 3
    assert pids.living() == []


@pytest.mark.parametrize("after_seconds", [0, 0.001, 0.003, 0.01, 0.03])
async def test_a_program_that_is_given_up_while_it_starts_is_not_left_behind(
    tmp_path: Path, after_seconds: float
) -> None:
    pids = Pids(tmp_path / "log")
    async with running(pids) as program:
        program.switch(on=True)
        await asyncio.sleep(after_seconds)
    assert program.pid is None
    assert pids.living() == []
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if "sleep\0001000" in Path(f"/proc/{pid}/cmdline").read_text()]
