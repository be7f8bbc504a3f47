"""What a machine's pass tells, as Events, and does for a machine that no set looks after."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from lb_objects import machine
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.loadbalancers.ground import Ground
from activities.loadbalancers.machines import MachineActivities
from activities.openstack.projects import Projects
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.passes import LoadBalancerWorld, PassMachine
from engine.errors import Invalid
from engine.kube import EVENT, BlockingKube, KubeApi
from engine.settings import Settings

NAME = "web--shop-aaaa-00001"
NO_SECRET = "Secret lbs/cloud does not exist"


class NoProjects:
    """Whose credentials are gone."""

    def project(self, _: object) -> Any:
        raise Invalid(NO_SECRET)


class Installation:
    """One machine in an API server of its own, without a LoadBalancer."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        ground = Ground(cast(KubeApi, self.kube), cast(BlockingKube, None), cast(Projects, NoProjects()), Settings())
        self._machines = MachineActivities(ground)

    async def begun(self, **changes: Any) -> None:
        body = machine(NAME, **changes).model_dump(mode="json", exclude_none=True)
        await self.kube.create(LOAD_BALANCER_MACHINE, body, "lbs")

    async def machine(self) -> Any:
        return await self.kube.get(LOAD_BALANCER_MACHINE, "lbs", NAME)

    async def passed(self) -> LoadBalancerWorld:
        key = Key(
            kind=LOAD_BALANCER_MACHINE.name, namespace="lbs", name=NAME, uid=(await self.machine())["metadata"]["uid"]
        )
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        return await environment.run(self._machines.pass_machine, PassMachine(key=key))

    async def told(self) -> list[tuple[str, str, str]]:
        events = (await self.kube.list(EVENT, "lbs")).items
        return [(each["involvedObject"]["kind"], each["reason"], each["message"]) for each in events]


@pytest.mark.parametrize("server", ["server-1", None])
async def test_a_machine_that_cannot_be_deleted_tells_why_once(server: str | None) -> None:
    on = Installation()
    await on.begun(metadata={"finalizers": ["yawol.stackit.cloud/controller4"]}, status={"serverID": server})
    await on.kube.delete(LOAD_BALANCER_MACHINE, "lbs", NAME)
    await on.passed()
    world = await on.passed()
    assert (world.exists, world.decision.why) == (True, NO_SECRET)
    assert await on.told() == [("LoadBalancerMachine", "Failed", NO_SECRET)]
