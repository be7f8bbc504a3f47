"""A group's lifecycle in time: results of its launches are reported, observed, and known to every later observation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.decision import Decision, Outcome, Queue
from domain.instances.machine_pool_labels import GroupRecord, LastResult
from domain.instances.passes import GroupWorld, LookAtGroup
from domain.instances.workflow_ids import GroupKey
from engine.temporal import wake
from starters.events.temporal import wake_group
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

GROUP = GroupKey(account="123456789012", region="eu-central-1", group="c1-mp-0")
NOW = datetime(2026, 5, 4, 10, 11, 12, tzinfo=UTC)


def ended(what: str, seconds: int) -> GroupRecord:
    time = NOW + timedelta(seconds=seconds)
    return GroupRecord(results={what: LastResult(time=time, failed=True, detail="no capacity")})


class Looks:
    """What each observation was given, and a decision that waits for the next wake."""

    def __init__(self) -> None:
        self.inputs: list[dict[str, int]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    @activity.defn(name=LookAtGroup.activity)
    async def look_at_group(self, look: LookAtGroup) -> GroupWorld:
        self.inputs.append({what: (each.time - NOW).seconds for what, each in look.memory.results.items()})
        await self.may_answer.wait()
        decision = Decision(phase="in-service", outcome=Outcome.SETTLED, why="a test")
        return GroupWorld(key=look.key, decision=decision)

    async def until(self, inputs: dict[str, int]) -> None:
        """Until an observation was given so much."""
        await eventually(lambda: inputs in self.inputs, lambda: f"{inputs}, not {self.inputs}")


async def test_events_of_launches_are_observed_and_remembered(env: WorkflowEnvironment) -> None:
    looks, signal = Looks(), wake_group(env.client, "")
    workflows = Worker(env.client, task_queue="instances", workflows=workflows_of("instances"))
    activities = Worker(
        env.client, task_queue=Queue.INSTANCES.value, activities=[looks.look_at_group], interceptors=[Boundary()]
    )
    async with workflows, activities:
        await signal(GROUP, ended("launch", 2))
        await looks.until({"launch": 2})
        looks.may_answer.clear()
        await signal(GROUP, GroupRecord())
        await asyncio.sleep(0.2)
        await signal(GROUP, ended("terminate", 1))  # while a look is under way
        looks.may_answer.set()
        await looks.until({"launch": 2, "terminate": 1})
        looks.inputs.clear()
        await wake(env.client, GROUP.lifecycle)  # as the watcher does
        await looks.until({"launch": 2, "terminate": 1})
        await signal(GROUP, ended("launch", 1))  # old news
        looks.inputs.clear()
        await signal(GROUP, ended("launch", 3))
        await looks.until({"launch": 3, "terminate": 1})
        await env.client.get_workflow_handle(GROUP.workflow_id).terminate()
