"""A CPU quota for a process tree, by a cgroup (CFS bandwidth control). Needs root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000


class NoQuota(Exception):  # noqa: N818
    pass


@contextmanager
def limited(pid: int, share: float) -> Iterator[None]:
    """Limit a process and its descendants to this share (0 to 1) of all cores; raises NoQuota."""
    quota = int(share * (os.cpu_count() or 1) * _PERIOD_MICROSECONDS)
    unified = (_CGROUPS / "cgroup.controllers").exists()
    parent = _CGROUPS if unified else _CGROUPS / "cpu"
    group = parent / f"perdure-bench-{os.getpid()}"
    try:
        group.mkdir()
        if unified:
            (parent / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        raise NoQuota(f"no CPU quota can be set here ({error}); run it as root, with the cpu controller") from error
    try:
        _move([pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))], group)
        # Children started while their parents were being moved.
        _move([child.pid for child in psutil.Process(pid).children(recursive=True)], group)
        yield
    finally:
        while pids := [int(line) for line in (group / "cgroup.procs").read_text().split()]:
            _move(pids, parent)
        group.rmdir()


def _move(pids: list[int], group: Path) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
