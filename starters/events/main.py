"""The consumer's process: list the instances, connect, consume every queue, until SIGTERM. Any number may run.

It is ready once the instances are listed, and while Temporal and the API server answer. In observe mode it receives
nothing, since the system that Perdure replaces would miss the messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from temporalio.client import Client

from activities.aws.queue_account_roles import Places
from domain.instances.event_topology_upkeep import key_of
from domain.instances.served_queues import Place, places, served, with_queues
from engine.health import Health, serve
from engine.kube import KubeApi
from engine.process import connected, first_of, stopped_by_signals
from engine.reachability import api_server_reached, temporal_reached
from engine.settings import Settings
from engine.temporal import wake
from starters.events import metrics
from starters.events.consumer import Consumer
from starters.events.dispatcher import Dispatcher
from starters.events.machine_index import Feed, Index
from starters.events.sqs_queues import SqsQueue
from starters.events.temporal import hand_over, wake_group

PROCESS = "events"

# The maximum number of messages in progress in one process, which handles the most urgent messages first.
IN_WORK = 10_000
# Concurrent receives for each queue.
POLLERS = 2

# Threads per queue that delete, hide and bury messages: one call deletes or hides up to ten.
CALLS_PER_QUEUE = 3

logger = logging.getLogger(__name__)


async def run_events(settings: Settings, *, stop: asyncio.Event | None = None, health: Health | None = None) -> None:
    """Raises ValueError if the settings name an invalid queue."""
    found = places(settings.instances_queues)
    async with stopped_by_signals(stop) as stopped:
        if health is not None:
            await _consume(settings, found, health, stopped)
            return
        own = Health()
        async with serve(own, settings):
            await _consume(settings, found, own, stopped)


async def _consume(settings: Settings, found: Sequence[Place], health: Health, stop: asyncio.Event) -> None:
    idle = _idle(settings, found)
    if idle:
        logger.warning("nothing is consumed: %s", idle)
        health.add(PROCESS, notes=lambda: [idle])
        await stop.wait()
        return
    await _Process(settings, found, health, stop).run()


def _idle(settings: Settings, found: Sequence[Place]) -> str:
    if not found:
        return "PERDURE_INSTANCES_QUEUES names no queue; consumer, worker and watcher each need this setting"
    if settings.observing:
        return "in observe mode no messages are received, because other readers of the queues would miss them"
    return ""


class _Process:
    def __init__(self, settings: Settings, found: Sequence[Place], health: Health, stop: asyncio.Event) -> None:
        self._settings = settings
        self._places = found
        self._health = health
        self._stop = stop
        self._stage = "connecting to Temporal"
        self._index = Index()
        self._feed: Feed | None = None
        self._dispatcher: Dispatcher | None = None
        self._consumers: list[Consumer] = []
        health.add(PROCESS, dead=self._dead, unready=self._unready, notes=self._notes)

    async def run(self) -> None:
        async with await KubeApi.open(self._settings, PROCESS) as api, api_server_reached(self._health, api, PROCESS):
            feed = self._feed = Feed(api, self._index, nodes=self._settings.instances_nodes)
            metrics.INDEXED.set_function(lambda: len(self._index))
            await first_of(self._until_stopped(feed), feed.run())

    async def _until_stopped(self, feed: Feed) -> None:
        starting = asyncio.create_task(self._started(feed))
        await first_of(self._stop.wait(), asyncio.shield(starting))
        if self._stop.is_set():
            starting.cancel()
            return
        client, dispatcher = await starting
        self._dispatcher = dispatcher
        async with temporal_reached(self._health, client, PROCESS):
            await self._consume_queues(client, dispatcher)

    async def _started(self, feed: Feed) -> tuple[Client, Dispatcher]:
        client = await connected(self._settings, PROCESS)
        self._stage = ""
        await feed.settled()
        cluster = self._settings.cluster
        return client, Dispatcher(
            self._index,
            served(self._places),
            hand_over(client, cluster),
            wake_group(client, cluster),
            doubtful=lambda: feed.doubtful,
        )

    async def _consume_queues(self, client: Client, dispatcher: Dispatcher) -> None:
        settings, queues = self._settings, with_queues(self._places)
        cluster, wait = settings.cluster, receive_wait(settings.drain)
        calls = len(queues) * (POLLERS + CALLS_PER_QUEUE)
        with _threads(calls) as threads:
            callers = Places(connections=calls, observing=settings.observing)
            # A flooded queue must leave the other queues their share.
            most = max(10, IN_WORK // len(queues))
            self._consumers = [
                Consumer(
                    SqsQueue(place, callers.caller(place), threads, wait=wait, visibility=settings.events_visibility),
                    dispatcher,
                    most=most,
                    visibility=settings.events_visibility,
                    drain=settings.drain,
                    missing=partial(wake, client, key_of(place, cluster)) if settings.instances_setup else None,
                )
                for place in queues
            ]
            try:
                async with asyncio.TaskGroup() as group:
                    for consumer in self._consumers:
                        group.create_task(consumer.run(self._stop), name=f"consumer {consumer.name}")
            finally:
                await dispatcher.close()

    # Checks.

    def _unready(self) -> Iterable[str]:
        if self._feed is not None:
            yield from self._feed.unlisted()
        if self._stage:
            yield self._stage

    def _dead(self) -> Iterable[str]:
        for each in self._consumers:
            yield from each.stalled()

    def _notes(self) -> Iterable[str]:
        if self._feed is not None:
            yield from self._feed.notes()
        if self._dispatcher is not None and self._dispatcher.trouble:
            yield self._dispatcher.trouble
        for each in self._consumers:
            if each.trouble:
                yield f"{each.name}: {each.trouble}"


def receive_wait(drain: timedelta) -> timedelta:
    """The wait of one receive: at most SQS's 20 seconds, and well within the process's shutdown."""
    return timedelta(seconds=min(20, max(1, drain // timedelta(seconds=1.5))))


@contextmanager
def _threads(most: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for calls to SQS. A process that ends does not wait for ReceiveMessage calls in progress."""
    threads = ThreadPoolExecutor(most, thread_name_prefix="sqs")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
