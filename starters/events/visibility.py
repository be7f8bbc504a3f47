"""Keeps messages in progress invisible to other consumers. If the process is killed, they reappear by themselves."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.instances.message_unwrapping import Message
from starters.events.sqs_queues import Receipt

# Only messages received within this time count towards the age of the oldest message.
REMEMBERED_SECONDS = 60.0

# Makes a message invisible for this long; returns whether that succeeded.
Hide = Callable[[tuple[Receipt, timedelta]], Awaitable[bool]]


@dataclass
class _Held:
    message: Message
    visible_at: float


class VisibilityExtender:
    def __init__(self, visibility: timedelta, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._visibility = visibility
        self._clock = clock
        self._held: dict[Receipt, _Held] = {}
        self._extending: dict[Receipt, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._received: deque[tuple[float, datetime]] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Message]:
        return iter([held.message for held in self._held.values()])

    def add(self, message: Message) -> None:
        now = self._clock()
        self._held[message.receipt_handle] = _Held(message, now + self._visibility.total_seconds())
        self._received.append((now, message.taken_at))
        self._forget(now)

    async def give_back(self, message: Message, delay: timedelta, hide: Hide) -> None:
        """Hide the message for the delay. An extension in flight is awaited first, as it could replace the delay."""
        self.remove(message)
        if extending := self._extending.get(message.receipt_handle):
            await asyncio.wait((extending,))
        await hide((message.receipt_handle, delay))

    def remove(self, message: Message) -> None:
        self._held.pop(message.receipt_handle, None)
        self._changed.set()

    async def room(self, most: int) -> None:
        while len(self._held) >= most:
            self._changed.clear()
            await self._changed.wait()

    def oldest_age(self, now: datetime) -> float:
        """The age in seconds of the oldest message that was received in the last minute; 0 if there was none."""
        self._forget(self._clock())
        taken = [at for _, at in self._received]
        return max(0.0, (now - min(taken)).total_seconds()) if taken else 0.0

    def due(self) -> list[Message]:
        limit = self._clock() + self._visibility.total_seconds() / 2
        return [held.message for held in self._held.values() if held.visible_at <= limit]

    async def keep_hidden(self, hide: Hide) -> None:
        while True:
            await asyncio.sleep(self._visibility.total_seconds() / 4)
            for message in self.due():
                self._extending[message.receipt_handle] = asyncio.create_task(self._extend(message, hide))
            await asyncio.gather(*self._extending.values())
            self._extending.clear()

    async def _extend(self, message: Message, hide: Hide) -> None:
        asked_at = self._clock()
        hidden = await hide((message.receipt_handle, self._visibility))
        held = self._held.get(message.receipt_handle)
        if hidden and held is not None:
            held.visible_at = asked_at + self._visibility.total_seconds()

    def _forget(self, now: float) -> None:
        while self._received and self._received[0][0] < now - REMEMBERED_SECONDS:
            self._received.popleft()
