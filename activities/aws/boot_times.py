"""How long an instance takes from its launch until it runs, as measured on the last polled instance of each region.

A region without a measured time uses the longest time of other regions. If no region has one, one launch is polled by
DescribeInstances while other launches wait.
"""

from __future__ import annotations

import threading
from enum import Enum

# How long a launch waits for the boot time of another launch that is being polled.
LONGEST_UNKNOWN_SECONDS = 20.0
# If the known boot time is longer, the instance is polled: the known time may be far too long.
LONGEST_WAIT_SECONDS = 60.0
# The next instance may take longer than the one that was polled.
_MARGIN = 1.25
_SHORTEST_CORRECTION_SECONDS = 2.0


class Unknown(Enum):
    DESCRIBE = "poll this instance until it runs"
    ASK_AGAIN = "another instance is being polled"


class BootTimes:
    """Thread-safe. Times are the monotonic clock's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = {}
        self._describing = False

    def wait(self, region: str, launched_at: float, now: float) -> float | Unknown:
        """Seconds from an instance's launch until it probably runs; Unknown if there is no usable estimate."""
        with self._lock:
            known = self._seconds.get(region, max(self._seconds.values(), default=None))
            if known is not None:
                return known if known <= LONGEST_WAIT_SECONDS else Unknown.DESCRIBE
            if self._describing and now < launched_at + LONGEST_UNKNOWN_SECONDS:
                return Unknown.ASK_AGAIN
            self._describing = True
            return Unknown.DESCRIBE

    def described(self, region: str, ran_after: float | None) -> None:
        """End the poll of an instance, and record its boot time `ran_after`; None if this time is unknown."""
        with self._lock:
            self._describing = False
            if ran_after is not None:
                self._seconds[region] = ran_after * _MARGIN

    def terminated_early(self, region: str, after: float) -> None:
        with self._lock:
            known = self._seconds.get(region, 0.0)
            self._seconds[region] = max(known, 2 * after, _SHORTEST_CORRECTION_SECONDS)
