"""What one member account may take of this process: a limit of calls at once, and a circuit breaker.

AWS activities run on a thread pool that all accounts share. An account whose endpoints hang (its region is down, a
firewall swallows its packets) would take a thread for 30 s a call, and with its many regions soon all of them. So an
account has a limit of calls at once, far below the number of threads; and once several calls in a row have had no
answer, nothing is sent for half a minute, after which one call at a time tries whether it answers again.

Whatever is refused here was not sent: it ends at once, as throttled, with the delay until it may succeed. Waiting for
the account's session counts as calling, since whoever waits holds a thread as well. Only silence counts against an
account: a refusal, a throttling or a connection that breaks at once is an answer, and takes nobody's thread.

The payer has no guard: its calls have a queue and threads of their own, apart from AssumeRole, without which no account
can be entered at all.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from engine.errors import Throttled, Unavailable

# What lasts so long and ends without an answer is silence; a connection may take as long to be made.
SILENT_SECONDS = 5.0
SILENCES = 5
PAUSE = timedelta(seconds=30)
FULL_DELAY = timedelta(seconds=2)


class Guard:
    """One account's. Thread-safe."""

    def __init__(self, account: str, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._account = account
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._calling = 0
        self._silent = 0  # calls in a row that had no answer
        self._paused_until = 0.0

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
                    f"account {self._account}: {self._calling} calls are under way, as many as one account may have",
                    code="AccountBusy",
                    delay=FULL_DELAY * random.uniform(0.5, 1.5),  # noqa: S311 - spreads load, hides nothing
                )
            self._calling += 1

    def _leave(self, *, silent: bool) -> None:
        with self._lock:
            self._calling -= 1
            self._silent = self._silent + 1 if silent else 0
            paused = self._silent >= SILENCES
            self._paused_until = self._clock() + PAUSE.total_seconds() if paused else 0.0

    def _silence(self, delay: timedelta) -> Throttled:
        return Throttled(
            f"account {self._account}: {self._silent} calls in a row had no answer, nothing is sent for a moment. Look "
            "at the network between here and AWS, and at AWS's health.",
            code="AccountSilent",
            delay=delay,
        )
