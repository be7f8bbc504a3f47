"""Heartbeats of every activity whose action has a heartbeat timeout: they prove that its process is alive.

One thread sends them all, without the event loop, so only a dead or stopped process misses a heartbeat. The first is
sent after a third of the timeout, so a quick activity costs no call.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from temporalio import activity

# Beats within a heartbeat timeout: two may be lost or late.
BEATS = 3

log = logging.getLogger(__name__)


class Heart:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._beating: dict[object, _Beating] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def beating(self, beat: Callable[[], None], interval: float) -> Iterator[None]:
        me = object()
        with self._changed:
            self._beating[me] = _Beating(beat, interval, self._clock() + interval)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._beating[me]

    def beat(self) -> float | None:
        """Send the heartbeats that are due; returns the seconds until the next one, None if there is none."""
        with self._changed:
            now = self._clock()
            for each in self._beating.values():
                if each.due <= now:
                    each.due = now + each.interval
                    try:
                        each.beat()
                    except Exception:  # the heartbeats of other activities continue
                        log.exception("a heartbeat could not be sent")
            return min((each.due - now for each in self._beating.values()), default=None)

    def _run(self) -> None:
        while True:
            with self._changed:  # one lock for both: an activity added after `beat` must wake `wait`
                self._changed.wait(self.beat())


@dataclass
class _Beating:
    beat: Callable[[], None]
    interval: float
    due: float


_HEART = Heart()


@contextmanager
def heartbeating(beat: Callable[[], None]) -> Iterator[None]:
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    with _HEART.beating(beat, timeout.total_seconds() / BEATS):
        yield
