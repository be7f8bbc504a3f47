"""The emulator's clock: real time, or faster, or leapt ahead.

What AWS takes its time for (creating accounts, resolving cases, enabling regions) ends at an instant of this clock,
so that a test can let hours pass in seconds. Timestamps that clients read stay real, or they would lie in the
clients' future.
"""

from __future__ import annotations

import time
from threading import Lock

from localcloud.aws.contract import ClockChange, ClockReading


class Clock:
    """A clock that is continuous over changes of its speed. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._real = time.time()
        self._now = self._real
        self._speed = 1.0

    def now(self) -> float:
        """The emulator's time."""
        with self._lock:
            return self._at(time.time())

    def reading(self) -> ClockReading:
        """Time and speed together."""
        with self._lock:
            return ClockReading(now=self._at(time.time()), speed=self._speed)

    def change(self, change: ClockChange) -> ClockReading:
        """Leap ahead, run at another speed, or both."""
        with self._lock:
            real = time.time()
            self._now = self._at(real) + change.advance_seconds
            self._real = real
            if change.speed is not None:
                self._speed = change.speed
        return self.reading()

    def restore(self, reading: ClockReading, saved_at: float) -> None:
        """Go on where a saved clock stood; the time since then passed at real speed."""
        with self._lock:
            self._real = time.time()
            self._now = reading.now + max(0.0, self._real - saved_at)
            self._speed = reading.speed

    def real_time_of(self, instant: float) -> float:
        """When an instant of this clock was, or will be, in real time."""
        with self._lock:
            return self._real + (instant - self._now) / self._speed

    def _at(self, real: float) -> float:
        return self._now + (real - self._real) * self._speed
