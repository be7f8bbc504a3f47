"""When bound handles expire, in one worker: the next end, and the ends that are due.

The binder deletes expired claims in batches: when 200 expired in one second, their own workflows took three times as
long as a batch.
"""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta

NEAR = timedelta(seconds=2)


class Ends:
    def __init__(self) -> None:
        self._of: dict[str, datetime] = {}
        self._taken: dict[str, datetime] = {}
        self._ahead: list[tuple[datetime, str]] = []  # a heap; entries missing in `_of` are dropped later
        self._overdue: set[str] = set()
        self._awaited: datetime | None = None

    def put(self, name: str, end: datetime | None) -> bool:
        """Record the handle's end; None clears it. True if the end is new and may require a wake of the binder:
        it is the earliest end, or the earliest end is overdue.
        """
        if end is None:
            self._of.pop(name, None)
            self._taken.pop(name, None)
        elif end not in (self._of.get(name), self._taken.get(name)):
            self._taken.pop(name, None)
            before = self.next
            is_first = before is None or end < before or self._ahead[0][1] in self._overdue
            self._of[name] = end
            heapq.heappush(self._ahead, (end, name))
            return is_first
        return False

    @property
    def next(self) -> datetime | None:
        """The earliest end that was not taken, due or not; None if there is none."""
        while self._ahead and self._of.get(self._ahead[0][1]) != self._ahead[0][0]:
            heapq.heappop(self._ahead)
        return self._ahead[0][0] if self._ahead else None

    def is_near(self, now: datetime) -> bool:
        end = self.next
        return end is not None and end - now < NEAR

    def are_over(self, now: datetime) -> bool:
        end = self.next
        return end is not None and end <= now

    def take(self, now: datetime) -> str | None:
        if not self.are_over(now):
            return None
        _, name = heapq.heappop(self._ahead)
        self._taken[name] = self._of.pop(name)
        return name

    def give_back(self, name: str) -> None:
        if (end := self._taken.pop(name, None)) is not None:
            self._overdue.discard(name)
            self.put(name, end)

    def become_overdue(self, now: datetime) -> bool:
        """Record the expired handles that no batch has taken. True if one is new since the previous call."""
        before, self._overdue = self._overdue, {name for name, end in self._of.items() if end <= now}
        return bool(self._overdue - before)

    def next_after(self, now: datetime) -> datetime | None:
        return min((end for end in self._of.values() if end > now), default=None)

    def wait(self) -> datetime | None:
        """Record that the binder waits for the earliest end, and return that end."""
        self._awaited = self.next
        return self._awaited

    def await_sooner(self, now: datetime) -> bool:
        """Record that the binder waits for the next expiry. False if there is none, or if the binder already waits for
        this expiry or an earlier one.
        """
        end, awaited = self.next_after(now), self._awaited
        if end is None or (awaited is not None and now < awaited <= end):
            return False
        self._awaited = end
        return True
