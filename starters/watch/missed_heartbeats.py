"""Objects whose status is a heartbeat: only a missed report, and the first report after a missed one, wake lifecycles.

Every two seconds the watcher compares the expiry of each object's last report with the clock. The first comparison
wakes lifecycles for all silent objects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from domain.identity import Key
from starters.watch.projection_index import Index
from starters.watch.relations import referents
from starters.watch.watched_kinds import Watched

EVERY = 2.0


class MissedHeartbeats:
    def __init__(self, watched: Iterable[Watched], index: Index, *, clock: Callable[[], float] = time.time) -> None:
        self._watched = tuple((entry, entry.silent_at) for entry in watched if entry.silent_at is not None)
        self._index = index
        self._clock = clock
        self._silent: set[Key] = set()

    def news(self) -> set[Key]:
        now, silent, notified = self._clock(), set(), set()
        for entry, silent_at in self._watched:
            for known in self._index.all(entry.name):
                ends = silent_at(known)
                is_silent = ends is not None and ends <= now and not known.deleting
                if is_silent:
                    silent.add(known.key)
                if is_silent != (known.key in self._silent):
                    notified |= referents(entry.relations, known, self._index)
        self._silent = silent
        return notified
