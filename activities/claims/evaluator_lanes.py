"""Whose call goes next: fair to all when some authors' templates run into their limits.

Three lines are stood in, one after the other:

1. the object's own: calls of one object run one after the other, so no object holds two processes;
2. its author's (a claim's namespace): an author never holds all processes, so a wave of slow templates by one leaves
   one free for everybody else. An object or author that went beyond a limit of late stands in the slow lane instead,
   which is one process wide for all of them together;
3. the processes'.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

MOST_SLOW = 10_000  # names remembered


class Lanes:
    """The lines before a number of processes."""

    def __init__(self, width: int, penalty: float) -> None:
        """Lines.

        Args:
            width: How many calls run at once; at least two.
            penalty: Seconds in the slow lane after a limit was met.
        """
        self._width = width
        self._penalty = penalty
        self._objects: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._authors: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._slow_lane = asyncio.Lock()
        self._processes = asyncio.Semaphore(width)
        self._slow_until: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, key: str, author: str) -> AsyncIterator[None]:
        """The turn of a call of an object and its author; both may be unknown (empty)."""
        async with AsyncExitStack() as lines:
            if key:
                await lines.enter_async_context(self._of_object(key))
            if self.is_slow(key) or self.is_slow(author):
                await lines.enter_async_context(self._slow_lane)
            elif author:
                await lines.enter_async_context(self._of_author(author))
            await lines.enter_async_context(self._processes)
            yield

    def is_slow(self, name: str) -> bool:
        """Whether an object or author went beyond a limit of late."""
        until = self._slow_until.get(name)
        return until is not None and until > time.monotonic()

    def slow_down(self, *names: str) -> None:
        """Put an object and its author into the slow lane for a while."""
        now = time.monotonic()
        if len(self._slow_until) > MOST_SLOW:
            self._slow_until = {name: until for name, until in self._slow_until.items() if until > now}
        self._slow_until.update(dict.fromkeys((name for name in names if name), now + self._penalty))

    def _of_object(self, key: str) -> asyncio.Lock:
        line = self._objects.get(key)
        if line is None:
            line = self._objects[key] = asyncio.Lock()
        return line

    def _of_author(self, author: str) -> asyncio.Semaphore:
        line = self._authors.get(author)
        if line is None:
            line = self._authors[author] = asyncio.Semaphore(max(1, self._width - 1))
        return line
