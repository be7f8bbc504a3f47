"""The consumer's process: list the instances, connect, consume every queue, until SIGTERM. Any number may run.

It is ready once the instances are listed, and while Temporal and the API server answer. In observe mode it receives
nothing, since the replaced system would miss the messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from temporalio.client import Client

from activities.aws.instances_session import Places
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

# Threads per queue that delete, hide and bury messages: each call handles tens of messages.
CALLS_PER_QUEUE = 3

logger = logging.getLogger(__name__)


@dataclass
class _State:
    stage: str = "connecting to Temporal"
    feed: Feed | None = None
    dispatcher: Dispatcher | None = None
    consumers: list[Consumer] = field(default_factory=list)

    def unready(self) -> Iterable[str]:
        if self.feed is not None:
            yield from self.feed.unlisted()
        if self.stage:
            yield self.stage

    def dead(self) -> Iterable[str]:
        for each in self.consumers:
            yield from each.stalled()

    def notes(self) -> Iterable[str]:
        if self.feed is not None:
            yield from self.feed.notes()
        if self.dispatcher is not None and self.dispatcher.trouble:
            yield self.dispatcher.trouble
        for each in self.consumers:
            if each.trouble:
                yield f"{each.name}: {each.trouble}"


async def run_events(settings: Settings, *, stop: asyncio.Event | None = None, health: Health | None = None) -> None:
    """Run the consumer until it is stopped. Raises ValueError if the settings name an invalid queue."""
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
    state = _State()
    health.add(PROCESS, dead=state.dead, unready=state.unready, notes=state.notes)
    async with await KubeApi.open(settings, PROCESS) as api, api_server_reached(health, api, PROCESS):
        index = Index()
        feed = state.feed = Feed(api, index, nodes=settings.instances_nodes)
        metrics.INDEXED.set_function(lambda: len(index))
        await first_of(_until_stopped(settings, found, index, feed, state, health, stop), feed.run())


def _idle(settings: Settings, found: Sequence[Place]) -> str:
    if not found:
        return "PERDURE_INSTANCES_QUEUES names no queue here; consumer, worker and watcher each need it"
    return "in observe mode no message is taken from other readers of the queues" if settings.observing else ""


async def _until_stopped(
    settings: Settings,
    found: Sequence[Place],
    index: Index,
    feed: Feed,
    state: _State,
    health: Health,
    stop: asyncio.Event,
) -> None:
    starting = asyncio.create_task(_dispatcher(settings, found, index, feed, state))
    await first_of(stop.wait(), asyncio.shield(starting))
    if stop.is_set():
        starting.cancel()
        return
    client, dispatcher = await starting
    state.dispatcher = dispatcher
    async with temporal_reached(health, client, PROCESS):
        await _consume_queues(settings, found, client, state, dispatcher, stop)


async def _consume_queues(
    settings: Settings,
    found: Sequence[Place],
    client: Client,
    state: _State,
    dispatcher: Dispatcher,
    stop: asyncio.Event,
) -> None:
    queues = with_queues(found)
    with _threads(settings, queues) as threads:
        state.consumers = _consumers(settings, queues, client, dispatcher, threads)
        try:
            async with asyncio.TaskGroup() as group:
                for consumer in state.consumers:
                    group.create_task(consumer.run(stop), name=f"consumer {consumer.name}")
        finally:
            await dispatcher.close()


async def _dispatcher(
    settings: Settings, found: Sequence[Place], index: Index, feed: Feed, state: _State
) -> tuple[Client, Dispatcher]:
    client = await connected(settings, PROCESS)
    state.stage = ""
    await feed.settled()
    return client, Dispatcher(
        index,
        served(found),
        hand_over(client, settings.cluster),
        wake_group(client, settings.cluster),
        doubtful=lambda: feed.doubtful,
    )


def _consumers(
    settings: Settings, found: Sequence[Place], client: Client, dispatcher: Dispatcher, threads: ThreadPoolExecutor
) -> list[Consumer]:
    callers = Places(connections=_most_calls(settings, found), observing=settings.observing)
    # A flooded queue must leave the other queues their share.
    most = max(10, IN_WORK // len(found))
    return [
        Consumer(
            SqsQueue(
                place,
                callers.caller(place),
                threads,
                wait=receive_wait(settings.drain),
                visibility=settings.events_visibility,
            ),
            dispatcher,
            most=most,
            visibility=settings.events_visibility,
            drain=settings.drain,
            missing=partial(wake, client, key_of(place, settings.cluster)) if settings.instances_setup else None,
        )
        for place in found
    ]


def receive_wait(drain: timedelta) -> timedelta:
    """The wait of one receive: at most SQS's limit of 20 seconds, and well within the drain."""
    return timedelta(seconds=min(20, max(1, drain // timedelta(seconds=1.5))))


@contextmanager
def _threads(settings: Settings, found: Sequence[Place]) -> Iterator[ThreadPoolExecutor]:
    """Threads for calls to SQS. At the end, receives in progress are not awaited."""
    threads = ThreadPoolExecutor(_most_calls(settings, found), thread_name_prefix="sqs")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _most_calls(settings: Settings, found: Sequence[Place]) -> int:
    return len(found) * (POLLERS + CALLS_PER_QUEUE)
