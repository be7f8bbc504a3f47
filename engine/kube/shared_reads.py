"""Shares an expensive reading among many callers.

    read ──► no reading is under way: read at once
        └──► one is under way: share the next reading

A reading under way is not shared, because it may have begun before the change that the caller knows of. So an answer is
never older than its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReading(Generic[T]):
    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._under_way: asyncio.Task[T] | None = None
        self._following: asyncio.Task[T] | None = None

    async def read(self) -> T:
        """The result of a reading that begins after this call, or its error. Cancelling a caller cancels no reading."""
        if self._following is None:
            self._following = asyncio.create_task(self._after(self._under_way))
        return await asyncio.shield(self._following)

    async def _after(self, earlier: asyncio.Task[T] | None) -> T:
        if earlier is not None:
            await asyncio.wait([earlier])
        reading = self._under_way = self._following
        self._following = None
        try:
            return await self._read()
        finally:
            if self._under_way is reading:
                self._under_way = None  # so that its result can be freed
