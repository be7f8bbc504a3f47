"""When a pass that found no seat with its tenant comes back: one after another, about as fast as seats get free.

    seats taken, many wait ─► turned away ─► 5 s, or as long as it takes to seat those who were turned away before

Hundreds of objects of one tenant may be there at once, made by one `kubectl apply` or woken by a new token. If each of
those without a seat came back every five seconds, their coming alone would take the processor that the seated need. How
long a pass keeps its seat is learnt from the last ones. A tenant that gives no answers teaches nothing: where nobody
has left a seat with an answer for a while, nobody will for as long again, and of a silent one the guard tells when to
come back. Nobody is sent away for longer than a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from activities.guard import spread

COME_BACK = timedelta(seconds=5)
LONGEST_AWAY = timedelta(minutes=1)
# What is learnt from one pass, and from the slowest.
_SHARE = 0.1
_LONGEST_SITTING = 5.0


class Turns:
    """One tenant's.

    Args:
        seats: how many passes sit at once.
        clock: seconds that only grow.
    """

    def __init__(self, seats: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seats = seats
        self._clock = clock
        self._sitting = 0.0  # seconds that a pass keeps its seat
        self._next = 0.0  # when the next one that is turned away finds a seat

    def sat(self, seconds: float) -> None:
        """A pass has left its seat."""
        self._sitting += _SHARE * (min(seconds, _LONGEST_SITTING) - self._sitting)

    def away(self, still_seconds: float = 0.0) -> timedelta:
        """For how long a pass that finds no seat goes away; nobody has left one with an answer for `still_seconds`."""
        now = self._clock()
        soonest = now + spread(max(COME_BACK, timedelta(seconds=still_seconds))).total_seconds()
        turn = max(self._next, soonest)
        self._next = min(max(self._next, now), now + LONGEST_AWAY.total_seconds()) + self._sitting / self._seats
        return min(timedelta(seconds=turn - now), LONGEST_AWAY)
