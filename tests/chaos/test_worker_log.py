"""What the kill sweeps hold against a worker's log."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos_worker_log import WorkerLog

from engine.bugs import BUG_FOUND


@pytest.mark.parametrize(
    ("line", "held_against"),
    [
        ("[TMPRL1100] Nondeterminism error", True),
        ("[TMPRL1101] Potential deadlock detected", True),
        ("[TMPRL1104] 5cc5:18:1 Workflow task duration exceeded 5 seconds.", False),
        (BUG_FOUND % "accounts.pass_pool", True),
        ("looked at Account/a/b", False),
    ],
)
def test_failed_tasks_are_held_against_a_worker_and_slow_ones_are_not(
    tmp_path: Path, line: str, held_against: bool
) -> None:
    file = tmp_path / "log"
    file.write_text("TMPRL1100 of an earlier case\n")
    log = WorkerLog(file)
    log.forget()
    file.write_text(file.read_text() + line + "\n")
    assert bool(list(log.complaints())) is held_against
