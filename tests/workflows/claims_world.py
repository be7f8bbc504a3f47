"""The claims area as its workflows see it: passes and batches that a test plays, on the time-skipping server.

Each call is written down with its virtual time. `answers` says what an activity comes to: a function of its input that
returns a world, raises, or waits; without one a pass says that the object is ready.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from claim_domain import BINDER
from lifecycles import until_said
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.claims.passes import BinderWorld, ObjectWorld, PassClaim, PassHandle, PassPool, PoolWorld, Serve
from domain.decision import Action, Decision, Outcome, Queue
from domain.identity import Key
from domain.model import Model
from domain.why import Why
from domain.writes import Patch, Written
from engine import clock
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("claims")

PATIENCE = 90.0
READY = Decision(phase="Ready", outcome=Outcome.SETTLED, why="its resources are ready")
STALLED = Decision(phase="Stalled", outcome=Outcome.WAITING, why="its provider is at fault", waits_for=("an edit",))

Answer = Callable[[Any], Awaitable[Model]]


def claim(name: str = "mine") -> Key:
    """A ResourceClaim's key."""
    return Key(kind="ResourceClaim", namespace="users", name=name, uid=f"uid-{name}")


HANDLE = Key(kind="ResourceHandle", namespace="poolboy", name="guid-abcde", uid="uid-handle")
POOL = Key(kind="ResourcePool", namespace="poolboy", name="spares", uid="uid-pool")


def until_then(moment: datetime | None, phase: str = "Ready") -> Decision:
    """Settled until then."""
    return Decision(phase=phase, outcome=Outcome.SETTLED, why="a test", deadline=moment, at_deadline="observe again")


class Area:
    """The workflows, and their activities as the test plays them."""

    def __init__(self, env: WorkflowEnvironment) -> None:
        self.env = env
        self.answers: dict[str, Answer] = {}
        self.calls: list[tuple[str, datetime, Any]] = []
        self.notified: set[Key] = {BINDER, HANDLE, POOL, claim()}

    # --- what is played ---

    @activity.defn(name=PassClaim.activity)
    async def pass_claim(self, look: PassClaim) -> ObjectWorld:
        return await self._play(look, ObjectWorld(key=look.key, decision=READY, at=clock.now()))

    @activity.defn(name=PassHandle.activity)
    async def pass_handle(self, look: PassHandle) -> ObjectWorld:
        return await self._play(look, ObjectWorld(key=look.key, decision=READY, at=clock.now()))

    @activity.defn(name=PassPool.activity)
    async def pass_pool(self, look: PassPool) -> PoolWorld:
        return await self._play(look, PoolWorld(key=look.key, decision=READY))

    @activity.defn(name=Serve.activity)
    async def serve(self, look: Serve) -> BinderWorld:
        return await self._play(look, BinderWorld(key=look.key, decision=READY))

    @activity.defn(name=Patch.activity)
    async def patch(self, write: Patch) -> Written:
        return await self._play(write, Written())

    async def _play(self, action: Action, otherwise: Any) -> Any:
        self.calls.append((action.activity, clock.now(), action))
        answer = self.answers.get(action.activity)
        return otherwise if answer is None else await answer(action)

    def play(self, action: type[Action], answer: Answer) -> None:
        """What this activity comes to from now on."""
        self.answers[action.activity] = answer

    # --- what was asked for ---

    def asked(self, action: type[Action]) -> list[Any]:
        """The inputs of all calls."""
        return [requested for name, _, requested in self.calls if name == action.activity]

    def times(self, action: type[Action]) -> list[datetime]:
        """The virtual times of all calls."""
        return [moment for name, moment, _ in self.calls if name == action.activity]

    async def until(self, true: Callable[[], object], what: str = "it") -> None:
        """Wait, in real time."""
        await eventually(true, lambda: f"{what} did not come about: {self.calls}")

    async def looks(self, action: type[Action], number: int) -> list[Any]:
        """Wait until there were so many; all of them."""
        await self.until(lambda: len(self.asked(action)) >= number, f"call {number} of {action.activity}")
        return self.asked(action)

    # --- workflows ---

    def handle(self, key: Key) -> WorkflowHandle[Any, Any]:
        self.notified.add(key)
        return self.env.client.get_workflow_handle(key.workflow_id)

    async def why(self, key: Key, true: Callable[[Why], bool]) -> Why:
        """Wait until the workflow says what is true."""

        async def ask() -> Why:
            return await self.handle(key).query("why", result_type=Why, rpc_timeout=timedelta(seconds=3))

        return await until_said(ask, true)

    async def surely(self, say: Callable[[], Awaitable[None]]) -> None:
        """Say something to a workflow that may be between two runs, where this server takes no signal."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                return await asyncio.wait_for(say(), 3)
            except (RPCError, TimeoutError):
                assert asyncio.get_running_loop().time() < deadline, "no worker listens"

    async def rests(self, key: Key) -> None:
        """Wait until the run that is open has nothing under way.

        A signal that meets a run just as it goes on in the next one stops this server's time now and then.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            history = await self.env.client.get_workflow_handle(
                key.workflow_id, run_id=await self.run_id(key)
            ).fetch_history()
            seen = Counter(event.event_type for event in history.events)
            tasks = (
                seen[EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED] - seen[EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
            )
            looks = (
                seen[EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] - seen[EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED]
            )
            if not tasks and not looks and not seen[EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW]:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{key} does not rest")

    async def run_id(self, key: Key) -> str:
        """Of the run that is open (this server gives attributes that were unset in a way the SDK cannot read)."""
        self.notified.add(key)
        answer = await self.env.client.workflow_service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(
                namespace=self.env.client.namespace, execution=WorkflowExecution(workflow_id=key.workflow_id)
            )
        )
        return answer.workflow_execution_info.execution.run_id

    async def now(self) -> datetime:
        return await self.env.get_current_time()


@asynccontextmanager
async def area(env: WorkflowEnvironment) -> AsyncIterator[Area]:
    """Workers as in production, with activities that the test plays; the workflows end with it."""
    found = Area(env)
    played = [found.pass_claim, found.pass_handle, found.pass_pool, found.serve, found.patch]
    async with (
        Worker(env.client, task_queue="claims", workflows=WORKFLOWS),
        Worker(env.client, task_queue=Queue.CLAIMS.value, activities=played, interceptors=[Boundary()]),
    ):
        yield found
        for key in found.notified:
            try:
                await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
            except RPCError:
                continue
