"""Reads a backlog before working on it: the last message of a queue may be the most urgent one.

While receives are full, routine events wait, for at most ten seconds in sixty. Urgent events never wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_SECONDS = 10.0
# Seconds between the starts of two waits, so that routine events keep five sixths of the time under a lasting flood.
PERIOD_SECONDS = 60.0


class ReadAhead:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = -PERIOD_SECONDS + clock()
        self._behind = False

    def received(self, *, full: bool) -> None:
        now = self._clock()
        if not full:
            self._behind = False
        elif now >= self._began + PERIOD_SECONDS:
            self._behind, self._began = True, now

    @property
    def lasts(self) -> bool:
        return self._behind and self._clock() < self._began + LONGEST_SECONDS
