"""Background tasks that areas run in the leading watcher.

An area's module may define `duties_for`, which returns functions that run forever with the API client and the index.
No other part may depend on these tasks, because a failed task is restarted only a minute later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from engine.kube.api import KubeApi
from engine.settings import Settings
from starters.watch import areas
from starters.watch.projection_index import Index

Duty = Callable[[KubeApi, Index], Awaitable[None]]

AFTER_FAILURE = 60.0

logger = logging.getLogger(__name__)


def duties_of_areas(settings: Settings) -> tuple[Duty, ...]:
    chosen = (module.duties_for(settings) for module in areas.modules_served(settings) if hasattr(module, "duties_for"))
    return tuple(duty for duties in chosen for duty in duties)


async def attend(duty: Duty, api: KubeApi, index: Index) -> None:
    while True:
        try:
            await duty(api, index)
        except Exception:
            logger.exception("a background task of the watcher failed, and is restarted in a minute")
        await asyncio.sleep(AFTER_FAILURE)
