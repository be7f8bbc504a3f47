"""3scale objects in time: how often an orphan looks, that a wake comes at once, and what passes leave for one another.

The passes are the real ones, over objects in memory; no tenant can be called, so that a call would fail the test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, cast

import httpx
import pytest
from memory_kube import MemoryKube
from temporalio import activity
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.pass_context import PassContext
from activities.threescale.passes import PassActivities
from activities.threescale.tenant_concurrency import Tenants
from domain.decision import Decision, Outcome, Queue
from domain.identity import Key
from domain.refusal import ErrorType, Refusal
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.passes import PassObject, ThreescaleWorld
from engine import clock
from engine.kube import SECRET, KubeApi
from engine.kube.informer_cache import Store
from engine.settings import Settings
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("threescale")


class Looks:
    """The area's activity, with the moments of its passes."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.moments: list[datetime] = []
        self.made: list[PassObject] = []

    async def answer(self, look: PassObject) -> ThreescaleWorld:
        raise NotImplementedError

    @activity.defn(name=PassObject.activity)
    async def pass_object(self, look: PassObject) -> ThreescaleWorld:
        self.moments.append(clock.now())
        self.made.append(look)
        return await self.answer(look)

    async def until(self, number: int) -> None:
        await eventually(lambda: len(self.moments) >= number, lambda: f"{number} looks, not {len(self.moments)}")


class RealLooks(Looks):
    """The real passes, without a tenant to call."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        super().__init__()

        api = cast("KubeApi", self.kube)
        cache = ThreescaleCache(api, cast("Store", self.kube))
        ground = PassContext(api, cache, cast("Tenants", None), Downloads(http), Settings())
        self._passes = PassActivities(ground)

    async def answer(self, look: PassObject) -> ThreescaleWorld:
        return await self._passes.pass_object(look)


class RefusedLooks(Looks):
    """Passes that are refused the same each time."""

    async def answer(self, look: PassObject) -> ThreescaleWorld:
        before = look.refusals.get("slot") if not look.woken else None
        attempts = before.attempts + 1 if before else 1
        refusal = Refusal(type=ErrorType.DENIED, message="no", at=clock.now(), attempts=attempts)
        decision = Decision(phase="Failed", outcome=Outcome.WAITING, why="no", deadline=refusal.retry_at)
        return ThreescaleWorld(key=look.key, decision=decision, refusals={"slot": refusal})


@asynccontextmanager
async def at_work(env: WorkflowEnvironment, looks: Looks) -> AsyncIterator[None]:
    async with (
        Worker(
            env.client,
            task_queue=Queue.THREESCALE.value,
            activities=[looks.pass_object],
            interceptors=[Boundary()],
        ),
        Worker(env.client, task_queue="threescale", workflows=WORKFLOWS),
    ):
        yield


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as client:
        yield client


async def product(kube: MemoryKube) -> Key:
    await kube.create(SECRET, {"metadata": {"name": "threescale-provider-account"}, "data": ACCOUNT}, "shop")
    spec = {"name": "Goods", "backendUsages": {"stock": {"path": "/"}}}
    made: Any = await kube.create(PRODUCT, {"metadata": {"name": "goods"}, "spec": spec}, "shop")
    return Key(kind=PRODUCT.name, namespace="shop", name="goods", uid=made["metadata"]["uid"])


ACCOUNT = {"adminURL": "aHR0cDovL25vYm9keS5pbnZhbGlk", "token": "eA=="}  # http://nobody.invalid, x


async def test_an_orphan_observes_eleven_to_thirteen_times_in_an_hour_and_makes_no_call(
    env: WorkflowEnvironment, http: httpx.AsyncClient
) -> None:
    looks = RealLooks(http)
    key = await product(looks.kube)
    async with at_work(env, looks):
        began = await env.get_current_time()
        await wake(env.client, key)
        await env.sleep(timedelta(hours=1))
        await looks.until(11)
        hour = [moment for moment in looks.moments if moment < began + timedelta(hours=1)]
        await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    assert 11 <= len(hour) <= 13
    found = await looks.kube.get(PRODUCT, "shop", "goods")
    assert [each["type"] for each in found["status"]["conditions"] if each["status"] == "True"] == ["Failed", "Orphan"]


async def test_a_wake_leads_to_an_observation_before_its_deadline(
    env: WorkflowEnvironment, http: httpx.AsyncClient
) -> None:
    looks = RealLooks(http)
    key = await product(looks.kube)
    async with at_work(env, looks):
        await wake(env.client, key)
        await looks.until(1)
        await env.sleep(timedelta(minutes=33))
        before = len(looks.moments)
        await looks.kube.create(BACKEND, {"metadata": {"name": "stock"}, "spec": {"name": "x"}}, "shop")
        await wake(env.client, key)
        await looks.until(before + 1)
        await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    assert looks.made[-1].woken
    assert looks.moments[-1] - looks.moments[-2] < timedelta(minutes=8)


async def test_a_refused_action_is_retried_after_growing_pauses_until_a_wake(
    env: WorkflowEnvironment,
) -> None:
    looks = RefusedLooks()
    key = Key(kind=BACKEND.name, namespace="shop", name="stock", uid="1")
    async with at_work(env, looks):
        await wake(env.client, key)
        await env.sleep(timedelta(minutes=3))
        await looks.until(5)
        tried = [look.refusals["slot"].attempts for look in looks.made[1:5]]
        woken = [look.woken for look in looks.made[:5]]
        await wake(env.client, key)
        before = len(looks.made)
        await looks.until(before + 1)
        await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    assert tried == [1, 2, 3, 4]
    assert woken == [True, False, False, False, False]
    assert looks.made[before].woken
