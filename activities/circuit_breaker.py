"""Limits of one account, project or tenant in this process: concurrent calls, and a circuit breaker.

Cloud clients block, and all share one thread pool: calls to endpoints that hang would soon occupy every thread. So
their calls are limited. After several calls in a row without an answer nothing is sent for half a minute; then one call
at a time tests whether the endpoint answers again. A refused call was not sent: it ends at once as throttled, with a
delay. Refusals, throttling and broken connections count as answers: they occupy no thread.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar

from engine.errors import Throttled, Unavailable

# A call that ends without an answer after this many seconds counts as silence; connecting may take as long.
SILENT_SECONDS = 5.0
SILENCES = 5
PAUSE = timedelta(seconds=30)
# Of the callers that are refused within this many seconds, only one may call right at the end of the pause; the others
# are given a longer delay.
CHOSEN_SECONDS = 5.0


class CallGuard:
    """Limits the calls; thread-safe. A subclass defines the words of messages; `clock` returns monotonic seconds."""

    one: ClassVar[str]  # what is limited: account, project or tenant
    cloud: ClassVar[str]
    busy: ClassVar[str]  # the code of refusals by the limit
    silent: ClassVar[str]  # the code of refusals by the circuit breaker
    full_delay: ClassVar[timedelta]  # of calls that the limit refuses
    # The delay of calls that are refused while one call tests the connection.
    tried_delay: ClassVar[timedelta] = timedelta(seconds=SILENT_SECONDS)

    def __init__(self, whom: str, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._whom = whom
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._calling = 0
        self._silences = 0  # consecutive calls without an answer
        self._paused_until = 0.0
        self._chosen = float("-inf")  # when a caller was last chosen to call at the end of the pause

    @property
    def silences(self) -> int:
        return self._silences

    @contextmanager
    def calling(self) -> Iterator[None]:
        """The context of a call; raises `Throttled` if nothing may be sent now."""
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
            left = timedelta(seconds=self._paused_until - self._clock())
            if left > timedelta(0):
                raise self._silence(left + self._after_pause())
            if self._silences >= SILENCES and self._calling:
                raise self._silence(spread(self.tried_delay))  # one call tests whether it answers
            if self._calling >= self._most:
                raise Throttled(
                    f"{self._whom}: {self._calling} calls are running, the limit for one {self.one}",
                    code=self.busy,
                    delay=spread(self.full_delay),
                )
            self._spend()
            self._calling += 1

    def _spend(self) -> None:
        """A hook, called under the lock: raise `Throttled` if another budget is used up."""

    def _after_pause(self) -> timedelta:
        """A refused caller's delay after the end of the pause: zero for one chosen caller. If that caller never calls,
        another caller is chosen later.
        """
        if self._clock() - self._chosen < CHOSEN_SECONDS:
            return spread(self.tried_delay)
        self._chosen = self._clock()
        return timedelta(0)

    def _leave(self, *, silent: bool) -> None:
        with self._lock:
            self._calling -= 1
            self._silences = self._silences + 1 if silent else 0
            paused = self._silences >= SILENCES
            self._paused_until = self._clock() + PAUSE.total_seconds() if paused else 0.0
            self._chosen = float("-inf")

    def _silence(self, delay: timedelta) -> Throttled:
        return Throttled(
            f"{self._whom}: {self._silences} calls in a row had no answer, so nothing is sent for a while. Check the "
            f"network between this process and {self.cloud}, and {self.cloud}'s health.",
            code=self.silent,
            delay=delay,
        )


def spread(delay: timedelta) -> timedelta:
    """The delay with jitter, so that callers refused together do not come back together."""
    return delay * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
