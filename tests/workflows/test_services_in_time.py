"""A Service's workflow in time: it waits without a timer, looks again while held, and hears a change at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from lifecycles import PATIENCE
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.decision import Decision, Outcome, Queue
from domain.identity import Key
from domain.loadbalancers.passes import LoadBalancerWorld, PassService
from engine import clock
from engine.temporal import wake, wake_open
from tests.replay.recording import keep, recording
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

KEY = Key(kind="Service", namespace="web", name="shop", uid="1")
READY = Decision(phase="Ready", outcome=Outcome.SETTLED, why="a test")
LEFT = Decision(phase="Left", outcome=Outcome.GONE, why="a test")

Answer = Callable[[Key], LoadBalancerWorld]


def world(decision: Decision, **fields: object) -> Answer:
    return lambda key: LoadBalancerWorld(key=key, decision=decision).model_copy(update=fields)


def held(key: Key) -> LoadBalancerWorld:
    deadline = clock.now() + timedelta(minutes=1)
    return LoadBalancerWorld(key=key, hold="yawol leads", decision=READY.model_copy(update={"deadline": deadline}))


class Passes:
    """What each pass comes to, the last one for all further; one can be held up."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers
        self.made = 0
        self.seen: dict[str, str] = {}
        self.hold_up: int = 0  # the number of the pass that waits for `go_on`
        self.go_on = asyncio.Event()

    @activity.defn(name=PassService.activity)
    async def one(self, look: PassService) -> LoadBalancerWorld:
        self.made += 1
        self.seen = look.seen
        answer = self.answers[min(self.made, len(self.answers)) - 1]
        if self.made == self.hold_up:
            await self.go_on.wait()
        return answer(look.key)

    async def until(self, number: int) -> None:
        await eventually(lambda: self.made >= number, lambda: f"{self.made} passes, not {number}")


@asynccontextmanager
async def at_work(env: WorkflowEnvironment, passes: Passes, case: str) -> AsyncIterator[WorkflowHandle[object, object]]:
    """Both workers; the history is stored for tests/replay where that is asked for."""
    workflows = Worker(env.client, task_queue="loadbalancers", workflows=workflows_of("loadbalancers"))
    activities = Worker(
        env.client, task_queue=Queue.LOAD_BALANCERS.value, activities=[passes.one], interceptors=[Boundary()]
    )
    async with workflows, activities:
        handle: WorkflowHandle[object, object] = env.client.get_workflow_handle(KEY.workflow_id)
        yield handle
        if recording():
            keep(KEY.kind, case, await handle.fetch_history())
        with suppress(RPCError):
            await handle.terminate("the test is over")


async def events(handle: WorkflowHandle[object, object]) -> list[EventType.ValueType]:
    return [event.event_type for event in (await handle.fetch_history()).events]


async def test_a_settled_service_waits_for_years_without_a_timer_or_a_pass(env: WorkflowEnvironment) -> None:
    passes = Passes(world(READY))
    async with at_work(env, passes, "waits_without_a_timer") as handle:
        await wake(env.client, KEY)
        await passes.until(1)
        await env.sleep(timedelta(days=700))
        assert passes.made == 1
        assert EventType.EVENT_TYPE_TIMER_STARTED not in await events(handle)
        await wake(env.client, KEY)
        await passes.until(2)


async def test_a_service_that_is_held_is_observed_each_minute(env: WorkflowEnvironment) -> None:
    passes = Passes(held, held, world(READY))
    async with at_work(env, passes, "is_looked_at_while_it_is_held"):
        await wake(env.client, KEY)
        await passes.until(1)
        await env.sleep(timedelta(seconds=65))
        await passes.until(2)
        await env.sleep(timedelta(seconds=65))
        await passes.until(3)


async def test_a_service_that_wants_no_load_balancer_has_no_workflow(env: WorkflowEnvironment) -> None:
    passes = Passes(world(LEFT))
    async with at_work(env, passes, "ends_without_a_load_balancer") as handle:
        await wake(env.client, KEY)
        await asyncio.wait_for(handle.result(), PATIENCE)
        assert passes.made == 1


async def test_a_wake_during_the_last_pass_is_honoured_before_the_end(env: WorkflowEnvironment) -> None:
    passes = Passes(world(LEFT), world(READY))
    passes.hold_up = 1
    async with at_work(env, passes, "hears_a_wake_before_the_end") as handle:
        await wake(env.client, KEY)
        await passes.until(1)
        await wake(env.client, KEY)
        passes.go_on.set()
        await passes.until(2)
        why = await phase(handle)
        assert why == "Ready"


async def phase(handle: WorkflowHandle[object, object]) -> str:
    """The phase, once the workflow says one other than the last pass's."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    found = ""
    while found != "Ready" and asyncio.get_running_loop().time() < deadline:
        try:
            found = str((await handle.query("why", rpc_timeout=timedelta(seconds=3)))["phase"])  # type: ignore[index]
        except RPCError:
            continue
        await asyncio.sleep(0.02)
    return found


async def test_a_pass_gets_the_newest_version_of_each_kind_that_has_woken_it(env: WorkflowEnvironment) -> None:
    passes = Passes(world(READY))
    async with at_work(env, passes, "is_told_what_was_seen"):
        for number, seen in enumerate(({"LoadBalancer": "99", "Service": "7"}, {"LoadBalancer": "100"}, {}), 1):
            await wake(env.client, KEY, seen)
            await passes.until(number)
        await wake_open(env.client, KEY, {"LoadBalancer": "98"})
        await passes.until(4)
        assert passes.seen == {"LoadBalancer": "100", "Service": "7"}
