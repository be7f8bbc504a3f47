"""An AccountPool's workflow is notified which of its Accounts gave up, and each pass learns of it once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio import activity
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from activities.kube import KubeActivities
from domain.accounts.passes import PassPool, PoolMemory, PoolWorld
from domain.decision import Decision, Outcome
from domain.identity import Key
from domain.writes import Delete
from engine.errors import Denied
from engine.kube import KubeApi
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("accounts")

POOL = Key(kind="AccountPool", namespace="aws-account-operator", name="pool", uid="uid-pool")
DECIDED = Decision(phase="Waiting", outcome=Outcome.WAITING, why="a test")


def dead(name: str) -> Key:
    return Key(kind="Account", namespace=POOL.namespace, name=name, uid=f"uid-{name}")


class Passes:
    """The pool's activity: each pass waits until the test allows it, and is recorded with its input."""

    def __init__(self) -> None:
        self.inputs: list[tuple[str, ...]] = []
        self.bonds_seen: list[bool] = []
        self.refuses = False
        self.free = asyncio.Event()
        self.free.set()

    @activity.defn(name=PassPool.activity)
    async def pass_pool(self, look: PassPool) -> PoolWorld:
        self.inputs.append(look.memory.died)
        self.bonds_seen.append(look.memory.bonds_seen)
        if self.refuses:
            raise Denied("the claim may not be written")
        await self.free.wait()
        return PoolWorld(key=look.key, known=PoolMemory(bonds_seen=True), heard=look.memory.died, decision=DECIDED)

    async def until(self, true: Callable[[], bool]) -> None:
        await eventually(true, lambda: self.inputs)


@pytest.fixture
async def passes(env: WorkflowEnvironment) -> AsyncIterator[Passes]:
    found = Passes()
    async with (
        Worker(env.client, task_queue="kube", activities=[found.pass_pool], interceptors=[Boundary()]),
        Worker(env.client, task_queue="accounts", workflows=WORKFLOWS),
    ):
        await wake(env.client, POOL)
        await found.until(lambda: found.inputs == [()])
        yield found
        await env.client.get_workflow_handle(POOL.workflow_id).terminate("the test is over")


async def give_up(env: WorkflowEnvironment, name: str, dependent: Key | None, deleted: list[str]) -> None:
    """What the worker does when an Account gives itself up; only the API server is not there."""

    async def delete(kind: Any, namespace: str, name: str, uid: str) -> None:
        deleted.append(name)

    kube = cast("KubeApi", SimpleNamespace(delete=delete))
    activities = KubeActivities(kube, env.client)
    await ActivityEnvironment().run(activities.delete, Delete(key=dead(name), dependent=dependent))


async def test_a_pool_learns_who_gave_itself_up_and_only_once(env: WorkflowEnvironment, passes: Passes) -> None:
    deleted: list[str] = []
    await give_up(env, "first", POOL, deleted)
    await passes.until(lambda: passes.inputs[1:] == [("first",)])
    await wake(env.client, POOL)
    await passes.until(lambda: passes.inputs[2:] == [()])
    assert deleted == ["first"]


async def test_an_account_that_gives_up_during_a_pass_is_reported_to_the_next(
    env: WorkflowEnvironment, passes: Passes
) -> None:
    passes.free.clear()
    await wake(env.client, POOL)
    await passes.until(lambda: len(passes.inputs) == 2)
    await give_up(env, "second", POOL, [])
    passes.free.set()
    await passes.until(lambda: passes.inputs[1:] == [(), ("second",)])


async def test_a_pass_after_a_refused_one_looks_at_the_bindings_again(env: WorkflowEnvironment, passes: Passes) -> None:
    passes.refuses = True
    await wake(env.client, POOL)
    await passes.until(lambda: passes.bonds_seen == [False, True])
    passes.refuses = False
    await wake(env.client, POOL)
    await passes.until(lambda: passes.bonds_seen[2:] == [False])
    await wake(env.client, POOL)
    await passes.until(lambda: passes.bonds_seen[3:] == [True])


async def test_a_pool_that_does_not_run_holds_no_deletion_up(env: WorkflowEnvironment) -> None:
    deleted: list[str] = []
    await give_up(env, "third", POOL.model_copy(update={"uid": "another"}), deleted)
    assert deleted == ["third"]
