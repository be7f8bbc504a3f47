from __future__ import annotations

from typing import ClassVar, Self

from domain.loadbalancers.cloud.machine import MachinePlan, plan_machine
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.observation_due import look_of_machine
from domain.loadbalancers.cloud.served import ServedBalancer
from domain.loadbalancers.cloud.step_results import Brought, machine_changed
from domain.loadbalancers.cloud.steps import Observe
from domain.loadbalancers.cloud.world import LEAVING, CloudMemory, CloudWorld, Verdict
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import Timings
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model


class MachineMemory(CloudMemory):
    granted: str = ""  # the mark (or "new") for which this workflow created the access objects
    revoked: bool = False  # the access objects have been deleted
    server_gone: str = ""  # the id of the recorded server, once it no longer exists


class MachineWorld(CloudWorld):
    about: ClassVar[str] = "machine"

    machine: LoadBalancerMachine = LoadBalancerMachine()
    balancer: ServedBalancer | None = None  # its LoadBalancer; None if absent
    orphan: bool = False  # no set selects it
    sets_left_to: str = ""  # why the replaced controller still owns the sets
    timings: Timings = Timings()
    cloud: MachineCloud | None = None
    fleet: Fleet | None = None  # all machines of the installation; None if not requested since the last observation
    known: MachineMemory = MachineMemory()

    @property
    def look(self) -> str:
        return LEAVING if self.machine.metadata.deleting else look_of_machine(self.machine, self.balancer)

    @property
    def project(self) -> ProjectReference:
        return ProjectReference.of(self.machine.spec.infrastructure, self.machine.metadata.namespace)

    @property
    def plan(self) -> MachinePlan | None:
        if self.cloud is None or self.balancer is None:
            return None
        return plan_machine(
            self.machine, self.cloud, security_group_id=self.balancer.group_id, debug=self.balancer.debug
        )

    def verdict(self) -> Verdict | None:
        plan = None if self.machine.metadata.deleting else self.plan
        return None if plan is None else Verdict(plan.settled and not plan.status, plan.problem)

    def after(self, brought: Brought) -> MachineCloud:
        return machine_changed(self.cloud or MachineCloud(), brought)

    def brought(self, brought: Brought) -> Self:
        world = super().brought(brought)
        gone = brought.gone and brought.gone == self.machine.status.server_id
        return world.learn(server_gone=brought.gone) if gone else world


class ObserveMachine(Observe):
    activity: ClassVar[str] = "loadbalancers.observe_machine"
    title: ClassVar[str] = "read the machine and its LoadBalancer"
    result: ClassVar[type[Model] | None] = MachineWorld

    memory: MachineMemory = MachineMemory()
