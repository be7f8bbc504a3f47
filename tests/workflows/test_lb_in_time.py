"""Sets and machines in time: boot timeouts, grace and pauses to the second, with the real decisions and a paper cloud.

Sets' passes and the activities of machines are played on the time-skipping server, on the objects of `lb_world`; a
pass answers with the area's own decision. Whatever one writes wakes the others, as the watcher would.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from lb_world import SPEC, World
from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from activities.loadbalancers.cloud_steps import to_its_end
from domain.decision import Action, Queue
from domain.identity import Key
from domain.loadbalancers.cloud.ownership import mark_of
from domain.loadbalancers.cloud.steps import CreatePort, CreateServer, DeletePort, DeleteServer
from domain.loadbalancers.constants import DRIFT_ANNOTATION, OUTAGE_ANNOTATION
from domain.loadbalancers.machine.world import (
    AwaitServer,
    GrantAccess,
    LookAtMachine,
    MachineWorld,
    ObserveMachine,
    RevokeAccess,
)
from domain.loadbalancers.passes import LoadBalancerWorld, PassSet
from domain.loadbalancers.resources import LoadBalancerSet
from domain.loadbalancers.set_lifecycle import decide_set
from domain.why import Why
from domain.writes import Patch, RecordEvents
from engine import clock
from engine.errors import ApiError, Throttled, Unavailable
from engine.temporal import wake
from tests.replay.recording import keep, recording
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("loadbalancers")
PATIENCE = 60.0
SECOND = timedelta(seconds=1)
ACTIONS = (
    *(LookAtMachine, AwaitServer, GrantAccess, RevokeAccess, RecordEvents),
    *(CreatePort, CreateServer, DeletePort, DeleteServer),
)


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
        self.begun: list[str] = []
        self.trouble: dict[str, ApiError] = {}
        self.held: dict[str, asyncio.Event] = {}

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
        await self._wake_machines()
        return LoadBalancerWorld(key=look.key, decision=decide_set(world.set_world(look.key.name), world.now))

    @activity.defn(name=ObserveMachine.activity)
    async def observe_machine(self, look: ObserveMachine) -> MachineWorld:
        if look.key.name not in self.world.objects["lbm"]:
            return MachineWorld(key=look.key, exists=False)
        return self.world.observed(look.key.name)

    def performed(self, kind: type[Action]) -> Callable[..., object]:
        """The activity of an action on paper."""

        async def perform(action: Any) -> Any:
            self.begun.append(kind.activity)
            if kind.activity in self.trouble:
                raise self.trouble[kind.activity]
            if kind.activity in self.held:
                await to_its_end(self.held[kind.activity].wait())
            self.world.now = clock.now()
            if self.world.takes_time(action):
                self.world.nova()
            info = activity.info()
            assert info.workflow_id is not None
            result = self.world.perform(info.workflow_id.split("/")[2], action)
            if isinstance(action, Patch) and "finalizers" in str(action.patch):
                await wake(self.env.client, self.set_key)
            return result

        perform.__annotations__ = {"action": kind, "return": kind.result or type(None)}
        return activity.defn(name=kind.activity)(perform)

    @property
    def activities(self) -> list[Callable[..., object]]:
        played = map(self.performed, (Patch, *ACTIONS))
        return [self.pass_set, self.observe_machine, *played]

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
async def played(env: WorkflowEnvironment, request: pytest.FixtureRequest) -> AsyncIterator[Played]:
    found = Played(env, await env.get_current_time(), replicas=1)
    async with (
        Worker(env.client, task_queue="loadbalancers", workflows=WORKFLOWS),
        Worker(
            env.client, task_queue=Queue.LOAD_BALANCERS.value, activities=found.activities, interceptors=[Boundary()]
        ),
    ):
        await wake(env.client, found.set_key)
        yield found
        if recording() and request.node.get_closest_marker("recorded"):
            case = request.node.originalname.removeprefix("test_")
            for key in found.woken:
                keep(key.kind, case, await env.client.get_workflow_handle(key.workflow_id).fetch_history())
        for key in (found.set_key, *found.woken):
            with contextlib.suppress(RPCError):
                await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")


def whole(moment: datetime) -> datetime:
    """As Kubernetes writes it."""
    return moment.replace(microsecond=0)


async def test_a_machine_that_never_reports_is_replaced_after_its_boot_timeout_and_grace(
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


async def test_a_machine_that_reports_in_time_stays(played: Played) -> None:
    await played.until(1, timedelta(minutes=5))
    (name,) = played.world.objects["lbm"]
    await played.env.sleep(timedelta(minutes=9))
    played.world.now = await played.env.get_current_time()
    played.world.report(name, played.world.objects["lbm"][name])
    await wake(played.env.client, played.set_key)
    await played.env.sleep(timedelta(minutes=2))
    assert list(played.world.objects["lbm"]) == [name]
    current = LoadBalancerSet.model_validate(next(iter(played.world.objects["lbs"].values())))
    assert current.status.ready_replicas == 1


# --- one machine ---


def machine_of(played: Played) -> WorkflowHandle[Any, Any]:
    (key,) = played.woken
    return played.env.client.get_workflow_handle(key.workflow_id)


async def test_the_timeline_of_a_machine_shows_its_creation(played: Played) -> None:
    await played.until(1, timedelta(minutes=5))
    (name,) = played.world.objects["lbm"]
    await eventually(lambda: bool(played.world.machine(name).status.creation_timestamp), "its server runs")
    events = []
    async for event in machine_of(played).fetch_history_events():
        summary = event.user_metadata.summary.data
        events += [json.loads(summary)] if summary else []
    lines = list(dict.fromkeys(events))
    (server,) = played.world.project.servers
    assert [each for each in lines if not each.startswith("until")] == [
        "read the machine and its LoadBalancer",
        "create its ServiceAccount, Secret, Role, RoleBinding",
        "find its port and server in OpenStack",
        f"create port lbs/{name}",
        f"create server {name}",
        "write its status",
        f"wait until Nova has built server {server}",
    ]
    born = played.world.machine(name).metadata.creation_timestamp
    assert born is not None
    boots = f"until {born + timedelta(minutes=10):%H:%M:%S} UTC, then: it is replaced if its agent has not reported"
    assert f"{boots}; the object is observed again 30 s after that time" in lines


@pytest.mark.recorded
@pytest.mark.parametrize("type_", [Unavailable, Throttled])
async def test_silence_of_openstack_is_decided_upon_at_once(played: Played, type_: type[ApiError]) -> None:
    played.trouble[CreatePort.activity] = type_("Neutron does not answer", delay=timedelta(seconds=20))
    await played.until(1, timedelta(minutes=5))
    (name,) = played.world.objects["lbm"]
    await eventually(lambda: "Neutron does not answer" in played.world.events, "the outage is reported")
    why = await machine_of(played).query("why", result_type=Why)
    assert (why.phase, why.why) == ("Waiting", "Neutron does not answer")
    (hindrance,) = why.hindrances
    assert OUTAGE_ANNOTATION in played.world.machine(name).metadata.annotations
    assert hindrance.attempts <= 2, "it wants to be left alone for 20 s"
    played.trouble.clear()
    await played.env.sleep(timedelta(seconds=40))
    await eventually(lambda: bool(played.world.machine(name).status.server_id), "it is tried again")
    assert OUTAGE_ANNOTATION not in played.world.machine(name).metadata.annotations
    assert len(played.world.project.servers) == 1


async def test_a_machine_that_is_deleted_while_its_port_is_made_leaves_none(played: Played) -> None:
    played.held[CreatePort.activity] = asyncio.Event()
    await eventually(lambda: bool(played.births), "a machine is made")
    (name,) = played.world.objects["lbm"]
    await eventually(lambda: CreatePort.activity in played.begun, "the port is being made")
    key = played.world.machine(name).key
    played.world.delete("lbm", name)
    await wake(played.env.client, key)
    await eventually(lambda: LookAtMachine.activity in played.begun[played.begun.index(CreatePort.activity) :], "")
    played.held[CreatePort.activity].set()
    await eventually(lambda: key not in [each.key for each in played.world.machines()], "it is gone")
    marks = [port.description for port in played.world.project.ports.values()]
    assert mark_of(key.uid) not in marks


async def test_a_plan_of_a_machine_looks_at_the_cloud_and_changes_nothing(played: Played) -> None:
    await played.until(1, timedelta(minutes=5))
    (name,) = played.world.objects["lbm"]
    await eventually(lambda: bool(played.world.machine(name).status.creation_timestamp), "its server runs")
    del played.world.project.ports[str(played.world.machine(name).status.default_port_id)]
    drift = {"metadata": {"annotations": {DRIFT_ANNOTATION: "2026-05-01T12:00:00Z"}}}
    played.world.write("lbm", name, drift)
    calls = len(played.world.project.calls)
    plan = await machine_of(played).execute_update("plan", result_type=Why)
    assert plan.planned == (f"create port lbs/{name}",)
    assert len(played.world.project.calls) == calls
