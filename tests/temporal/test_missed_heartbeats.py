"""A worker is heard of while its process lives; a batch without heartbeats is ended in time all the same."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta

import pytest
from claim_domain import BINDER
from temporal_server import TemporalServer, pointing_at
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker
from waiting import eventually

from activities import attempt
from domain.claims.passes import BinderWorld, Serve
from domain.decision import Decision, Outcome, Queue
from engine.temporal import connect, wake
from workers import activity_interceptor
from workers.dead_worker_takeover import is_dead, take_over
from workers.registry import workflows_of

NO_PROCESS = 2**22 + 1  # more than the kernel gives out


class Slow:
    """Batches that last longer than their heartbeat allows; `busy` ones block the event loop meanwhile."""

    def __init__(self, seconds: float, *, busy: bool = False) -> None:
        self.seconds = seconds
        self.busy = busy
        self.attempts: list[int] = []
        self.since: list[datetime] = []

    @activity.defn(name=Serve.activity)
    async def serve(self, batch: Serve) -> BinderWorld:
        self.attempts.append(attempt.number())
        self.since.append(attempt.since())
        if self.busy:
            time.sleep(self.seconds)  # noqa: ASYNC251 - this is the point
        else:
            await asyncio.sleep(self.seconds)
        return BinderWorld(key=batch.key, decision=Decision(phase="Idle", outcome=Outcome.SETTLED, why="a test"))


@contextmanager
def unheard(beat: Callable[[], None]) -> Iterator[None]:
    yield


@asynccontextmanager
async def served_by(client: Client, slow: Slow) -> AsyncIterator[None]:
    async with (
        Worker(client, task_queue="claims", workflows=workflows_of("claims")),
        Worker(
            client,
            task_queue=Queue.CLAIMS.value,
            activities=[slow.serve],
            interceptors=[activity_interceptor.Boundary()],
            graceful_shutdown_timeout=timedelta(0),
        ),
    ):
        yield


async def served(client: Client, slow: Slow) -> tuple[list[timedelta], int]:
    """What `batches` says once a batch has ended."""
    async with served_by(client, slow):
        await wake(client, BINDER)
        handle = client.get_workflow_handle(BINDER.workflow_id)
        try:
            return await eventually(lambda: batches(handle), "a batch comes to its end")
        finally:
            await handle.terminate("the test is over")


async def test_a_busy_event_loop_misses_no_heartbeat(temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Serve, "heartbeat", timedelta(seconds=5))
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    slow = Slow(seconds=11, busy=True)
    given, done = await served(client, slow)
    assert (given, done) == ([timedelta(seconds=5)], 1)
    assert slow.attempts == [1]


async def test_each_missed_heartbeat_gives_the_next_attempt_twice_as_long(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Serve, "heartbeat", timedelta(seconds=2))
    monkeypatch.setattr(activity_interceptor, "heartbeating", unheard)
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    slow = Slow(seconds=4.5)
    given, done = await served(client, slow)
    assert given == [timedelta(seconds=each) for each in (2, 4, 8)]
    assert done == 1
    assert slow.attempts == [1, 2, 3], "each attempt may have had its effect"
    assert slow.since[1] == slow.since[2], "all attempts are one action's"
    assert abs(slow.since[1] - slow.since[0]) < timedelta(seconds=2), "no attempt is that early"


async def test_the_successor_of_a_dead_worker_waits_for_no_heartbeat_of_it(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pointing_at(temporal, monkeypatch)
    monkeypatch.setattr(activity_interceptor, "heartbeating", unheard)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "getpid", lambda: NO_PROCESS)
        dead = await connect(settings, "worker")
    successor = await connect(settings, "worker")
    slow = Slow(seconds=3600)
    async with served_by(dead, slow):
        await wake(dead, BINDER)
        handle = successor.get_workflow_handle(BINDER.workflow_id)
        try:
            await eventually(lambda: begun(slow), "the batch is under way")
            slow.seconds = 0
            await take_over(successor, [BINDER])
            _, done = await eventually(lambda: batches(handle), "the batch comes to its end")
            events = (await handle.fetch_history()).events
        finally:
            await handle.terminate("the test is over")
    assert done == 1
    assert slow.attempts == [1, 2]
    assert [each for each in events if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT] == []


async def begun(slow: Slow) -> bool:
    return bool(slow.attempts)


def test_a_worker_is_dead_where_its_process_is_not_there_any_more() -> None:
    here = socket.gethostname()
    assert is_dead(f"worker:{NO_PROCESS}@{here}")
    assert is_dead(f"worker:{os.getpid()}@{here}"), "in a container that was started again"
    assert not is_dead(f"worker:{os.getppid()}@{here}")
    assert not is_dead(f"worker:{NO_PROCESS}@elsewhere")
    assert not is_dead("somebody")


async def batches(handle: WorkflowHandle[object, object]) -> tuple[list[timedelta], int] | None:
    """The heartbeat timeout of each batch, and how many have ended; None before one has."""
    events = (await handle.fetch_history()).events
    given = [
        each.activity_task_scheduled_event_attributes.heartbeat_timeout.ToTimedelta()
        for each in events
        if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    done = sum(each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED for each in events)
    return (given, done) if done else None
