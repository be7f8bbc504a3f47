"""Messages in work: out of others' sight for as long as it takes.

SQS shows a received message again after its visibility timeout. Whatever is still in work after half of it is put out
of sight anew, so that nobody else begins with it; what a process leaves behind when it is killed appears by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.instances.transport import Message
from starters.events.queues import Receipt

# What the age of the oldest message is told of.
REMEMBERED_SECONDS = 60.0

# Puts a message out of sight for so long; whether it could.
Hide = Callable[[tuple[Receipt, timedelta]], Awaitable[bool]]


@dataclass
class _Held:
    message: Message
    visible_at: float


class InWork:
    """The messages of one queue that are in work here."""

    def __init__(self, visibility: timedelta, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._visibility = visibility
        self._clock = clock
        self._held: dict[Receipt, _Held] = {}
        self._changed = asyncio.Event()
        self._received: deque[tuple[float, datetime]] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Message]:
        return iter([held.message for held in self._held.values()])

    def add(self, message: Message) -> None:
        """A message was received."""
        now = self._clock()
        self._held[message.receipt_handle] = _Held(message, now + self._visibility.total_seconds())
        self._received.append((now, message.taken_at))
        self._forget(now)

    def remove(self, message: Message) -> None:
        """It is done with, or given back."""
        self._held.pop(message.receipt_handle, None)
        self._changed.set()

    async def room(self, most: int) -> None:
        """Wait until fewer than so many are in work."""
        while len(self._held) >= most:
            self._changed.clear()
            await self._changed.wait()

    def oldest_age(self, now: datetime) -> float:
        """The age (seconds) of the oldest message received within the last minute, 0 if there was none."""
        self._forget(self._clock())
        taken = [at for _, at in self._received]
        return max(0.0, (now - min(taken)).total_seconds()) if taken else 0.0

    def due(self) -> list[Message]:
        """Those that are shown again within half of the visibility timeout."""
        limit = self._clock() + self._visibility.total_seconds() / 2
        return [held.message for held in self._held.values() if held.visible_at <= limit]

    async def keep_hidden(self, hide: Hide) -> None:
        """Put what takes long out of sight again and again, for ever."""
        while True:
            await asyncio.sleep(self._visibility.total_seconds() / 4)
            await asyncio.gather(*(self._extend(message, hide) for message in self.due()))

    async def _extend(self, message: Message, hide: Hide) -> None:
        asked_at = self._clock()
        hidden = await hide((message.receipt_handle, self._visibility))
        held = self._held.get(message.receipt_handle)
        if hidden and held is not None:
            held.visible_at = asked_at + self._visibility.total_seconds()

    def _forget(self, now: float) -> None:
        while self._received and self._received[0][0] < now - REMEMBERED_SECONDS:
            self._received.popleft()
