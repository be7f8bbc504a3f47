"""A place's upkeep in time: a look an hour, sooner after a refusal, and an end once the settings name it no more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.decision import Decision, Outcome, Queue
from domain.instances.event_topology_upkeep import LOOK_AGAIN, LOOK_EVERY, KeepTopology, TopologyWorld, key_of
from domain.instances.served_queues import Place
from engine import clock
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

KEY = key_of(Place(account="123456789012", region="eu-central-1"))


class Looks:
    """What the looks come to, one after the other; the last for ever."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = outcomes
        self.made: list[datetime] = []

    @activity.defn(name=KeepTopology.activity)
    async def one(self, look: KeepTopology) -> TopologyWorld:
        self.made.append(clock.now())
        outcome = self.outcomes[min(len(self.made), len(self.outcomes)) - 1]
        wait = {Outcome.SETTLED: LOOK_EVERY, Outcome.WAITING: LOOK_AGAIN}.get(outcome)
        deadline = clock.now() + wait if wait else None
        decision = Decision(phase=outcome.value, outcome=outcome, why="a test", deadline=deadline)
        return TopologyWorld(key=look.key, exists=outcome is not Outcome.GONE, decision=decision)

    async def until(self, number: int) -> None:
        await eventually(lambda: len(self.made) >= number, lambda: f"{len(self.made)} looks, not {number}")


async def test_a_place_is_observed_again_until_it_is_not_used(env: WorkflowEnvironment) -> None:
    looks = Looks(Outcome.WAITING, Outcome.SETTLED, Outcome.SETTLED, Outcome.GONE)
    workflows = Worker(env.client, task_queue="instances", workflows=workflows_of("instances"))
    activities = Worker(env.client, task_queue=Queue.INSTANCES.value, activities=[looks.one], interceptors=[Boundary()])
    async with workflows, activities:
        await wake(env.client, KEY)
        await looks.until(1)
        await env.sleep(LOOK_AGAIN + timedelta(minutes=1))
        await looks.until(2)
        await env.sleep(2 * LOOK_EVERY + timedelta(minutes=5))
        await looks.until(4)
        await env.client.get_workflow_handle(KEY.workflow_id).result()
    gaps = [later - earlier for earlier, later in zip(looks.made, looks.made[1:], strict=False)]
    assert gaps[0] >= LOOK_AGAIN
    assert gaps[1] >= LOOK_EVERY
    assert len(looks.made) == 4


@pytest.mark.parametrize(
    ("lever", "advice"), [("retry", "to repeat refused actions at once, wake it"), ("pause", "perdure pause --area")]
)
async def test_a_person_who_pulls_a_lever_without_an_object_gets_advice(
    env: WorkflowEnvironment, lever: str, advice: str
) -> None:
    looks = Looks(Outcome.FAILED)
    key = key_of(Place(account="123456789012", region="eu-west-1", queue=lever))
    workflows = Worker(env.client, task_queue="instances", workflows=workflows_of("instances"))
    activities = Worker(env.client, task_queue=Queue.INSTANCES.value, activities=[looks.one], interceptors=[Boundary()])
    async with workflows, activities:
        await wake(env.client, key)
        await looks.until(1)
        handle: WorkflowHandle[Any, Any] = env.client.get_workflow_handle(key.workflow_id)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(lever, "because")
        await handle.terminate()
    assert isinstance(refused.value.cause, ApplicationError)
    assert advice in refused.value.cause.message
