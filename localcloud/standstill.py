"""Distinguishes slow services from stuck ones.

A service progresses while its processes use CPU, its log grows, or its process is replaced. A fixed timeout would fail
on a busy computer.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STANDSTILL_SECONDS = 180.0
# Timers and keepalives of a stuck process use less.
MOVING_CPU_SHARE = 0.01


@dataclass(frozen=True)
class _Mark:
    pid: int | None
    cpu_seconds: float
    log_bytes: int
    at: float


class StandstillWatch:
    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        # Each check reads all processes of the computer, so frequent callers get the previous result.
        self._pause_seconds = limit_seconds / 40
        self._marks: dict[str, _Mark] = {}
        self._checked_at: dict[str, float] = {}

    def stands_still(self, name: str, pid: int | None, log: Path) -> bool:
        now = time.monotonic()
        mark = self._marks.get(name)
        if mark is None or mark.pid != pid or now - self._checked_at[name] >= self._pause_seconds:
            self._checked_at[name] = now
            seen = _Mark(pid, _session_cpu_seconds(pid), _size(log), now)
            if mark is None or self._moved(mark, seen):
                self._marks[name] = mark = seen
        return now - mark.at > self._limit_seconds

    def _moved(self, mark: _Mark, seen: _Mark) -> bool:
        return (
            mark.pid != seen.pid
            or mark.log_bytes != seen.log_bytes
            or abs(seen.cpu_seconds - mark.cpu_seconds) >= MOVING_CPU_SHARE * self._limit_seconds
        )


def _session_cpu_seconds(leader: int | None) -> float:
    if leader is None:
        return 0.0
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            # The program's name, in parentheses, may contain spaces and parentheses.
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader:
            ticks += sum(int(field) for field in fields[11:15])  # own and reaped children's, user and system
    return ticks / os.sysconf("SC_CLK_TCK")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
