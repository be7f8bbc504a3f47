"""The emulator's clock: real time, accelerated, or moved ahead.

Timestamps in answers stay real, since clients compare them with their own clocks.
"""

from __future__ import annotations

import time
from threading import Lock

from localcloud.aws.contract import ClockChange, ClockReading


class Clock:
    """Time since the epoch in seconds, continuous over changes of speed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._real = time.time()
        self._now = self._real
        self._speed = 1.0

    def now(self) -> float:
        with self._lock:
            return self._at(time.time())

    def reading(self) -> ClockReading:
        with self._lock:
            return ClockReading(now=self._at(time.time()), speed=self._speed)

    def change(self, change: ClockChange) -> ClockReading:
        with self._lock:
            real = time.time()
            self._now = self._at(real) + change.advance_seconds
            self._real = real
            if change.speed is not None:
                self._speed = change.speed
        return self.reading()

    def restore(self, reading: ClockReading, saved_at: float) -> None:
        with self._lock:
            self._real = time.time()
            self._now = reading.now + max(0.0, self._real - saved_at)
            self._speed = reading.speed

    def real_time_of(self, instant: float) -> float:
        with self._lock:
            return self._real + (instant - self._now) / self._speed

    def _at(self, real: float) -> float:
        return self._now + (real - self._real) * self._speed
