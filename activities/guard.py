"""What one account or project may take of this process: a limit of calls at once, and a circuit breaker.

Clients of clouds block, so their activities run on a thread pool that all accounts and projects share. One whose
endpoints hang (its region is down, a firewall swallows its packets) would take a thread for each call until it times
out, and soon all of them. So each has a limit of calls at once, far below the number of threads; and once several calls
in a row have had no answer, nothing is sent for half a minute, after which one call at a time tries whether it answers
again.

Whatever is refused here was not sent: it ends at once, as throttled, with the delay until it may succeed. Only silence
counts: a refusal, a throttling or a connection that breaks at once is an answer, and takes nobody's thread.
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

# What lasts so long and ends without an answer is silence; a connection may take as long to be made.
SILENT_SECONDS = 5.0
SILENCES = 5
PAUSE = timedelta(seconds=30)
# For so long nobody else is told the very end of a pause.
CHOSEN_SECONDS = 5.0


class CallGuard:
    """One account's or project's. Thread-safe. A subclass has the words for what it guards.

    Args:
        whom: as people are told of it.
        most: calls at once.
        clock: seconds that only grow.
    """

    one: ClassVar[str]  # account, project
    cloud: ClassVar[str]
    busy: ClassVar[str]  # codes of the refusals
    silent: ClassVar[str]
    full_delay: ClassVar[timedelta]
    tried_delay: ClassVar[timedelta] = timedelta(seconds=SILENT_SECONDS)  # while one call is out to see

    def __init__(self, whom: str, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._whom = whom
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._calling = 0
        self._silences = 0  # calls in a row that had no answer
        self._paused_until = 0.0
        self._chosen = float("-inf")  # when somebody was told the very end of the pause

    @property
    def silences(self) -> int:
        """How many calls in a row had no answer."""
        return self._silences

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
            left = timedelta(seconds=self._paused_until - self._clock())
            if left > timedelta(0):
                raise self._silence(left + self._after_pause())
            if self._silences >= SILENCES and self._calling:
                raise self._silence(spread(self.tried_delay))  # one call is out to see whether it answers
            if self._calling >= self._most:
                raise Throttled(
                    f"{self._whom}: {self._calling} calls are under way, as many as one {self.one} may have",
                    code=self.busy,
                    delay=spread(self.full_delay),
                )
            self._spend()
            self._calling += 1

    def _spend(self) -> None:
        """Refuse the call if another budget is used up; called with the lock held."""

    def _after_pause(self) -> timedelta:
        """How much longer than the pause one stays away: one tries at its end, the others would only be in the way.

        Who is chosen may be woken, and ask again, or have no use for it: so another is chosen after a while.
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
            f"{self._whom}: {self._silences} calls in a row had no answer, nothing is sent for a moment. Look at the "
            f"network between here and {self.cloud}, and at {self.cloud}'s health.",
            code=self.silent,
            delay=delay,
        )


def spread(delay: timedelta) -> timedelta:
    """The delay, so that those who were refused together do not come back together."""
    return delay * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
