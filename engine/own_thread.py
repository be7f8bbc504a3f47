"""A thread with an event loop of its own, for work that must continue while the process's loop is busy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OwnThread:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in the thread; cancelling the caller cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


@asynccontextmanager
async def own_thread(name: str) -> AsyncIterator[OwnThread]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    try:
        yield OwnThread(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


class LastKnown(Generic[T]):
    """A value that is read on one event loop only. A call in another thread returns the value last read, and causes a
    new reading.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._loop = asyncio.get_running_loop()
        self._known = read()

    def __call__(self) -> T:
        self._loop.call_soon_threadsafe(self.refresh)
        return self._known

    def refresh(self) -> None:
        """Read the value again. Call this only on the event loop that created this object."""
        self._known = self._read()
