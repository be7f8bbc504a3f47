"""Heartbeats of every activity whose action names a heartbeat timeout: they say that its worker lives.

What hangs is bounded by the action's `start_to_close`; a killed worker is noticed after the heartbeat timeout, which
may be much shorter. The first beat comes after a third of the timeout, so what is quick costs no call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from temporalio import activity


@asynccontextmanager
async def heartbeating(beat: Callable[[], None] = activity.heartbeat) -> AsyncIterator[None]:
    """Heartbeat three times per heartbeat timeout while the body runs, so that a killed worker is noticed soon.

    `beat` is called on the event loop; for activities on threads it must not be `activity.heartbeat`, which waits there
    for the loop.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beating = asyncio.create_task(_beat(beat, timeout.total_seconds() / 3))
    try:
        yield
    finally:
        beating.cancel()


async def _beat(beat: Callable[[], None], interval: float) -> None:
    while True:
        await asyncio.sleep(interval)
        beat()
