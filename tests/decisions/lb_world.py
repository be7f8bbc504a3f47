"""A cluster and a project on paper, in which load balancers live whole lives: pass by pass, with a clock.

Each pass does what the plans say and nothing else. Agents report by themselves as soon as their server is there for as
long as a machine takes to boot. `lose` names writes that do not arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lb_objects import INFRASTRUCTURE, LABELS, NOW, condition, fleet_of
from lb_project import Project

from domain.decision import Action
from domain.loadbalancers.balancer_lifecycle import decide_balancer
from domain.loadbalancers.balancer_world import (
    BalancerWorld,
    CreateSet,
    DeleteSets,
    LookAtBalancer,
    PatchSet,
    SeenBalancer,
)
from domain.loadbalancers.cloud.drift_sweep import difference_of_machine, to_be_compared
from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.cloud.machine import ServedBalancer
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.constants import DRIFT_ANNOTATION
from domain.loadbalancers.machine.lifecycle import decide_machine
from domain.loadbalancers.machine.world import (
    AwaitServer,
    GrantAccess,
    LookAtMachine,
    MachineWorld,
    RevokeAccess,
    SeenMachine,
)
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.new_machine import machine_document
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.selectors import machines_of
from domain.loadbalancers.set_lifecycle import decide_set
from domain.loadbalancers.set_world import CreateMachine, DeleteMachine, FoundMachine, PatchMachine, SetWorld
from domain.model import Model
from domain.resource import timestamp
from domain.runner import State
from domain.writes import Patch, RecordEvents, Written, merge

Json = dict[str, Any]

SPEC: dict[str, Any] = {
    "selector": {"matchLabels": LABELS},
    "replicas": 2,
    "ports": [{"protocol": "TCP", "port": 80, "nodePort": 30080}],
    "endpoints": [{"name": "node-a", "addresses": ["10.0.0.1"]}],
    "infrastructure": INFRASTRUCTURE,
    "options": {"serverGroupPolicy": "anti-affinity"},
}
MINUTE = timedelta(minutes=1)


class World:
    """Objects by kind and name; what is made gets a uid and a birthday."""

    def __init__(self, spec: Json) -> None:
        self.now = NOW
        self.project = Project()
        self.objects: dict[str, dict[str, Json]] = {"lb": {}, "lbs": {}, "lbm": {}}
        self.rights: dict[str, set[str]] = {}
        self.lives: dict[str, State[MachineWorld]] = {}
        self.of_balancer: State[BalancerWorld] | None = None
        self.events: list[str] = []
        self.made: list[str] = []
        self.writes = 0
        self.boots_in: timedelta | None = timedelta(seconds=60)
        self.lose: Callable[[str], bool] = lambda what: False
        self.create("lb", {"metadata": {"name": "web--shop", "namespace": "lbs"}, "spec": spec})

    # --- the cluster ---

    def create(self, kind: str, body: Json) -> None:
        name = body["metadata"]["name"]
        assert name not in self.objects[kind], "409 already exists"
        self.made.append(kind)
        meta = {**body["metadata"], "uid": f"{kind}-{len(self.made)}", "creationTimestamp": timestamp(self.now)}
        self.objects[kind][name] = {**body, "metadata": meta}

    def write(self, kind: str, name: str, patch: Json) -> None:
        if patch and name in self.objects[kind] and not self.lose(kind):
            self.writes += 1
            self.objects[kind][name] = merge(self.objects[kind][name], patch)  # type: ignore[assignment]
            self._reap(kind, name)

    def delete(self, kind: str, name: str) -> None:
        found = self.objects[kind].get(name)
        if found is not None:
            found["metadata"].setdefault("deletionTimestamp", timestamp(self.now))
            self._reap(kind, name)

    def drop_finalizer(self, kind: str, name: str) -> None:
        self.objects[kind][name]["metadata"]["finalizers"] = []
        self._reap(kind, name)

    def _reap(self, kind: str, name: str) -> None:
        meta = self.objects[kind][name]["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            del self.objects[kind][name]

    def balancer(self) -> LoadBalancer:
        return LoadBalancer.model_validate(self.objects["lb"]["web--shop"])

    def sets(self) -> list[LoadBalancerSet]:
        return [LoadBalancerSet.model_validate(each) for each in self.objects["lbs"].values()]

    def machines(self) -> list[LoadBalancerMachine]:
        return [LoadBalancerMachine.model_validate(each) for each in self.objects["lbm"].values()]

    # --- passes ---

    def round(self) -> bool:
        """One look at every object; whether anything was done."""
        busy = False
        for name in list(self.objects["lb"]):
            busy |= self._balancer_pass(name)
        for name in list(self.objects["lbs"]):
            busy |= self._set_pass(name)
        for name in list(self.objects["lbm"]):
            busy |= self._machine_pass(name)
        return busy

    def settle(self, rounds: int = 40) -> None:
        for _ in range(rounds):
            if not self.round():
                return
        raise AssertionError("it does not settle")

    def run(self, span: timedelta, step: timedelta = timedelta(seconds=15)) -> None:
        """Let time pass, with agents reporting."""
        end = self.now + span
        while self.now < end:
            self.settle()
            self.now += step
            self.nova()
            self._agents()
            self._sweep()
        self.settle()

    def _balancer_pass(self, name: str) -> bool:
        """One observation, one decision, and all that can be done then."""
        state = self.of_balancer or State(BalancerWorld(key=self.balancer().key))
        state = state.wake().observing(self.now)
        state = state.observed(
            BalancerWorld(key=self.balancer().key, balancer=self.balancer(), sets=tuple(self.sets()))
        )
        while True:
            state, step = state.step(decide_balancer, self.now)
            for action in step.start:
                state = state.finished(action.slot, self._perform_for_balancer(name, action))
            if not any(each.reads for each in step.start):
                self.of_balancer = state
                return bool(step.start)

    def _perform_for_balancer(self, name: str, action: Action) -> Model | None:
        match action:
            case Patch():
                self.write("lb", name, action.patch)
                return Written()
            case LookAtBalancer():
                return SeenBalancer(cloud=self.project.of_balancer(), at=self.now)
            case Step():
                return self.project.take(action)
            case CreateSet():
                if not self.lose("create"):
                    self.create("lbs", action.document)
                return LoadBalancerSet.model_validate(action.document)
            case PatchSet():
                self.write("lbs", action.name, action.patch)
            case DeleteSets():
                for gone in action.names:
                    self.delete("lbs", gone)
            case RecordEvents():
                self.events += [each.message for each in action.notices]
            case _:
                raise AssertionError(action)
        return None

    def set_world(self, name: str) -> SetWorld:
        """As its pass observes it, and knows of the fleet."""
        current, machines = LoadBalancerSet.model_validate(self.objects["lbs"][name]), self.machines()
        own, fleet = machines_of(current, machines), fleet_of(machines, self.now)
        return SetWorld(key=current.key, machine_set=current, machines=own, fleet=fleet)

    def _set_pass(self, name: str) -> bool:
        """One observation, and all that can be done then."""
        state, busy = State(self.set_world(name)), False
        while True:
            state, step = state.step(decide_set, self.now)
            for action in step.start:
                state = state.finished(action.slot, self._perform_for_set(name, action))
            if not step.start:
                return busy
            busy |= any(not isinstance(each, RecordEvents) for each in step.start)

    def _perform_for_set(self, name: str, action: Action) -> Model | None:
        match action:
            case RecordEvents():
                return None
            case Patch():
                self.write("lbs", name, action.patch)
                return Written(gone=name not in self.objects["lbs"])
            case CreateMachine():
                body = machine_document(action.machine_set, action.name)
                if self.lose("create"):
                    return FoundMachine(machine=LoadBalancerMachine.model_validate(body))
                self.create("lbm", body)
            case PatchMachine():
                self.write("lbm", action.name, action.patch)
                self.write("lbm", action.name, action.status)
            case DeleteMachine():
                self.delete("lbm", action.name)
            case _:
                raise AssertionError(action)
        left = self.objects["lbm"].get(action.name)
        return FoundMachine(machine=LoadBalancerMachine.model_validate(left) if left else None)

    def _machine_pass(self, name: str) -> bool:
        """One observation, one decision, and all that can be done then."""
        key, before = self.machine(name).key, self.lives.get(name)
        state = before or State(MachineWorld(key=key))
        state = self._ended(name, state.observing(self.now).observed(self.observed(name)))
        state, step = state.step(decide_machine, self.now)
        self.lives[name] = self._ended(name, state)
        return bool(step.start)

    def _ended(self, name: str, state: State[MachineWorld]) -> State[MachineWorld]:
        """All that runs has ended, but for servers that are still built."""
        for action in [*state.running.values()]:
            if not self.takes_time(action):
                state = state.finished(action.slot, self.perform(name, action))
        return state

    def machine(self, name: str) -> LoadBalancerMachine:
        return LoadBalancerMachine.model_validate(self.objects["lbm"][name])

    def observed(self, name: str) -> MachineWorld:
        machine = self.machine(name)
        balancer = ServedBalancer.of(self.balancer()) if self.objects["lb"] else None
        return MachineWorld(key=machine.key, machine=machine, balancer=balancer)

    def takes_time(self, action: Action) -> bool:
        server = self.project.servers.get(action.id) if isinstance(action, AwaitServer) else None
        return server is not None and server.status == "BUILD"

    def perform(self, name: str, action: Action) -> Model | None:
        """Do what a machine's lifecycle wants; what the activity answers."""
        match action:
            case Patch():
                self.write("lbm", name, action.patch)
                return Written()
            case LookAtMachine():
                meta, virtual = action.machine.metadata, action.machine.spec.port_id
                return SeenMachine(cloud=self.project.of_machine(cloud_name(meta), virtual), at=self.now)
            case AwaitServer():
                found = self.project.servers.get(action.id)
                return Brought(server=found, gone="" if found else action.id)
            case Step():
                return self.project.take(action)
            case GrantAccess():
                self.rights.setdefault(name, set()).update(str(each["kind"]) for each in action.objects)
            case RevokeAccess():
                self.rights.setdefault(name, set()).difference_update(action.kinds)
            case RecordEvents():
                self.events += [each.message for each in action.notices]
            case _:
                raise AssertionError(action)
        return None

    # --- what goes on by itself ---

    def nova(self) -> None:
        for server in list(self.project.servers.values()):
            if server.status == "BUILD":
                self.project.servers[server.id] = server.model_copy(update={"status": "ACTIVE", "created_at": self.now})

    def _sweep(self) -> None:
        """Wake the machines that differ from the project."""
        for machine in self.machines():
            cloud = self.project.of_machine(cloud_name(machine.metadata), machine.spec.port_id)
            if (
                self.objects["lb"]
                and to_be_compared(machine)
                and difference_of_machine(machine, cloud, self.balancer())
            ):
                drift = {"metadata": {"annotations": {DRIFT_ANNOTATION: timestamp(self.now)}}}
                self.write("lbm", machine.metadata.name, drift)

    def _agents(self) -> None:
        """Every agent whose machine has had the time to boot reports; the first machine of the newest set is master."""
        for name, body in self.objects["lbm"].items():
            machine = LoadBalancerMachine.model_validate(body)
            server = self.project.servers.get(machine.status.server_id or "")
            born = machine.metadata.creation_timestamp
            if server is None or server.status != "ACTIVE" or born is None or self.boots_in is None:
                continue
            if self.now - born >= self.boots_in:
                self.report(name, body)

    def report(self, name: str, body: Json) -> None:
        known = {each["type"]: each for each in body.get("status", {}).get("conditions", ())}
        states = dict.fromkeys(("ConfigReady", "EnvoyReady", "EnvoyUpToDate"), "True")
        states["KeepalivedMaster"] = str(name == self.master())
        reports = []
        for type_, status in states.items():
            before = known.get(type_, {})
            since = before.get("lastTransitionTime") if before.get("status") == status else None
            reports.append(condition(type_, status, beat=timestamp(self.now), since=since or timestamp(self.now)))
        body["status"]["conditions"] = reports

    def master(self) -> str:
        revision = self.balancer().revision if self.objects["lb"] else ""
        ranked = sorted(
            (each.revision != revision, name)
            for name, body in self.objects["lbm"].items()
            if (each := LoadBalancerMachine.model_validate(body)) and not each.metadata.deleting
        )
        return ranked[0][1] if ranked else ""


def started(**spec: Any) -> World:
    """A load balancer that serves."""
    world = World(merge(SPEC, spec))  # type: ignore[arg-type]
    world.run(5 * MINUTE)
    return world
