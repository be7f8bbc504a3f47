"""The ends of bound handles, as one worker knows them: which comes next, and which have come.

The binder ends claims whose time has come, as many at once as it serves: each by its own workflow, 200 ends in one
second took three times as long. It is told when an end comes before the one that it waits for.
"""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta

NEAR = timedelta(seconds=2)


class Ends:
    """Ends by the names of handles."""

    def __init__(self) -> None:
        self._of: dict[str, datetime] = {}
        self._taken: dict[str, datetime] = {}
        self._ahead: list[tuple[datetime, str]] = []  # a heap; what is not in `_of` any more is dropped when it is met
        self._overdue: set[str] = set()
        self._awaited: datetime | None = None

    def put(self, name: str, end: datetime | None) -> bool:
        """The handle ends then, or has no end to be kept here; True if this is news, and now the nearest of all."""
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
        """The nearest end that was not taken, which may have come already."""
        while self._ahead and self._of.get(self._ahead[0][1]) != self._ahead[0][0]:
            heapq.heappop(self._ahead)
        return self._ahead[0][0] if self._ahead else None

    def is_near(self, now: datetime) -> bool:
        """Whether one has come, or comes so soon that it is not worth going away until then."""
        end = self.next
        return end is not None and end - now < NEAR

    def are_over(self, now: datetime) -> bool:
        """Whether one has come that was not taken."""
        end = self.next
        return end is not None and end <= now

    def take(self, now: datetime) -> str | None:
        """A handle whose end has come. Each end is given once: who is not ended then ends itself."""
        if not self.are_over(now):
            return None
        _, name = heapq.heappop(self._ahead)
        self._taken[name] = self._of.pop(name)
        return name

    def give_back(self, name: str) -> None:
        """What was taken was not done."""
        if (end := self._taken.pop(name, None)) is not None:
            self._overdue.discard(name)
            self.put(name, end)

    def become_overdue(self, now: datetime) -> bool:
        """Whether ends have come since this was asked last, and were not taken."""
        before, self._overdue = self._overdue, {name for name, end in self._of.items() if end <= now}
        return bool(self._overdue - before)

    def next_after(self, now: datetime) -> datetime | None:
        """The nearest end that has not come yet."""
        return min((end for end in self._of.values() if end > now), default=None)

    def wait(self) -> datetime | None:
        """The moment that the binder waits for from now on."""
        self._awaited = self.next
        return self._awaited

    def await_sooner(self, now: datetime) -> bool:
        """Whether an end lies ahead, and before what the binder is known to wait for; it waits for that from now on."""
        end, awaited = self.next_after(now), self._awaited
        if end is None or (awaited is not None and now < awaited <= end):
            return False
        self._awaited = end
        return True
