"""Gathers single requests into calls of up to ten entries: SQS charges per call, and limits calls.

If a call fails as a whole, all of its entries fail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from engine.errors import ApiError
from starters.events.sqs_queues import MOST_IN_BATCH

T = TypeVar("T")

# Too short to be noticed; ten messages that were received together share a call.
GATHERING_SECONDS = 0.005

logger = logging.getLogger(__name__)


class Batches(Generic[T]):
    """Joins entries of the same moment in one call.

    Args:
        call: makes the call; returns for each entry whether it succeeded.
        what: what the call does, for logs, such as `deleting`.
    """

    def __init__(self, call: Callable[[Sequence[T]], Awaitable[Sequence[bool]]], what: str) -> None:
        self._call = call
        self._what = what
        self._waiting: list[tuple[T, asyncio.Future[bool]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()

    async def add(self, entry: T) -> bool:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((entry, done))
        if len(self._waiting) >= MOST_IN_BATCH:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(GATHERING_SECONDS, self._flush)
        return await done

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        if batch:
            call = asyncio.get_running_loop().create_task(self._do(batch))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _do(self, batch: Sequence[tuple[T, asyncio.Future[bool]]]) -> None:
        try:
            results = await self._call([entry for entry, _ in batch])
        except ApiError as error:
            logger.warning("%s %d messages failed: %s", self._what, len(batch), error)
            results = [False] * len(batch)
        except Exception:  # callers must not wait forever
            logger.exception("%s %d messages failed", self._what, len(batch))
            results = [False] * len(batch)
        for (_, done), result in zip(batch, results, strict=True):
            if not done.done():
                done.set_result(result)
