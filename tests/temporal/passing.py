"""A lifecycle of the product on a worker of the test's own: the real workflow, a stand-in for the world it sees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker, WorkerDeploymentConfig, WorkerTuner
from waiting import eventually

from domain.accounts.passes import PassPool, PoolWorld
from domain.decision import Decision, Outcome, Queue
from domain.identity import Key
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("accounts")


def new_key(name: str = "default") -> Key:
    return Key(kind="AccountPool", namespace="aws-account-operator", name=name, uid=uuid4().hex)


class Passes:
    """What pools' passes come to: they wait, for the reason given; one can be made to fail or be held up."""

    def __init__(self, why: str = "a test", failing: Callable[[], None] | None = None) -> None:
        self.why = why
        self.failing = failing
        self.made: list[Key] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    @activity.defn(name=PassPool.activity)
    async def one(self, look: PassPool) -> PoolWorld:
        self.made.append(look.key)
        activity.heartbeat(self.why)
        await self.go_on.wait()
        if self.failing:
            self.failing()
        decision = Decision(phase="Waiting", outcome=Outcome.WAITING, why=self.why)
        return PoolWorld(key=look.key, decision=decision)

    def of(self, key: Key) -> int:
        return self.made.count(key)


@asynccontextmanager
async def working(
    client: Client,
    passes: Passes,
    *,
    workflows: Any = WORKFLOWS,
    version: WorkerDeploymentConfig | None = None,
    tuners: tuple[WorkerTuner | None, WorkerTuner | None] = (None, None),
) -> AsyncIterator[list[Worker]]:
    """Workers of pools: of the workflow, and of its pass."""
    common: dict[str, Any] = {"deployment_config": version, "interceptors": [Boundary()]}
    pair = [
        Worker(client, task_queue="accounts", workflows=workflows, tuner=tuners[0], **common),
        Worker(client, task_queue=Queue.KUBE.value, activities=[passes.one], tuner=tuners[1], **common),
    ]
    async with AsyncExitStack() as stack:
        for each in pair:
            await stack.enter_async_context(each)
        yield pair


async def until_phase(client: Client, key: Key, phase: str) -> None:
    """Wait until the lifecycle says that it is there."""

    async def said() -> bool:
        handle: Any = client.get_workflow_handle(key.workflow_id)
        why = await handle.query("why", rpc_timeout=timedelta(seconds=10))
        return bool(why["phase"] == phase)

    await eventually(said, f"{key.path} in phase {phase}")
