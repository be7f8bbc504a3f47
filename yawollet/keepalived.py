"""The state of keepalived, which moves the virtual address between machines: it runs or not, and is master or not.

A service of the machine image sends SIGUSR2 to keepalived every 20 seconds. Then keepalived writes a text file. The
body of each section (`VRRP Instance: ENVOY`) is parsed as YAML. A machine is master if it has become master more often
than it has released mastership.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from textwrap import dedent

import psutil
import yaml

from domain.loadbalancers.machine_health import KEEPALIVED_MASTER
from domain.model import Model
from yawollet.conditions import Finding

INSTANCE = "ENVOY"
KEEPALIVED_STATS = "KeepalivedStatsFile"
KEEPALIVED_PROCESS = "KeepalivedProcess"
_SECTION = "VRRP Instance:"
_STALE = timedelta(minutes=5)
_LONGEST_PID = 7  # digits: Linux counts to 4194304

_UNREADABLE = "CouldNotReadStats"
_STATUS = "KeepalivedStatus"


class Statistics(Model):
    became_master: int
    released_master: int
    sent: int
    received: int

    @property
    def is_master(self) -> bool:
        return self.became_master > self.released_master


def read_statistics(text: str) -> Statistics:
    """Keepalived's statistics; raises ValueError if the text has no VRRP instance `ENVOY`."""
    for section in text.split(_SECTION)[1:]:
        name, _, body = section.partition("\n")
        if name.strip() == INSTANCE:
            return _statistics(body)
    raise ValueError(f"there is no VRRP instance {INSTANCE} in it")


def findings(stats_file: Path | None, pid_file: Path, now: datetime) -> tuple[list[Finding], Statistics | None]:
    """The conditions about keepalived, and its statistics. Without a statistics file there is only the process's
    condition.
    """
    process = _process(pid_file)
    if stats_file is None:
        return [process], None
    try:
        written = datetime.fromtimestamp(stats_file.stat().st_mtime, now.tzinfo)
        statistics = read_statistics(stats_file.read_text())
    except (OSError, ValueError) as error:
        unread = f"keepalived's statistics cannot be read: {error}"
        types = (KEEPALIVED_STATS, KEEPALIVED_MASTER)
        return [*(Finding(type=each, met=False, reason=_UNREADABLE, message=unread) for each in types), process], None
    return [_freshness(written, now), _mastery(statistics), process], statistics


def _statistics(body: str) -> Statistics:
    try:
        found = yaml.safe_load(dedent(body))
        advertisements = found["Advertisements"]
        return Statistics(
            became_master=found["Became master"],
            released_master=found["Released master"],
            sent=advertisements["Sent"],
            received=advertisements["Received"],
        )
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _freshness(written: datetime, now: datetime) -> Finding:
    if now - written > _STALE:
        message = f"keepalived's statistics are older than {_STALE.seconds // 60} minutes"
        return Finding(type=KEEPALIVED_STATS, met=False, reason="StatsNotUpToDate", message=message)
    message = "keepalived's statistics are up to date"
    return Finding(type=KEEPALIVED_STATS, met=True, reason="StatsUpToDate", message=message)


def _mastery(statistics: Statistics) -> Finding:
    message = "this machine is master" if statistics.is_master else "this machine is not master"
    return Finding(type=KEEPALIVED_MASTER, met=statistics.is_master, reason=_STATUS, message=message)


def _process(pid_file: Path) -> Finding:
    try:
        text = pid_file.read_text(errors="replace").strip()
    except OSError as error:
        return _stopped("CouldNotGetPIDFile", f"keepalived's pid file cannot be read: {error}")
    if not text.isdecimal() or len(text) > _LONGEST_PID:
        return _stopped("CouldNotGetPID", f"keepalived's pid file holds no pid: {text[:40]!r}")
    if not psutil.pid_exists(int(text)):
        return _stopped("CouldNotKeepalivedProcess", f"no process has keepalived's pid {text}")
    return Finding(type=KEEPALIVED_PROCESS, met=True, reason="KeepalivedIsRunning", message="keepalived is running")


def _stopped(reason: str, message: str) -> Finding:
    return Finding(type=KEEPALIVED_PROCESS, met=False, reason=reason, message=message)
