"""One reading for many: what costs the API server and us much is read once for all who ask meanwhile.

    ask ──► nothing under way: read at once
       └──► a reading is under way: it may have begun before what the asker knows of; wait for the next, with others

So an answer is never older than the question, no mirror has to be kept, and a hundred passes that a change of one node
wakes list the nodes a few times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReading(Generic[T]):
    """Readings of the same, each for all who asked before it began."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._under_way: asyncio.Task[T] | None = None
        self._following: asyncio.Task[T] | None = None

    async def read(self) -> T:
        """The answer to a reading that begins after this call; its error, if it fails."""
        if self._following is None:
            self._following = asyncio.create_task(self._after(self._under_way))
        return await asyncio.shield(self._following)

    async def _after(self, earlier: asyncio.Task[T] | None) -> T:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._under_way, self._following = self._following, None
        return await self._read()
