"""The sweep over 3scale tenants in time: none at once, one after each interval, none more by the wakes between."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import httpx
from memory_kube import MemoryKube
from temporalio import activity
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from test_threescale_in_time import http, product

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.drift_sweep import SweepActivities
from activities.threescale.pass_context import PassContext
from activities.threescale.tenant_concurrency import Tenants
from domain.decision import Queue
from domain.threescale import THE_TENANTS
from domain.threescale.passes import SweepTenants, ThreescaleWorld
from engine import clock
from engine.kube import SECRET, KubeApi
from engine.kube.informer_cache import Store
from engine.settings import Settings
from engine.temporal import wake
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

__all__ = ["http"]  # the fixture


class Sweeps:
    """The area's sweep, with the moments of its looks and what they came to."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.kube = MemoryKube()
        self.woken: list[tuple[datetime, str]] = []

        api = cast("KubeApi", self.kube)
        cache = ThreescaleCache(api, cast("Store", self.kube))
        ground = PassContext(api, cache, cast("Tenants", None), Downloads(client), Settings())
        self._real = SweepActivities(ground)

    @activity.defn(name=SweepTenants.activity)
    async def sweep_tenants(self, look: SweepTenants) -> ThreescaleWorld:
        """The real one."""
        world = await self._real.sweep_tenants(look)
        self.woken.append((clock.now(), world.decision.why))
        return world


async def test_tenants_are_swept_each_hour_whatever_wakes_the_sweep_between(
    env: WorkflowEnvironment, http: httpx.AsyncClient
) -> None:
    sweeps = Sweeps(http)
    key = await product(sweeps.kube)
    await sweeps.kube.delete(SECRET, key.namespace, "threescale-provider-account")  # it leads to no tenant
    async with (
        Worker(
            env.client,
            task_queue=Queue.THREESCALE.value,
            activities=[sweeps.sweep_tenants],
            interceptors=[Boundary()],
        ),
        Worker(env.client, task_queue="threescale", workflows=workflows_of("threescale")),
    ):
        began = await env.get_current_time()
        await wake(env.client, THE_TENANTS)
        await env.sleep(timedelta(minutes=30))
        await wake(env.client, THE_TENANTS)
        await env.sleep(timedelta(minutes=155))
        await env.client.get_workflow_handle(THE_TENANTS.workflow_id).terminate("the test is over")
    assert sweeps.woken[0][1] == "the first sweep is made one interval after the first object appears"
    compared = [moment for moment, why in sweeps.woken if why.startswith("0 tenants were compared")]
    after = [round((moment - began) / timedelta(hours=1)) for moment in compared]
    assert after == [1, 2, 3]
    assert len(sweeps.woken) >= 5
