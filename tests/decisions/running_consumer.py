"""A consumer of EC2's events that runs while a test needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starters.events.consumer import Consumer


@asynccontextmanager
async def running(consumer: Consumer) -> AsyncIterator[Consumer]:
    stop = asyncio.Event()
    task = asyncio.create_task(consumer.run(stop))
    try:
        yield consumer
    finally:
        stop.set()
        await task


async def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Looks each millisecond: what a consumer shows may be over soon."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - the state has no event to wait for
            await asyncio.sleep(0.001)
