"""After several calls in a row without an answer, nothing is sent for half a minute. Then one call at a time tests
whether there are answers again. Refusals, throttling and broken connections count as answers: they occupy no thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

# A call without an answer counts as silence if it took at least this many seconds (AWS's connect timeout).
SILENT_SECONDS = 5.0
SILENCES = 5
PAUSE = timedelta(seconds=30)
# Of the callers that are refused within this many seconds, only one may call right at the end of the pause; the others
# are given a longer delay.
CHOSEN_SECONDS = 5.0


class CircuitBreaker:
    """Not thread-safe. `clock` returns monotonic seconds."""

    def __init__(self, tried_delay: timedelta, clock: Callable[[], float]) -> None:
        self._tried_delay = tried_delay
        self._clock = clock
        self.silences = 0  # consecutive calls without an answer
        self._paused_until = 0.0
        self._chosen = float("-inf")  # when a caller was last chosen to call at the end of the pause

    def delay(self, calling: int) -> timedelta | None:
        """How long to refuse a call while `calling` other calls run; None if it may be sent."""
        left = timedelta(seconds=self._paused_until - self._clock())
        if left > timedelta(0):
            return left + self._after_pause()
        return spread(self._tried_delay) if self.silences >= SILENCES and calling else None

    def _after_pause(self) -> timedelta:
        """How long a refused caller waits after the pause: zero for one chosen caller, longer for the others."""
        if self._clock() - self._chosen < CHOSEN_SECONDS:
            return spread(self._tried_delay)
        self._chosen = self._clock()
        return timedelta(0)

    def ended(self, *, silent: bool) -> None:
        self.silences = self.silences + 1 if silent else 0
        paused = self.silences >= SILENCES
        self._paused_until = self._clock() + PAUSE.total_seconds() if paused else 0.0
        self._chosen = float("-inf")


def spread(delay: timedelta) -> timedelta:
    """The delay with jitter, so that callers refused together do not come back together."""
    return delay * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
