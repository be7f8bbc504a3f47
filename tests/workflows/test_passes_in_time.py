"""A lifecycle whose pass is one activity looks again at the deadline that the pass gave, even when it hears late."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.accounts.passes import PassPool, PoolWorld
from domain.decision import Decision, Outcome, Queue
from domain.identity import Key
from engine import clock
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("accounts")

KEY = Key(kind="AccountPool", namespace="aws-account-operator", name="default", uid="1")


class Passes:
    """A pool's passes: each gives a deadline, at the distance that the test names, and answers after so long."""

    def __init__(self, *distances: float, seconds: float = 0) -> None:
        self.distances = distances
        self.seconds = seconds
        self.made: list[float] = []

    @activity.defn(name=PassPool.activity)
    async def one(self, look: PassPool) -> PoolWorld:
        self.made.append(clock.now().timestamp())
        distance = self.distances[min(len(self.made), len(self.distances)) - 1]
        deadline = clock.now() + timedelta(seconds=distance) if distance else None
        await asyncio.sleep(self.seconds)
        decision = Decision(phase="Waiting", outcome=Outcome.WORKING, why="a test", deadline=deadline)
        return PoolWorld(key=look.key, decision=decision)

    async def until(self, number: int) -> None:
        await eventually(lambda: len(self.made) >= number, lambda: f"{len(self.made)} passes, not {number}")


async def begin(env: WorkflowEnvironment, passes: Passes) -> tuple[Worker, Worker]:
    return (
        Worker(env.client, task_queue="accounts", workflows=WORKFLOWS),
        Worker(env.client, task_queue=Queue.KUBE.value, activities=[passes.one], interceptors=[Boundary()]),
    )


async def end(env: WorkflowEnvironment) -> None:
    handle: WorkflowHandle[object, object] = env.client.get_workflow_handle(KEY.workflow_id)
    await handle.terminate("the test is over")


async def test_a_deadline_that_passes_during_a_pass_leads_to_an_observation(env: WorkflowEnvironment) -> None:
    passes = Passes(0.2, 0, seconds=1.2)
    workflows, activities = await begin(env, passes)
    async with workflows, activities:
        await wake(env.client, KEY)
        await env.sleep(timedelta(seconds=5))
        await passes.until(2)
        await end(env)


async def test_a_deadline_that_stays_in_the_past_leads_to_one_look_a_second(env: WorkflowEnvironment) -> None:
    passes = Passes(-60)
    workflows, activities = await begin(env, passes)
    async with workflows, activities:
        await wake(env.client, KEY)
        await env.sleep(timedelta(seconds=10))
        await end(env)
    # On the average: a late observation is followed by a punctual one.
    gaps = len(passes.made) - 1
    assert gaps > 3
    assert (passes.made[-1] - passes.made[0]) / gaps > 0.9


async def test_the_timeline_says_what_each_look_was_made_after(env: WorkflowEnvironment) -> None:
    passes = Passes(1, 0)
    workflows, activities = await begin(env, passes)
    async with workflows, activities:
        await wake(env.client, KEY)
        await env.sleep(timedelta(seconds=5))
        await passes.until(2)
        lines = await summaries(env)
        await end(env)
    assert lines == [
        "count its accounts, create missing ones, bind claims",
        "observe again; the last result was Waiting: a test",
    ]


async def summaries(env: WorkflowEnvironment) -> list[str]:
    """What the UI shows beside each activity."""
    handle: WorkflowHandle[object, object] = env.client.get_workflow_handle(KEY.workflow_id)
    events = (await handle.fetch_history()).events
    payloads = [
        each.user_metadata.summary for each in events if each.HasField("activity_task_scheduled_event_attributes")
    ]
    return list(await pydantic_data_converter.decode(payloads, [str] * len(payloads)))
