"""Wakes that come together are served by one pass where the last pass said so; questions for OUs by one activity."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.accounts.organization import ORGANIZATION
from domain.accounts.passes import (
    EnsureUnits,
    OrganizationWorld,
    PassOrganization,
    PassPool,
    PoolWorld,
    TellPools,
    UnitRefused,
    Units,
    UnitsRequest,
)
from domain.accounts.pool import Room
from domain.decision import Decision, Outcome, Queue
from domain.identity import Key
from engine.errors import Denied
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("accounts")

POOL = Key(kind="AccountPool", namespace="aws-account-operator", name="gathering", uid="1")
IDLE = Decision(phase="Waiting", outcome=Outcome.WAITING, why="a test")
PATIENCE = 90.0
GATHER = timedelta(seconds=30)


@pytest.mark.parametrize(("gather", "passes"), [(GATHER, 2), (timedelta(0), 6)])
async def test_wakes_of_a_moment_are_served_by_one_pass_where_the_last_said_so(
    env: WorkflowEnvironment, gather: timedelta, passes: int
) -> None:
    made = 0

    @activity.defn(name=PassPool.activity)
    async def one(look: PassPool) -> PoolWorld:
        nonlocal made
        made += 1
        return PoolWorld(key=look.key, decision=IDLE, gather=gather)

    key = POOL.model_copy(update={"uid": f"{gather}"})
    async with (
        Worker(env.client, task_queue="accounts", workflows=WORKFLOWS),
        Worker(env.client, task_queue=Queue.KUBE.value, activities=[one], interceptors=[Boundary()]),
    ):
        await wake(env.client, key)
        await eventually(lambda: made == 1)
        for number in range(5):
            await wake(env.client, key)
            if not gather:
                await eventually(lambda n=number: made == n + 2)  # type: ignore[misc]
        await env.sleep(timedelta(seconds=60))
        await eventually(lambda: made == passes)
        handle = env.client.get_workflow_handle(key.workflow_id)
        await env.sleep(timedelta(seconds=60))
        assert made == passes
        await handle.terminate("the test is over")


class Cloud:
    """The organization's activities; what `refuse` names gets no OU."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.room: Room | None = None
        self.heard: list[Room] = []  # the answers to a pool that asks when it is woken
        self.asked: list[tuple[str, ...]] = []
        self.made = ""  # what is added to the ids of OUs
        self.refuse: set[str] = set()
        self.denies = False
        self.blind = False
        self.looks: list[bool] = []
        self.free = asyncio.Event()
        self.free.set()

    @activity.defn(name=PassOrganization.activity)
    async def pass_organization(self, look: PassOrganization) -> OrganizationWorld:
        self.looks.append(look.woken)
        if self.blind:
            raise Denied("no", code="AccessDenied")
        known = look.memory
        known = known.model_copy(update={"room": self.room, "news": known.news or self.room != known.room})
        return OrganizationWorld(key=look.key, known=known, decision=IDLE)

    @activity.defn(name=TellPools.activity)
    async def tell_pools(self, news: TellPools) -> None:
        answer: object = await self.client.get_workflow_handle(ORGANIZATION.workflow_id).query("room")
        self.heard.append(Room.model_validate(answer))

    @activity.defn(name=EnsureUnits.activity)
    async def ensure_units(self, request: EnsureUnits) -> Units:
        self.asked.append(request.names)
        await self.free.wait()
        if self.denies:
            raise Denied("no", code="AccessDenied")
        return Units(
            ids={name: f"ou-{name}{self.made}" for name in request.names if name not in self.refuse},
            refused={
                name: UnitRefused(message="bad name", code="Bad") for name in request.names if name in self.refuse
            },
        )


@pytest.fixture
async def cloud(env: WorkflowEnvironment) -> AsyncIterator[Cloud]:
    found = Cloud(env.client)
    units = Worker(
        env.client,
        task_queue=Queue.AWS_ORGANIZATION.value,
        activities=[found.ensure_units],
        interceptors=[Boundary()],
    )
    telling = Worker(env.client, task_queue=Queue.KUBE.value, activities=[found.tell_pools], interceptors=[Boundary()])
    async with (
        Worker(env.client, task_queue="accounts", workflows=WORKFLOWS),
        Worker(env.client, task_queue=Queue.AWS.value, activities=[found.pass_organization], interceptors=[Boundary()]),
        units,
        telling,
    ):
        await wake(env.client, ORGANIZATION)
        yield found
        await env.client.get_workflow_handle(ORGANIZATION.workflow_id).terminate("the test is over")


