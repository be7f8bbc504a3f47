"""Limits of one account, project or tenant in this process: concurrent calls, and a circuit breaker.

A call over a limit ends at once as throttled, with a delay. Otherwise calls to a hanging endpoint would occupy every
thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar

from activities.circuit_breaker import SILENT_SECONDS, CircuitBreaker, spread
from engine.errors import Throttled, Unavailable


class CallGuard:
    """Thread-safe. A subclass defines the words of messages."""

    one: ClassVar[str]  # what is limited: account, project or tenant
    cloud: ClassVar[str]
    busy: ClassVar[str]  # the code of refusals by the limit
    silent: ClassVar[str]  # the code of refusals by the circuit breaker
    full_delay: ClassVar[timedelta]  # the delay of calls that the limit refuses
    # The delay of calls that are refused while one call tests the connection.
    tried_delay: ClassVar[timedelta] = timedelta(seconds=SILENT_SECONDS)

    def __init__(self, whom: str, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._whom = whom
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._calling = 0
        self._breaker = CircuitBreaker(self.tried_delay, clock)

    @property
    def silences(self) -> int:
        return self._breaker.silences

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
            with self._lock:
                self._calling -= 1
                self._breaker.ended(silent=silent)

    def _enter(self) -> None:
        with self._lock:
            if (delay := self._breaker.delay(self._calling)) is not None:
                raise Throttled(
                    f"{self._whom}: several calls in a row had no answer, so nothing is sent for a while. "
                    f"Check the network between this process and {self.cloud}, and {self.cloud}'s health.",
                    code=self.silent,
                    delay=delay,
                )
            if self._calling >= self._most:
                raise Throttled(
                    f"{self._whom}: {self._calling} calls are running, the limit for one {self.one}",
                    code=self.busy,
                    delay=spread(self.full_delay),
                )
            self._spend()
            self._calling += 1

    def _spend(self) -> None:
        """Called under the lock before each call. A subclass that limits the rate of calls raises `Throttled` here."""
