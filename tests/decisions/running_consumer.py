"""A consumer of EC2's events that runs while a test needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
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
