"""The worker process: it executes workflows and activities.

It has one Temporal worker per task queue (`task_queues.py`). boto3 and keystoneauth1 are blocking, so AWS and
OpenStack activities run on a thread pool as large as their slots.

On SIGTERM, polling ends, and running activities have the time `PERDURE_DRAIN` to finish.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from activities.clients import Clients
from activities.kube import KubeActivities
from domain.areas import installed
from domain.identity import objectless_in, task_queue
from engine import worker_slots
from engine.health import Health, serve
from engine.kube import KubeApi
from engine.kube.clusters import served_cluster
from engine.kube.pausing import pauses_followed
from engine.process import connected, first_of, stopped_by_signals
from engine.reachability import api_server_reached, temporal_reached
from engine.settings import Settings
from engine.temporal_connection import Connection
from engine.worker_versions import deployment_config
from workers import adaptive_concurrency
from workers.activity_interceptor import Boundary
from workers.dead_worker_takeover import take_over
from workers.registry import areas, local_activities, workflows_of
from workers.task_queues import BLOCKING, SLOTS, by_queue, observing_queues, rate_of

PROCESS = "worker"
INSTANCES = "instances"
# The most workflow tasks of an area at once (`workers.adaptive_concurrency`). They share a core: with too many, none
# ends in time.
WORKFLOW_TASKS = 12
# The most workflow tasks of `instances` at once. Their local activities mostly wait for answers.
MOST_WAITING = 100
LONGEST_HEARTBEAT_PAUSE = timedelta(seconds=5)

log = logging.getLogger(__name__)


async def run_worker(
    settings: Settings,
    *,
    only: Sequence[str] = (),
    stop: asyncio.Event | None = None,
    health: Health | None = None,
) -> None:
    """Run workflows and activities until `stop` is set; without it, until SIGTERM or SIGINT.

    `only` are the areas to run; if empty, the areas in the settings. A process with several parts passes its `health`.
    """
    async with AsyncExitStack() as stack:
        stopped = await stack.enter_async_context(stopped_by_signals(stop))
        own = health or Health()
        if health is None:
            await stack.enter_async_context(serve(own, settings))
        stage = ["connecting to Temporal"]
        workers: list[Worker] = []
        own.add(PROCESS, dead=lambda: () if stage else _ended(workers), unready=lambda: stage)
        client = await _connected(settings, stopped)
        if client is None:
            return
        await stack.enter_async_context(temporal_reached(own, client, PROCESS))
        kube = await stack.enter_async_context(await KubeApi.open(settings, PROCESS))
        await stack.enter_async_context(api_server_reached(own, kube, PROCESS))
        stage[:] = ["preparing"]
        chosen = only or served_areas(settings)
        await take_over(client, objectless_in(chosen, settings.cluster, settings.claims_domain))
        await stack.enter_async_context(pauses_followed(kube, settings, own))
        workers += await create_workers(settings, client, kube, chosen, stack)
        for worker in workers:
            await stack.enter_async_context(worker)
        follow(client, workers)
        stage.clear()
        log.info("executing workflows and activities of the areas %s", ", ".join(chosen))
        await stopped.wait()
        stage.append("draining")


def served_areas(settings: Settings) -> Sequence[str]:
    """The areas to run, `instances` only if `instances_queues` is set; raises ValueError for an unknown area."""
    if unknown := set(settings.areas) - set(areas()):
        raise ValueError(f"PERDURE_AREAS names {', '.join(sorted(unknown))}; the areas are: {', '.join(areas())}")
    wanted = settings.areas or areas()
    return tuple(area for area in areas() if area in wanted and (area != INSTANCES or settings.instances_queues))


def _ended(workers: Iterable[Worker]) -> Iterable[str]:
    return (f"the worker of task queue {worker.task_queue} has ended" for worker in workers if not worker.is_running)


def follow(client: Client, workers: Sequence[Worker]) -> None:
    def over() -> None:
        for worker in workers:
            worker.client = client

    if isinstance(client.service_client, Connection):
        client.service_client.follow(over)


async def create_workers(
    settings: Settings, client: Client, kube: KubeApi, chosen: Sequence[str], stack: AsyncExitStack
) -> list[Worker]:
    served = await stack.enter_async_context(served_cluster(settings, kube, PROCESS, chosen))
    threads = worker_slots.AWS + worker_slots.ORGANIZATION + worker_slots.OPENSTACK
    executor = stack.enter_context(ThreadPoolExecutor(threads, thread_name_prefix="cloud"))
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, thread_name_prefix="blocking"))
    clients = Clients(settings, client, kube, served)
    by_area = await activities_of(clients, chosen, stack)
    activities = [each for of_area in by_area.values() for each in of_area]
    found = {queue: list(of_queue) for queue, of_queue in by_queue(activities).items()}
    writes = KubeActivities(kube, client, served, clients.wrote).all()
    for queue in {queue for area in chosen for queue in observing_queues(area)}:
        found[queue] = [*found.get(queue, ()), *writes]
    version = deployment_config(settings)
    # Workers stop in reverse order: an activity may send a lifecycle an update, so the workflows' worker has to run
    # until the activity has ended.
    workers = [
        Worker(
            client,
            task_queue=task_queue(area, settings.cluster),
            deployment_config=version,
            workflows=workflows_of(area),
            activities=local_activities(by_area[area]),
            interceptors=[Boundary()],
            max_cached_workflows=settings.worker_cached_workflows,
            tuner=adaptive_concurrency.workflow_tasks(MOST_WAITING, waiting=True)
            if area == INSTANCES
            else adaptive_concurrency.workflow_tasks(WORKFLOW_TASKS),
            workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
            graceful_shutdown_timeout=settings.drain,
        )
        for area in chosen
    ]
    workers += [
        Worker(
            client,
            task_queue=task_queue(queue, settings.cluster),
            deployment_config=version,
            activities=of_queue,
            activity_executor=executor if queue in BLOCKING else None,
            tuner=adaptive_concurrency.activities(SLOTS.get(queue, worker_slots.KUBERNETES)),
            max_task_queue_activities_per_second=rate_of(queue, settings),
            activity_task_poller_behavior=PollerBehaviorAutoscaling(),
            interceptors=[Boundary()],
            # A cancellation reaches an activity with its next heartbeat, which must not take half a minute.
            max_heartbeat_throttle_interval=LONGEST_HEARTBEAT_PAUSE,
            graceful_shutdown_timeout=settings.drain,
        )
        for queue, of_queue in found.items()
    ]
    return workers


async def activities_of(
    clients: Clients, chosen: Sequence[str], stack: AsyncExitStack
) -> dict[str, list[Callable[..., object]]]:
    modules = {area: importlib.import_module(installed()[area].activities) for area in chosen}
    return {area: [*await module.activities(clients, stack)] for area, module in modules.items()}


async def _connected(settings: Settings, stopped: asyncio.Event) -> Client | None:
    connecting = asyncio.ensure_future(connected(settings, PROCESS))
    await first_of(stopped.wait(), connecting)
    return None if stopped.is_set() else connecting.result()
