"""Wakes open lifecycles when their area is paused or resumed.

A worker whose watch of the ConfigMap is frozen sees a resume late, so lifecycles of a resumed area are woken twice. A
new leader repeats the wakes of recent resumes, because its predecessor may not have sent them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from domain.identity import all_areas, all_kinds, id_prefix
from domain.pauses import Pauses, areas_changed, resumed_since
from engine.health import Health
from engine.kube import KubeApi
from engine.kube.json import JsonObject
from engine.kube.pausing import pauses_followed
from engine.kube.reflector import Timing
from engine.settings import Settings
from engine.temporal import wake_listed

SOON = timedelta(seconds=2)
AFTER_SILENCE = timedelta(seconds=20)  # beyond the time in which a frozen stream is detected
RECENT = timedelta(minutes=10)
AGAIN_SECONDS = 5.0
AT_ONCE = 10

logger = logging.getLogger(__name__)


@asynccontextmanager
async def pauses_reported(client: Client, kube: KubeApi, settings: Settings, health: Health) -> AsyncIterator[None]:
    served = tuple(area for area in all_areas() if not settings.areas or area in settings.areas)
    tasks: set[asyncio.Task[None]] = set()
    begun = False

    def later(delay: timedelta, areas: tuple[str, ...]) -> None:
        task = asyncio.create_task(_wake_after(delay, client, areas, settings.cluster))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def changed(before: Pauses, after: Pauses, config_map: JsonObject | None) -> None:
        nonlocal begun
        paused, let_go = areas_changed(before, after, served)
        if not begun:
            begun = True
            recent = resumed_since(config_map, datetime.now(UTC) - RECENT, served)
            let_go = tuple(sorted({*let_go, *recent} - set(paused)))
        if paused or let_go:
            later(SOON, (*paused, *let_go))
        if let_go:
            later(Timing.silence + AFTER_SILENCE, let_go)

    try:
        async with pauses_followed(kube, settings, health, changed):
            yield
    finally:
        for task in tasks:
            task.cancel()


async def _wake_after(delay: timedelta, client: Client, areas: tuple[str, ...], cluster: str) -> None:
    await asyncio.sleep(delay.total_seconds())
    while True:
        try:
            number = await wake_open_of(client, areas, cluster)
        except RPCError as error:
            logger.warning("lifecycles cannot be woken after a pause or resume, trying again: %s", error)
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        logger.info("%d lifecycles of %s were woken after a pause or resume", number, ", ".join(areas))
        return


async def wake_open_of(client: Client, areas: Iterable[str], cluster: str) -> int:
    chosen = set(areas)
    kinds = [kind for kind in all_kinds().values() if kind.lifecycle and kind.area in chosen]
    prefixes = tuple(id_prefix(kind.name, cluster) for kind in kinds)
    free = asyncio.Semaphore(AT_ONCE)

    async def wake(workflow_id: str) -> None:
        async with free:
            await wake_listed(client, workflow_id)

    names = ", ".join(f"'{kind.name}'" for kind in kinds)
    query = f"WorkflowType IN ({names}) AND ExecutionStatus = 'Running'"
    found = [each.id async for each in client.list_workflows(query)]
    ours = [workflow_id for workflow_id in found if workflow_id.startswith(prefixes)]
    await asyncio.gather(*(wake(workflow_id) for workflow_id in ours))
    return len(ours)