async def ask(env: WorkflowEnvironment, *names: str, gone: str = "") -> Units:
    handle = env.client.get_workflow_handle(ORGANIZATION.workflow_id)
    request = UnitsRequest(base="base", legal_entities=names, gone=gone)
    return await handle.execute_update("units", request, result_type=Units)


async def accepted(env: WorkflowEnvironment, number: int) -> None:
    """Wait until the workflow has so many questions in hand."""
    handle = env.client.get_workflow_handle(ORGANIZATION.workflow_id)
    async with asyncio.timeout(PATIENCE):
        while True:
            events = (await handle.fetch_history()).events
            kind = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
            if sum(event.event_type == kind for event in events) == number:
                return
            await asyncio.sleep(0.05)


async def test_ous_are_asked_for_together_and_once(env: WorkflowEnvironment, cloud: Cloud) -> None:
    assert (await ask(env, "a", "b")).ids == {"a": "ou-a", "b": "ou-b"}
    assert (await ask(env, "b", "c")).ids == {"b": "ou-b", "c": "ou-c"}
    assert (await ask(env, "a", "c")).ids == {"a": "ou-a", "c": "ou-c"}
    assert cloud.asked == [("a", "b"), ("c",)]


async def test_an_ou_that_is_gone_is_requested_again_after_the_first_report(
    env: WorkflowEnvironment, cloud: Cloud
) -> None:
    await ask(env, "a", "b")
    cloud.made = "-2"
    assert (await ask(env, "a", gone="ou-a")).ids == {"a": "ou-a-2"}
    assert (await ask(env, "a", gone="ou-a")).ids == {"a": "ou-a-2"}
    await wake(env.client, ORGANIZATION)
    assert (await ask(env, "a", "b")).ids == {"a": "ou-a-2", "b": "ou-b"}
    assert cloud.asked == [("a", "b"), ("a",)]


async def test_questions_that_come_while_one_is_asked_are_asked_next(env: WorkflowEnvironment, cloud: Cloud) -> None:
    cloud.free.clear()
    first = asyncio.create_task(ask(env, "a"))
    await eventually(lambda: cloud.asked == [("a",)])
    others = [asyncio.create_task(ask(env, *names)) for names in (("a", "b"), ("c",))]
    await accepted(env, 3)
    cloud.free.set()
    answers = await asyncio.gather(first, *others)
    assert [answer.ids for answer in answers] == [{"a": "ou-a"}, {"a": "ou-a", "b": "ou-b"}, {"c": "ou-c"}]
    assert [sorted(names) for names in cloud.asked] == [["a"], ["b", "c"]]


async def test_an_ou_that_aws_refuses_blocks_no_other(env: WorkflowEnvironment, cloud: Cloud) -> None:
    cloud.refuse = {"bad"}
    answer = await ask(env, "bad", "good")
    assert (answer.ids, {name: each.message for name, each in answer.refused.items()}) == (
        {"good": "ou-good"},
        {"bad": "bad name"},
    )


async def test_a_denied_question_fails_and_the_next_is_asked_again(env: WorkflowEnvironment, cloud: Cloud) -> None:
    cloud.denies = True
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await ask(env, "a")
    assert isinstance(failed.value.cause, ApplicationError)
    cloud.denies = False
    assert (await ask(env, "a")).ids == {"a": "ou-a"}


async def test_a_refused_observation_stays_requested_for_the_next_attempt(
    env: WorkflowEnvironment, cloud: Cloud
) -> None:
    await eventually(lambda: cloud.looks == [True])
    cloud.blind = True
    await wake(env.client, ORGANIZATION)
    await eventually(lambda: len(cloud.looks) == 2)
    cloud.blind = False
    await env.sleep(timedelta(seconds=600))
    await eventually(lambda: len(cloud.looks) == 3)
    assert cloud.looks == [True, True, True]


async def test_pools_are_notified_of_room_once_and_when_they_are_open(env: WorkflowEnvironment, cloud: Cloud) -> None:
    rooms = [Room(active=active, limit=10, free=10 - active, budget=5) for active in (9, 4)]
    for number, cloud.room in enumerate(rooms, 1):
        await wake(env.client, ORGANIZATION)
        await eventually(lambda n=number: len(cloud.heard) == n)  # type: ignore[misc]
    looks = len(cloud.looks)
    await wake(env.client, ORGANIZATION)
    await eventually(lambda: len(cloud.looks) > looks)
    await env.sleep(timedelta(seconds=60))
    assert cloud.heard == rooms
