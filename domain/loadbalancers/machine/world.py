"""What the decision about a machine sees: the machine, its LoadBalancer, and what it has in the cloud."""

from __future__ import annotations

from typing import ClassVar, Self

from domain.loadbalancers.cloud.changes import Brought, machine_changed
from domain.loadbalancers.cloud.looks import look_of_machine
from domain.loadbalancers.cloud.machine import MachinePlan, plan_machine
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.served import ServedBalancer
from domain.loadbalancers.cloud.steps import Observe
from domain.loadbalancers.cloud.world import LEAVING, CloudKnown, CloudWorld, Judged
from domain.loadbalancers.fleet import Fleet
from domain.loadbalancers.health import Timings
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model


class MachineKnown(CloudKnown):
    """Also what it has done.

    Attributes:
        granted: the mark under which its rights were made in this life.
        revoked: its rights are deleted.
        server_gone: the recorded server that does not exist any more.
    """

    granted: str = ""
    revoked: bool = False
    server_gone: str = ""


class MachineWorld(CloudWorld):
    """One LoadBalancerMachine.

    Attributes:
        machine: as it was observed, and changed by own writes since.
        balancer: its LoadBalancer, None if there is none.
        orphan: no set has it among its own.
        sets_left_to: why sets are left to the replaced controller.
        fleet: all machines of the installation; None if that has not been asked since the last observation.
    """

    about: ClassVar[str] = "machine"

    machine: LoadBalancerMachine = LoadBalancerMachine()
    balancer: ServedBalancer | None = None
    orphan: bool = False
    sets_left_to: str = ""
    timings: Timings = Timings()
    cloud: MachineCloud | None = None
    fleet: Fleet | None = None
    known: MachineKnown = MachineKnown()

    @property
    def look(self) -> str:
        """All of the machine that its objects in the cloud rest on."""
        return LEAVING if self.machine.metadata.deleting else look_of_machine(self.machine, self.balancer)

    @property
    def project(self) -> ProjectReference:
        """Where its objects in the cloud are."""
        return ProjectReference.of(self.machine.spec.infrastructure, self.machine.metadata.namespace)

    @property
    def plan(self) -> MachinePlan | None:
        """What it lacks in the cloud, by what was seen; None where that is not known."""
        if self.cloud is None or self.balancer is None:
            return None
        return plan_machine(
            self.machine, self.cloud, security_group_id=self.balancer.group_id, debug=self.balancer.debug
        )

    def judged(self) -> Judged | None:
        """Whether its port and its server are as they should be."""
        plan = None if self.machine.metadata.deleting else self.plan
        return None if plan is None else Judged(plan.settled and not plan.status, plan.problem)

    def after(self, brought: Brought) -> MachineCloud:
        """The cloud after a step."""
        return machine_changed(self.cloud or MachineCloud(), brought)

    def brought(self, brought: Brought) -> Self:
        """Also, whether the recorded server is gone."""
        world = super().brought(brought)
        gone = brought.gone and brought.gone == self.machine.status.server_id
        return world.learn(server_gone=brought.gone) if gone else world


class ObserveMachine(Observe):
    """Read the machine, its LoadBalancer, and whether a set looks after it."""

    activity: ClassVar[str] = "loadbalancers.observe_machine"
    title: ClassVar[str] = "read the machine and its LoadBalancer"
    result: ClassVar[type[Model] | None] = MachineWorld

    memory: MachineKnown = MachineKnown()
