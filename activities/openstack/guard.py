"""What one project may take of this process: calls at once, calls in a second, and a circuit breaker.

OpenStack activities run on a thread pool that all projects share, and a cloud's APIs are slow (a floating IP takes a
second) and easily overrun. So a project has a limit of calls at once, far below the number of threads, and a budget of
calls per second, of which it may save up a few seconds' worth. Once several calls in a row have had no answer, nothing
is sent for half a minute, after which one call at a time tries whether it answers again.

Whatever is refused here was not sent: it ends at once, as throttled, with the delay until it may succeed. Only silence
counts against a project: a refusal, or a connection that breaks at once, is an answer and holds nobody's thread.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from engine.errors import Throttled, Unavailable

BUSY = "ProjectBusy"
SPENT = "ProjectBudget"
SILENT = "ProjectSilent"

# What lasts so long and ends without an answer is silence.
SILENT_SECONDS = 5.0
SILENCES = 5
PAUSE = timedelta(seconds=30)
FULL_DELAY = timedelta(seconds=1)
SAVED_SECONDS = 5.0


class Guard:
    """One project's. Thread-safe.

    Args:
        project: as people are told of it.
        most: calls at once.
        rate: calls per second, over a while.
        clock: seconds that only grow.
    """

    def __init__(self, project: str, most: int, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._project = project
        self._most = most
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._calling = 0
        self._silent = 0  # calls in a row that had no answer
        self._paused_until = 0.0
        self._saved = rate * SAVED_SECONDS
        self._counted_at = clock()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Around a call, with all that it waits for.

        Raises:
            Throttled: not now; nothing was sent.
        """
        self._enter()
        began = self._clock()
        silent = False
        try:
            yield
        except Unavailable:
            silent = self._clock() - began >= SILENT_SECONDS
            raise
        finally:
            self._leave(silent=silent)

    def _enter(self) -> None:
        with self._lock:
            left = self._paused_until - self._clock()
            if left > 0:
                raise self._silence(timedelta(seconds=left))
            if self._silent >= SILENCES and self._calling:
                raise self._silence(timedelta(seconds=SILENT_SECONDS))  # one call is out to see whether it answers
            if self._calling >= self._most:
                raise Throttled(
                    f"{self._project}: {self._calling} calls are under way, as many as one project may have",
                    code=BUSY,
                    delay=_spread(FULL_DELAY),
                )
            self._spend()
            self._calling += 1

    def _spend(self) -> None:
        now = self._clock()
        grown = self._saved + (now - self._counted_at) * self._rate
        self._saved, self._counted_at = min(grown, self._rate * SAVED_SECONDS), now
        if self._saved < 1:
            raise Throttled(
                f"{self._project}: more calls than the {self._rate:g} a second that one project may have",
                code=SPENT,
                delay=_spread(timedelta(seconds=(1 - self._saved) / self._rate) + FULL_DELAY),
            )
        self._saved -= 1

    def _leave(self, *, silent: bool) -> None:
        with self._lock:
            self._calling -= 1
            self._silent = self._silent + 1 if silent else 0
            paused = self._silent >= SILENCES
            self._paused_until = self._clock() + PAUSE.total_seconds() if paused else 0.0

    def _silence(self, delay: timedelta) -> Throttled:
        return Throttled(
            f"{self._project}: {self._silent} calls in a row had no answer, nothing is sent for a moment. Look at the "
            "network between here and the cloud, and at the cloud's health.",
            code=SILENT,
            delay=delay,
        )


def _spread(delay: timedelta) -> timedelta:
    return delay * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
