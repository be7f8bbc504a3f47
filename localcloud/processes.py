"""Processes that end with their parent, and identities that a reused pid does not match: pid, start tick (field 22 of
/proc/PID/stat, kept across execve) and boot id.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from domain.model import Model

TETHER = str(Path(__file__).with_name("tether.py"))


class ProcessIdentity(Model):
    pid: int
    start_ticks: int
    boot_id: str
    program: str

    def is_alive(self) -> bool:
        return self.boot_id == boot_id() and _start_ticks(self.pid) == self.start_ticks

    def send(self, number: signal.Signals) -> None:
        if not self.is_alive():
            return
        try:
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return

    def wait_gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def identify(pid: int, program: str) -> ProcessIdentity | None:
    ticks = _start_ticks(pid)
    if ticks is None:
        return None
    return ProcessIdentity(pid=pid, start_ticks=ticks, boot_id=boot_id(), program=program)


def tethered(command: Sequence[str], death_signal: signal.Signals = signal.SIGKILL) -> list[str]:
    return [sys.executable, "-I", "-S", TETHER, str(int(death_signal)), str(os.getpid()), *command]


def end_all(processes: Iterable[ProcessIdentity], grace_seconds: float) -> list[ProcessIdentity]:
    found = [process for process in processes if process.is_alive()]
    for process in found:
        process.send(signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    for process in found:
        if not process.wait_gone(max(0.0, deadline - time.monotonic())):
            process.send(signal.SIGKILL)
            process.wait_gone(5)
    return found


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, and may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return None if state in "ZX" else int(start)
