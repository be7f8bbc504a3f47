"""What a set's pass tells of its machines, as Events under yawol's names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from lb_objects import machine_set
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.loadbalancers.ground import Ground
from activities.loadbalancers.sets import SetActivities
from activities.openstack.projects import Projects
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.passes import PassSet
from engine.kube import EVENT, BlockingKube, KubeApi
from engine.settings import Settings

SET = "web--shop-aaaa"
Told = list[tuple[str, ...]]


class Installation:
    """One set in an API server of its own."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        nobody = (cast(BlockingKube, None), cast(Projects, None))
        self._sets = SetActivities(Ground(cast(KubeApi, self.kube), *nobody, Settings()))

    async def passed(self) -> Told:
        """The Events after one more pass."""
        uid = (await self.kube.get(LOAD_BALANCER_SET, "lbs", SET))["metadata"]["uid"]
        key = Key(kind=LOAD_BALANCER_SET.name, namespace="lbs", name=SET, uid=uid)
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        await environment.run(self._sets.pass_set, PassSet(key=key))
        return sorted(map(_read, (await self.kube.list(EVENT, "lbs")).items))


def _read(told: Any) -> tuple[str, ...]:
    of = told["involvedObject"]
    return (of["kind"], of["name"], told["type"], told["reason"], told["message"], told["source"]["component"])


async def test_machines_that_a_set_makes_and_takes_away_are_told_once() -> None:
    on = Installation()
    await on.kube.create(LOAD_BALANCER_SET, machine_set(SET).model_dump(mode="json", exclude_none=True), "lbs")
    told = await on.passed()
    (machine,) = (await on.kube.list(LOAD_BALANCER_MACHINE, "lbs")).items
    name = machine["metadata"]["name"]
    born = ("LoadBalancerMachine", name, "Normal", "Created", f"Created loadBalancerMachine {name}", "LoadBalancerSet")
    assert told == [born]
    assert await on.passed() == [born]

    await on.kube.patch(LOAD_BALANCER_SET, "lbs", SET, {"spec": {"replicas": 0}})
    gone = f"Deleted loadBalancerMachine {name}"
    assert await on.passed() == [
        born,
        ("LoadBalancerSet", SET, "Normal", "Deleted", gone, "LoadBalancerSet"),
    ]
