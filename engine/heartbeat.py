"""Heartbeats of an activity whose code has no natural moment to send them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity


@asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Heartbeat three times per heartbeat timeout while the body runs, so that a killed worker is noticed soon."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beating = asyncio.create_task(_beat(timeout.total_seconds() / 3))
    try:
        yield
    finally:
        beating.cancel()


async def _beat(interval: float) -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(interval)
