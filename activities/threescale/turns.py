"""When a pass that found no seat with its tenant comes back: one after another, about as fast as seats get free.

    seats taken, many wait ─► refused ─► 5 s, or the time to seat those who were refused before

Hundreds of objects of one tenant may arrive at once, created by one `kubectl apply` or woken by a new token. If each
came back every five seconds, their arrivals alone would take the processor that the seated passes need. The last passes
tell how long a seat is kept. A tenant that does not answer tells nothing: if no pass has left a seat with an answer for
a while, none is expected for as long again, and the guard says when to come back. The longest pause is a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from activities.guard import spread
from domain.runner import SHORT_PAUSE

COME_BACK = timedelta(seconds=5)
# A shorter pause would be waited for within the pass, which would keep its place in the worker.
LEAST_AWAY = SHORT_PAUSE + timedelta(milliseconds=1)
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
        pause = max(spread(max(COME_BACK, timedelta(seconds=still_seconds))), LEAST_AWAY)
        soonest = now + pause.total_seconds()
        turn = max(self._next, soonest)
        self._next = min(max(self._next, now), now + LONGEST_AWAY.total_seconds()) + self._sitting / self._seats
        return min(timedelta(seconds=turn - now), LONGEST_AWAY)
