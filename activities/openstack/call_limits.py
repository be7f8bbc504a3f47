"""Limits this process's calls to each project: how many run at once, and how many begin per second.

After an idle time, five seconds' worth of calls may begin at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from activities.call_limits import CallGuard
from activities.circuit_breaker import spread
from domain.loadbalancers.refused_calls import BUSY, SPENT
from engine.errors import Throttled

SILENT = "ProjectSilent"

FULL_DELAY = timedelta(seconds=1)
SAVED_SECONDS = 5.0


class Guard(CallGuard):
    one: ClassVar[str] = "project"
    cloud: ClassVar[str] = "the cloud"
    busy: ClassVar[str] = BUSY
    silent: ClassVar[str] = SILENT
    full_delay: ClassVar[timedelta] = FULL_DELAY

    def __init__(self, project: str, most: int, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(project, most, clock=clock)
        self._rate = rate
        self._saved = rate * SAVED_SECONDS
        self._counted_at = clock()

    def _spend(self) -> None:
        now = self._clock()
        grown = self._saved + (now - self._counted_at) * self._rate
        self._saved, self._counted_at = min(grown, self._rate * SAVED_SECONDS), now
        if self._saved < 1:
            raise Throttled(
                f"{self._whom}: more than {self._rate:g} calls a second, the limit for one project",
                code=SPENT,
                delay=spread(timedelta(seconds=(1 - self._saved) / self._rate) + FULL_DELAY),
            )
        self._saved -= 1
