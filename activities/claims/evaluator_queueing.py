"""The order of calls: authors whose templates exceed their limits must not delay others.

A call waits for its object (one call at a time), then for its author (a claim's namespace, which never gets all
processes), then for a process. Objects and authors that exceeded a limit recently wait in the slow lane instead, one
call at a time. The lane is short, since a waiting call occupies a slot of the binder or of the worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

MOST_SLOW = 10_000  # the most objects and authors that are remembered as slow
SLOW_LANE = 5  # the most calls in the slow lane, the running one included


class LaneFull(Exception):  # noqa: N818 - a state, not an error
    pass


class Lanes:
    def __init__(self, width: int, penalty: float) -> None:
        """`width` (at least two) is the number of concurrent calls; `penalty` is in seconds."""
        self._width = width
        self._penalty = penalty
        self._objects: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._authors: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._slow_lane = asyncio.Lock()
        self._in_slow_lane = 0
        self._processes = asyncio.Semaphore(width)
        self._slow_until: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, key: str, author: str, *, patient: bool = False) -> AsyncIterator[None]:
        """If the slow lane is full, a `patient` call waits, and any other raises LaneFull."""
        async with AsyncExitStack() as lines:
            if key:
                await lines.enter_async_context(self._objects.setdefault(key, asyncio.Lock()))
            if author and not self._slow(key, author):
                await self._stand_with_author(lines, key, author)
            if self._slow(key, author):
                await self._stand_in_slow_lane(lines, patient)
            await lines.enter_async_context(self._processes)
            yield

    async def _stand_with_author(self, lines: AsyncExitStack, key: str, author: str) -> None:
        line = self._authors.setdefault(author, asyncio.Semaphore(max(1, self._width - 1)))
        await line.acquire()
        if self._slow(key, author):
            line.release()
        else:
            lines.callback(line.release)

    async def _stand_in_slow_lane(self, lines: AsyncExitStack, patient: bool) -> None:
        if self._in_slow_lane >= SLOW_LANE and not patient:
            raise LaneFull
        self._in_slow_lane += 1
        lines.callback(self._leave_slow_lane)
        await lines.enter_async_context(self._slow_lane)

    def _leave_slow_lane(self) -> None:
        self._in_slow_lane -= 1

    def _slow(self, key: str, author: str) -> bool:
        return self.is_slow(key) or self.is_slow(author)

    def is_slow(self, name: str) -> bool:
        until = self._slow_until.get(name)
        return until is not None and until > time.monotonic()

    def slow_down(self, *names: str) -> None:
        now = time.monotonic()
        if len(self._slow_until) > MOST_SLOW:
            self._slow_until = {name: until for name, until in self._slow_until.items() if until > now}
        self._slow_until.update(dict.fromkeys((name for name in names if name), now + self._penalty))
