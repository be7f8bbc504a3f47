"""The time from a launch until the instance runs, by region: as measured on the last instance that was described.

A region without a time uses the longest time of other regions. If there is none, one launch is described (polled by
DescribeInstances) while others wait.
"""

from __future__ import annotations

import threading
from enum import Enum

# How long a launch waits for the result of another launch that is being described.
LONGEST_UNKNOWN_SECONDS = 20.0
# If instances take longer, they are described: waiting that long may be far too long.
LONGEST_WAIT_SECONDS = 60.0
# The next instance may take longer than the one that was described.
_MARGIN = 1.25
_SHORTEST_CORRECTION_SECONDS = 2.0


class Unknown(Enum):
    DESCRIBE = "describe the instance until it runs"
    ASK_AGAIN = "another launch is being described"


class BootTimes:
    """How long instances take to boot. Thread-safe; times are the monotonic clock's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = {}
        self._describing = False

    def wait(self, region: str, launched_at: float, now: float) -> float | Unknown:
        """Seconds from an instance's launch until it is assumed running; Unknown without a usable estimate."""
        with self._lock:
            known = self._seconds.get(region, max(self._seconds.values(), default=None))
            if known is not None:
                return known if known <= LONGEST_WAIT_SECONDS else Unknown.DESCRIBE
            if self._describing and now < launched_at + LONGEST_UNKNOWN_SECONDS:
                return Unknown.ASK_AGAIN
            self._describing = True
            return Unknown.DESCRIBE

    def described(self, region: str, ran_after: float | None) -> None:
        """Record a boot time; None if the instance was not seen running, or its launch time is unknown."""
        with self._lock:
            self._describing = False
            if ran_after is not None:
                self._seconds[region] = ran_after * _MARGIN

    def terminated_early(self, region: str, after: float) -> None:
        with self._lock:
            known = self._seconds.get(region, 0.0)
            self._seconds[region] = max(known, 2 * after, _SHORTEST_CORRECTION_SECONDS)
