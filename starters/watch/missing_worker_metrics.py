"""Metrics of areas and worker versions that no worker serves. A standby does not export these metrics."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from prometheus_client import Gauge
from temporalio.client import Client

from domain.identity import all_areas
from engine.missing_workers import QUIET_AFTER, missing_workers
from engine.settings import Settings

EVERY_SECONDS = 60.0

MISSING = Gauge("perdure_worker_missing", "1 while no worker polls the task queue of a served area.", ["area"])
VERSION_MISSING = Gauge(
    "perdure_worker_version_missing",
    "Open lifecycles pinned to an older version for which no worker runs any more.",
    ["area", "build_id"],
)

logger = logging.getLogger(__name__)


async def report_missing_workers(client: Client, settings: Settings) -> None:
    """Check every minute. A failed check keeps the last result."""
    try:
        while True:
            try:
                await look(client, settings)
            except Exception as error:  # the watcher itself must go on
                logger.warning("cannot ask Temporal which workers poll, trying again in a minute: %s", error)
            await asyncio.sleep(EVERY_SECONDS)
    finally:
        MISSING.clear()
        VERSION_MISSING.clear()


async def look(client: Client, settings: Settings, quiet_after: timedelta = QUIET_AFTER) -> None:
    areas = served_areas(settings)
    found = await missing_workers(client, areas, settings.cluster, settings.worker_deployment, quiet_after)
    current = {each.area for each in found if each.open is None}
    for area in areas:
        MISSING.labels(area).set(area in current)
    VERSION_MISSING.clear()
    for each in found:
        if each.open is not None:
            VERSION_MISSING.labels(each.area, each.build_id).set(each.open)


def served_areas(settings: Settings) -> tuple[str, ...]:
    wanted = settings.areas or all_areas()
    return tuple(area for area in wanted if area != "instances" or settings.instances_queues)
