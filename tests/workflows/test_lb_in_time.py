"""Sets and machines in time: boot timeouts, grace and pauses to the second, with the real decisions and a paper cloud.

The passes are played on the time-skipping server: each looks at the objects of `lb_world`, carries out what the plans
say, and answers with the area's own decision. Whatever a pass writes wakes the others, as the watcher would.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from lb_world import SPEC, World
from temporalio import activity
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.loadbalancers.balancers import gone
from activities.loadbalancers.machines import _decision as machine_decision
from activities.loadbalancers.sets import _decision as set_decision
from domain.decision import Queue
from domain.identity import Key
from domain.loadbalancers.fleet import fleet_of
from domain.loadbalancers.machine.lifecycle import work_for_machine
from domain.loadbalancers.machine_set import work_for_set
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.passes import LoadBalancerWorld, PassMachine, PassSet
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.scaling import machines_of
from engine import clock
from engine.temporal import wake
from workers.boundary import Boundary
from workers.roster import workflows_of

WORKFLOWS = workflows_of("loadbalancers")
PATIENCE = 60.0
SECOND = timedelta(seconds=1)


class Played:
    """The set's and the machines' passes over objects on paper; the LoadBalancer has all it needs."""

    def __init__(self, env: WorkflowEnvironment, now: datetime, replicas: int) -> None:
        self.env = env
        self.world = World({**SPEC, "replicas": replicas})
        self.world.now = now
        self.world.boots_in = None
        while not self.world.objects["lbs"]:
            self.world._balancer_pass("web--shop")
        self.births: list[datetime] = []
        self.deaths: list[datetime] = []
        self.woken: set[Key] = set()

    @property
    def set_key(self) -> Key:
        (found,) = self.world.objects["lbs"].values()
        return LoadBalancerSet.model_validate(found).key

    @activity.defn(name=PassSet.activity)
    async def pass_set(self, look: PassSet) -> LoadBalancerWorld:
        world = self.world
        world.now = clock.now()
        before, leaving = set(world.objects["lbm"]), self._leaving()
        while world._set_pass(look.key.name):
            pass
        self.births += [world.now] * len(set(world.objects["lbm"]) - before)
        self.deaths += [world.now] * len(self._leaving() - leaving)
        current, machines = LoadBalancerSet.model_validate(world.objects["lbs"][look.key.name]), world.machines()
        work = work_for_set(current, machines_of(current, machines), fleet_of(machines, world.now), world.now)
        await self._wake_machines()
        return LoadBalancerWorld(key=look.key, decision=set_decision(current.owner, work))

    @activity.defn(name=PassMachine.activity)
    async def pass_machine(self, look: PassMachine) -> LoadBalancerWorld:
        world, name = self.world, look.key.name
        world.now = clock.now()
        while name in world.objects["lbm"] and world._machine_pass(name):
            world._nova()
        if name not in world.objects["lbm"]:
            await wake(self.env.client, self.set_key)
            return LoadBalancerWorld(key=look.key, exists=False, decision=gone())
        machine = LoadBalancerMachine.model_validate(world.objects["lbm"][name])
        cloud = world.project.of_machine(cloud_name(machine.metadata), machine.spec.port_id)
        work = work_for_machine(machine, world.balancer(), cloud, world.rights[name], world.now)
        return LoadBalancerWorld(key=look.key, decision=machine_decision(machine.owner, work, None))

    def _leaving(self) -> set[str]:
        return {each.metadata.name for each in self.world.machines() if each.metadata.deleting}

    async def _wake_machines(self) -> None:
        for each in self.world.machines():
            if each.metadata.deleting or each.key not in self.woken:
                self.woken.add(each.key)
                await wake(self.env.client, each.key)

    async def until(self, births: int, most: timedelta) -> None:
        """Let time pass until so many machines were made."""
        end = await self.env.get_current_time() + most
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while len(self.births) < births:
            assert asyncio.get_running_loop().time() < deadline, f"only {self.births}, {self.deaths}"
            assert await self.env.get_current_time() < end, f"only {self.births}, {self.deaths}"
            await self.env.sleep(timedelta(seconds=30))


@pytest.fixture
async def played(env: WorkflowEnvironment) -> AsyncIterator[Played]:
    found = Played(env, await env.get_current_time(), replicas=1)
    passes = (found.pass_set, found.pass_machine)
    async with (
        Worker(env.client, task_queue="loadbalancers", workflows=WORKFLOWS),
        Worker(env.client, task_queue=Queue.LOAD_BALANCERS.value, activities=passes, interceptors=[Boundary()]),
    ):
        await wake(env.client, found.set_key)
        yield found
        for key in (found.set_key, *found.woken):
            with contextlib.suppress(RPCError):
                await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")


def whole(moment: datetime) -> datetime:
    """As Kubernetes writes it."""
    return moment.replace(microsecond=0)


async def test_a_machine_that_never_reports_is_replaced_after_ten_minutes_and_the_grace_to_the_second(
    played: Played,
) -> None:
    """Row g."""
    await played.until(2, timedelta(hours=1))
    silent_for = played.deaths[0] - whole(played.births[0])
    assert timedelta(minutes=12) <= silent_for < timedelta(minutes=12) + 2 * SECOND
    assert played.births[1] - played.deaths[0] < 2 * SECOND, "the first one is replaced at once"


async def test_machines_that_do_not_boot_one_after_another_are_made_ever_more_seldom(played: Played) -> None:
    """Row g, W9: five in a row."""
    await played.until(6, timedelta(hours=6))
    pauses = [born - died for died, born in zip(played.deaths, played.births[1:], strict=False)]
    minutes = [round(pause.total_seconds() / 60) for pause in pauses[:5]]
    assert minutes == [0, 1, 2, 4, 8]


async def test_a_machine_that_reports_in_time_is_kept(played: Played) -> None:
    await played.until(1, timedelta(minutes=5))
    (name,) = played.world.objects["lbm"]
    await played.env.sleep(timedelta(minutes=9))
    played.world.now = await played.env.get_current_time()
    played.world._report(name, played.world.objects["lbm"][name])
    await wake(played.env.client, played.set_key)
    await played.env.sleep(timedelta(minutes=2))
    assert list(played.world.objects["lbm"]) == [name]
    current = LoadBalancerSet.model_validate(next(iter(played.world.objects["lbs"].values())))
    assert current.status.ready_replicas == 1
