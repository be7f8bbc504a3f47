"""The watcher's process: it connects, leads and watches until SIGTERM.

The replica that holds the Lease leads. A standby is ready too, because a rollout would otherwise wait for it forever.
Two leaders at once do no harm: they only send superfluous wakes. In observe mode no Lease is written, so every replica
watches.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from temporalio.client import Client

from engine.health import Health, serve
from engine.kube import KubeApi, LeaderElection, LeadershipLost
from engine.kube.clusters import served_cluster
from engine.kube.leader_election import Annotations
from engine.own_thread import LastKnown, OwnThread, own_thread
from engine.process import connected, first_of, stopped_by_signals, ungrouped
from engine.reachability import api_server_reached, temporal_reached
from engine.settings import Settings
from engine.temporal import is_open, wake, wake_open
from starters.watch import metrics
from starters.watch.background_tasks import attend, duties_of_areas
from starters.watch.checkpoint import CHECKPOINT
from starters.watch.gauges import published
from starters.watch.missing_worker_metrics import report_missing_workers
from starters.watch.missing_workflows import unmatched
from starters.watch.objectless_lifecycles import open_objectless, opened_by_areas
from starters.watch.pause_wakes import pauses_reported
from starters.watch.watched_kinds import watched_under
from starters.watch.watcher import Watcher

PROCESS = "watch"

logger = logging.getLogger(__name__)


async def run_watcher(settings: Settings, *, stop: asyncio.Event | None = None, health: Health | None = None) -> None:
    """Watch until `stop` is set or, if it is None, until SIGTERM or SIGINT. A caller that serves health itself passes
    `health`.
    """
    async with (
        stopped_by_signals(stop) as stopped,
        await KubeApi.open(settings, PROCESS) as api,
        served_cluster(settings, api, PROCESS) as served,
    ):
        if health is not None:
            await first_of(stopped.wait(), _connect(settings, api, served, health))
            return
        own = Health()
        async with serve(own, settings):
            await first_of(stopped.wait(), _connect(settings, api, served, own))


async def _connect(settings: Settings, api: KubeApi, served: KubeApi, health: Health) -> None:
    stage = ["connecting to Temporal"]
    health.add(PROCESS, unready=lambda: stage)
    async with AsyncExitStack() as checks:
        for cluster in dict.fromkeys((api, served)):
            await checks.enter_async_context(api_server_reached(health, cluster, PROCESS))
        client = await connected(settings, PROCESS)
        await checks.enter_async_context(temporal_reached(health, client, PROCESS))
        await _lead(settings, api, served, client, health)


async def _lead(settings: Settings, api: KubeApi, served: KubeApi, client: Client, health: Health) -> None:
    if settings.observing:
        await _watch(settings, api, served, client, health, checkpoint="")
        return
    async with own_thread("lease") as thread, _lease_client(settings, thread) as leases:
        while True:
            election = LeaderElection(
                leases, settings.watch_lease_namespace, settings.watch_lease_name, identity(settings)
            )
            stand_by(election, health)
            await thread.run(election.acquire())
            try:
                # A task of its own: Python 3.11's task groups leave a cancellation pending that would cancel the next
                # term's waits.
                hold, checkpoint = partial(_hold, thread, election), election.annotation(CHECKPOINT)
                await asyncio.create_task(_watch(settings, api, served, client, health, checkpoint, hold))
            except LeadershipLost as lost:
                logger.warning("%s; another watcher may lead now, and this one waits", lost)
            finally:
                metrics.LEADER.set(0)
                stand_by(election, health)
                await asyncio.shield(thread.run(election.release()))


@asynccontextmanager
async def _lease_client(settings: Settings, thread: OwnThread) -> AsyncIterator[KubeApi]:
    """An API client in a separate thread: it renews the Lease even while the main event loop is busy."""
    api = await thread.run(KubeApi.open(settings, PROCESS))
    try:
        yield api
    finally:
        await asyncio.shield(thread.run(api.close()))


async def _hold(thread: OwnThread, election: LeaderElection, annotations: Annotations) -> None:
    await thread.run(election.hold(annotations))


def stand_by(election: LeaderElection, health: Health) -> None:
    def unready() -> list[str]:
        if election.trouble or election.leader:
            return [election.trouble] if election.trouble else []
        return ["trying to acquire the Lease"]

    def notes() -> list[str]:
        return [f"standing by: {election.leader} leads"] if election.leader else []

    health.add(PROCESS, unready=unready, notes=notes)


async def _watch(
    settings: Settings,
    api: KubeApi,
    served: KubeApi,
    client: Client,
    health: Health,
    checkpoint: str,
    hold: Callable[[Annotations], Coroutine[object, object, None]] | None = None,
) -> None:
    watcher = Watcher(
        api,
        lambda key: wake(client, key, watcher.seen(key)),
        watched_under(settings),
        cluster=settings.cluster,
        unmatched=partial(unmatched, client, settings.cluster),
        is_open=partial(is_open, client),
        wake_open=lambda key: wake_open(client, key, watcher.seen(key)),
        checkpoint=checkpoint,
        served=served,
    )
    watcher.register(health)
    acknowledged = LastKnown(watcher.checkpoint)
    metrics.LEADER.set(1)
    lost: BaseException | None = None
    try:
        with published(watcher.index):
            async with pauses_reported(client, api, settings, health), asyncio.TaskGroup() as group:
                group.create_task(watcher.run())
                group.create_task(report_missing_workers(client, settings))
                group.create_task(open_objectless(opened_by_areas(settings), partial(wake, client)))
                if not settings.observing:
                    for duty in duties_of_areas(settings):
                        group.create_task(attend(duty, api, watcher.index))
                if hold is not None:
                    group.create_task(hold(lambda: {CHECKPOINT: acknowledged()}))
    except* LeadershipLost as error:
        lost = ungrouped(error)
    finally:
        acknowledged.refresh()
    if lost is not None:
        raise lost


def identity(settings: Settings) -> str:
    """The process's name in the Lease. A restarted process gets its Lease back at once if the name contains the health
    port instead of the process id.
    """
    return f"{socket.gethostname()}_{settings.health_port or os.getpid()}"
