"""At each start of the watcher, wakes the lifecycles that have no object, so that they use changed settings.

An area's module may define `opened_for`, which returns the keys of such lifecycles. Failed wakes are repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from temporalio.service import RPCError

from domain.identity import Key
from engine.settings import Settings
from starters.watch import areas

AGAIN_SECONDS = 5.0

logger = logging.getLogger(__name__)


def opened_by_areas(settings: Settings) -> tuple[Key, ...]:
    chosen = (module.opened_for(settings) for module in areas.modules_served(settings) if hasattr(module, "opened_for"))
    return tuple(key for keys in chosen for key in keys)


async def open_objectless(keys: Iterable[Key], wake: Callable[[Key], Awaitable[None]]) -> None:
    for key in keys:
        while not await _woken(key, wake):  # noqa: ASYNC110 - Temporal does not notify clients when it is back
            await asyncio.sleep(AGAIN_SECONDS)


async def _woken(key: Key, wake: Callable[[Key], Awaitable[None]]) -> bool:
    try:
        await wake(key)
    except RPCError:
        logger.warning("%s could not be woken, and is tried again", key, exc_info=True)
        return False
    return True
