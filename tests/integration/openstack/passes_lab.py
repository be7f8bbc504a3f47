"""The passes themselves against a real API server and a real OpenStack, one after another and without Temporal.

What the workflows do between passes (wait for a wake or a moment) is left out: every object is passed over in turn, as
often as it takes, with the memory that its last pass has left. No agent runs; `report` plays one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast
from uuid import uuid4

from driven import Driven
from openstack_lab import NAMESPACE_NAME, Lab
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.kube import KubeActivities
from activities.loadbalancers.balancers import LoadBalancerActivities
from activities.loadbalancers.cloud_steps import CloudActivities
from activities.loadbalancers.drift_sweep import SweepActivities
from activities.loadbalancers.machines import MachineActivities
from activities.loadbalancers.pass_context import PassContext
from activities.loadbalancers.replaced_operator import LEASES
from activities.loadbalancers.sets import SetActivities
from activities.openstack.session import Api
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, THE_PROJECTS
from domain.loadbalancers.balancer_lifecycle import decide_balancer
from domain.loadbalancers.balancer_world import BalancerWorld, ObserveBalancer
from domain.loadbalancers.machine.lifecycle import decide_machine
from domain.loadbalancers.machine.world import MachineWorld, ObserveMachine
from domain.loadbalancers.passes import PassSet, SweepProjects
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.passes import PassedWorld
from domain.resource import timestamp
from domain.runner import State
from engine.errors import Absent, Throttled, Unavailable
from engine.kube import LEASE, KubeApi
from engine.kube.json import JsonObject, at, text
from engine.settings import Settings
from localcloud.seed import seed_cluster

T = TypeVar("T")
YAWOL_NAMESPACE = "kube-system"
KINDS = (LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE)
RELEVANT = ("ConfigReady", "EnvoyReady", "EnvoyUpToDate")


class Passes:
    """One worker's passes over whatever a test makes."""

    def __init__(self, lab: Lab, api: KubeApi, loop: asyncio.AbstractEventLoop) -> None:
        self.lab = lab
        self._api = api
        self._loop = loop
        self.settings = Settings(API_ENDPOINT="https://api.example:443", worker_openstack_rate_per_project=1000)
        self.of(seed_cluster(api))
        ground = PassContext(api, lab.kube, lab.projects, self.settings)
        writes = KubeActivities(api, cast(Client, None))
        self._sets = SetActivities(ground, writes)
        durable = (LoadBalancerActivities(ground), MachineActivities(ground), CloudActivities(ground), self._sets)
        self._durable = [each for of in (*durable, writes) for each in of.all()]
        self.lives: dict[Key, Driven[Any]] = {}
        self._sweeps = SweepActivities(ground)
        self.ahead = timedelta(0)  # how far the passes' clock is ahead
        self.worlds: dict[Key, PassedWorld] = {}

    def of(self, made: Coroutine[Any, Any, T]) -> T:
        """Run on the API client's loop."""
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(timeout=120)

    # --- objects ---

    def create(self, replicas: int = 1, **spec: Any) -> str:
        """A new LoadBalancer's name."""
        name = f"web--{uuid4().hex[:8]}"
        body = {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": name}},
                "ports": [{"name": "http", "protocol": "TCP", "port": 8080, "nodePort": 30080}],
                "endpoints": [{"name": "node-1", "addresses": ["127.0.0.1"]}],
                "infrastructure": self.lab.infrastructure(),
                **spec,
            },
        }
        self.of(self._api.create(LOAD_BALANCER, body, NAMESPACE_NAME))
        return name

    def lead(self, kind: Kind | None) -> None:
        """yawol's controller of this kind leads, or none of them."""
        for each, lease in LEASES.items():
            spec = {"holderIdentity": "yawol-1", "renewTime": "2090-01-01T00:00:00.000000Z"}
            if kind is not None and kind.name == each:
                self.of(self._api.create(LEASE, {"metadata": {"name": lease}, "spec": spec}, YAWOL_NAMESPACE))
                continue
            with suppress(Absent):
                self.of(self._api.delete(LEASE, YAWOL_NAMESPACE, lease))

    def balancer(self, name: str) -> LoadBalancer:
        """The LoadBalancer as it is."""
        return LoadBalancer.model_validate(self.of(self._api.get(LOAD_BALANCER, NAMESPACE_NAME, name)))

    def machines(self, name: str) -> list[LoadBalancerMachine]:
        """Its machines."""
        return [LoadBalancerMachine.model_validate(each) for each in self._objects(LOAD_BALANCER_MACHINE, name)]

    def patch(self, kind: Kind, name: str, patch: dict[str, Any], *, status: bool = False) -> None:
        """As a person would."""
        sub = "status" if status else ""
        self.of(self._api.patch(kind, NAMESPACE_NAME, name, patch, subresource=sub, field_manager="kubectl"))

    def delete(self, name: str) -> None:
        """Ask for the LoadBalancer's deletion."""
        self.of(self._api.delete(LOAD_BALANCER, NAMESPACE_NAME, name))

    def remove(self, kind: Kind, name: str) -> None:
        """Delete another object, behind Perdure's back."""
        self.of(self._api.delete(kind, NAMESPACE_NAME, name))

    def exists(self, name: str) -> bool:
        """Whether the LoadBalancer is there."""
        try:
            self.of(self._api.get(LOAD_BALANCER, NAMESPACE_NAME, name))
        except Absent:
            return False
        return True

    @property
    def now(self) -> datetime:
        """By the passes' clock."""
        return datetime.now(UTC) + self.ahead

    def report(self, name: str, master: str = "", *, only: str = "") -> None:
        """All machines' agents, or the only one, report that all is well, and who holds the address."""
        now = timestamp(self.now)
        for machine in self.machines(name):
            if only and machine.metadata.name != only:
                continue
            states = dict.fromkeys(RELEVANT, "True") | {"KeepalivedMaster": str(machine.metadata.name == master)}
            conditions = [
                {"type": type_, "status": state, "lastHeartbeatTime": now, "lastTransitionTime": now}
                for type_, state in states.items()
            ]
            self.patch(
                LOAD_BALANCER_MACHINE, machine.metadata.name, {"status": {"conditions": conditions}}, status=True
            )

    def _objects(self, kind: Kind, name: str) -> list[JsonObject]:
        found = self.of(self._api.list(kind, NAMESPACE_NAME)).items
        return [each for each in found if text(each, "metadata", "name").startswith(name)]

    # --- passes ---

    def round(self, name: str) -> None:
        """One pass over everything that belongs to a LoadBalancer."""
        for kind in KINDS:
            for found in self._objects(kind, name):
                meta = at(found, "metadata")
                key = Key(kind=kind.name, namespace=NAMESPACE_NAME, name=text(meta, "name"), uid=text(meta, "uid"))
                self.look(key)

    def look(self, key: Key) -> PassedWorld:
        """One pass over one object, as the server does: again where the API server is busy with itself."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self._look(key)
            except (Throttled, Unavailable):
                assert time.monotonic() < deadline, "the API server does not answer"
                time.sleep(0.5)

    def _look(self, key: Key) -> PassedWorld:
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=self.now)
        if key.kind in (LOAD_BALANCER.name, LOAD_BALANCER_MACHINE.name):
            self.worlds[key] = self.of(self._turn(key))
            return self.worlds[key]
        if key.kind == LOAD_BALANCER_SET.name:
            made = environment.run(self._sets.pass_set, PassSet(key=key))
        else:
            made = environment.run(self._sweeps.sweep_projects, SweepProjects(key=key))
        self.worlds[key] = self.of(made)
        return self.worlds[key]

    async def _turn(self, key: Key) -> PassedWorld:
        """A durable lifecycle is driven; its result as that of a pass."""
        if key not in self.lives:
            self.lives[key] = self._driven(key)
        life = self.lives[key]
        decision = (await life.turn(self.now)).model_copy(update={"deadline": life.until})
        return PassedWorld(key=key, hold=life.state.world.hold, decision=decision)

    def _driven(self, key: Key) -> Driven[Any]:
        def balancer(state: State[BalancerWorld]) -> ObserveBalancer:
            return ObserveBalancer(key=key, memory=state.world.known, outdated=state.outdated)

        def machine(state: State[MachineWorld]) -> ObserveMachine:
            return ObserveMachine(key=key, memory=state.world.known, outdated=state.outdated)

        if key.kind == LOAD_BALANCER.name:
            return Driven(BalancerWorld(key=key), decide_balancer, balancer, self._durable)
        return Driven(MachineWorld(key=key), decide_machine, machine, self._durable)

    def forget(self) -> None:
        """As a worker that knows nothing of before."""
        self.lives.clear()

    def sweep(self) -> PassedWorld:
        """A look at all projects, whenever the last one was."""
        return self.look(THE_PROJECTS)

    def until(self, name: str, holds: Callable[[], bool], what: str, seconds: float = 90) -> None:
        """Round after round until something holds."""
        deadline = time.monotonic() + seconds
        while not holds():
            phases = [f"{key}: {world.decision.phase}, {world.decision.why}" for key, world in self.worlds.items()]
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}; {phases}"
            self.round(name)
            time.sleep(0.2)

    def ready(self, name: str, replicas: int) -> None:
        """Until the LoadBalancer has everything, and so many servers run."""
        self.until(name, lambda: self.serves(name, replicas), f"{replicas} servers run")

    def serves(self, name: str, replicas: int) -> bool:
        """Whether the LoadBalancer has everything, and so many servers run."""
        machines = [each for each in self.machines(name) if not each.metadata.deleting]
        started = [each for each in machines if each.status.creation_timestamp]
        whole = self.balancer(name).status.last_openstack_reconcile is not None
        return whole and len(started) == len(machines) == replicas

    def gone(self, name: str) -> None:
        """Until the LoadBalancer is gone."""
        self.until(name, lambda: not self.exists(name), "the LoadBalancer is gone")

    # --- the cloud ---

    def has(self, name: str) -> dict[str, int]:
        """How many of each the LoadBalancer and its machines have, whatever anybody has recorded."""
        project, full = self.lab.project(), f"{NAMESPACE_NAME}/{name}"
        ports = self._named(Api.NEUTRON, "ports", "name", full)
        return {
            "security groups": self._named(Api.NEUTRON, "security-groups", "name", full).count(full),
            "floating ips": self._named(Api.NEUTRON, "floatingips", "description", full).count(full),
            "ports": ports.count(full),
            "machines' ports": len(ports) - ports.count(full),
            "servers": len(
                [
                    each
                    for each in project.pages(Api.NOVA, "server", "/servers/detail", "servers")
                    if text(each, "name").startswith(name)
                ]
            ),
        }

    def _named(self, api: Api, path: str, field: str, prefix: str) -> list[str]:
        listed = self.lab.project().pages(api, path, f"/{path}", path.replace("-", "_"))
        return [found for each in listed if (found := text(each, field)).startswith(prefix)]


def nothing() -> dict[str, int]:
    """What is left after a deletion."""
    return dict.fromkeys(("security groups", "floating ips", "ports", "machines' ports", "servers"), 0)


def whole(replicas: int) -> dict[str, int]:
    """What a load balancer has."""
    return {"security groups": 1, "floating ips": 1, "ports": 1, "machines' ports": replicas, "servers": replicas}
