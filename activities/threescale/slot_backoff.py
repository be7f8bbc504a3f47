"""When passes that found no slot are retried: one after another, about as fast as slots become free.

Retrying hundreds of objects every five seconds would take the CPU from the passes that have a slot. The average of
earlier passes shows how long a slot stays occupied. If no slot becomes free, or the tenant does not answer, the pauses
grow to a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from activities.circuit_breaker import spread
from domain.runner import SHORT_PAUSE

COME_BACK = timedelta(seconds=5)
# With a shorter pause, the pass itself would wait, and would occupy the worker meanwhile.
LEAST_AWAY = SHORT_PAUSE + timedelta(milliseconds=1)
LONGEST_AWAY = timedelta(minutes=1)
# The weight of a new measurement in the average, and the longest measurement that counts, in seconds.
_SHARE = 0.1
_LONGEST_HOLDING = 5.0


class SlotBackoff:
    def __init__(self, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._clock = clock
        self._holding = 0.0  # average seconds that a pass keeps its slot
        self._next = 0.0  # when the next refused pass is expected to find a slot

    def freed(self, seconds: float) -> None:
        self._holding += _SHARE * (min(seconds, _LONGEST_HOLDING) - self._holding)

    def away(self, still_seconds: float = 0.0) -> timedelta:
        now = self._clock()
        pause = max(spread(max(COME_BACK, timedelta(seconds=still_seconds))), LEAST_AWAY)
        soonest = now + pause.total_seconds()
        turn = max(self._next, soonest)
        self._next = min(max(self._next, now), now + LONGEST_AWAY.total_seconds()) + self._holding / self._slots
        return min(timedelta(seconds=turn - now), LONGEST_AWAY)
