from __future__ import annotations

from typing import ClassVar, Self

from domain.decision import WhenUnwanted
from domain.loadbalancers.cloud.folded_results import Brought, machine_changed
from domain.loadbalancers.cloud.machine import MachinePlan, ServedBalancer, plan_machine
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.observation_due import look_of_machine
from domain.loadbalancers.cloud.steps import CloudAction, Look, Observe, Seen
from domain.loadbalancers.cloud.world import LEAVING, CloudMemory, CloudWorld
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import Timings
from domain.loadbalancers.object_world import KubeAction
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model
from domain.schema import Document


class MachineMemory(CloudMemory):
    # The time of the mark (or "new") for which this workflow created the access objects; or that their Secret is gone.
    granted: str = ""
    revoked: bool = False  # the access objects have been deleted
    server_gone: str = ""  # the id of the recorded server, once it no longer exists


class MachineWorld(CloudWorld):
    about: ClassVar[str] = "machine"

    machine: LoadBalancerMachine = LoadBalancerMachine()
    balancer: ServedBalancer | None = None  # its LoadBalancer; None if absent
    orphan: bool = False  # no set selects it
    sets_left_to: str = ""  # why the replaced controller still owns the sets; empty if it does not
    timings: Timings = Timings()
    cloud: MachineCloud | None = None
    fleet: Fleet | None = None  # counts of all machines; None if not requested since the last observation
    known: MachineMemory = MachineMemory()

    @property
    def look(self) -> str:
        return LEAVING if self.machine.metadata.deleting else look_of_machine(self.machine, self.balancer)

    @property
    def plan(self) -> MachinePlan | None:
        if self.cloud is None or self.balancer is None or self.machine.metadata.deleting:
            return None
        return plan_machine(self.machine, self.cloud, self.balancer)

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


class SeenMachine(Seen):
    cloud: MachineCloud


class LookAtMachine(Look):
    activity: ClassVar[str] = "openstack.look_at_machine"
    title: ClassVar[str] = "find its port and server in OpenStack"
    result: ClassVar[type[Model] | None] = SeenMachine

    machine: LoadBalancerMachine


class AwaitServer(CloudAction):
    activity: ClassVar[str] = "openstack.await_server"
    title: ClassVar[str] = "wait until Nova has built server {id}"
    slot_by: ClassVar[str] = "id"
    result: ClassVar[type[Model] | None] = Brought
    renewable: ClassVar[bool] = True

    id: str

    def fold(self, world: MachineWorld, result: Model | None) -> MachineWorld:  # type: ignore[override]
        assert isinstance(result, Brought)  # noqa: S101 - the activity's type
        return world.brought(result)


class _Access(KubeAction):
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    namespace: str


class GrantAccess(_Access):
    activity: ClassVar[str] = "loadbalancers.grant_access"

    objects: tuple[Document, ...]
    mark: str

    @property
    def summary(self) -> str:
        return f"create its {', '.join(str(each['kind']) for each in self.objects)}"

    def fold(self, world: MachineWorld, result: Model | None) -> MachineWorld:  # type: ignore[override]
        return world.learn(granted=self.mark)


class RevokeAccess(_Access):
    activity: ClassVar[str] = "loadbalancers.revoke_access"
    last: ClassVar[bool] = True  # a cancelled grant may still create objects

    name: str
    kinds: tuple[str, ...]

    @property
    def summary(self) -> str:
        return f"delete its {', '.join(self.kinds)}"

    def fold(self, world: MachineWorld, result: Model | None) -> MachineWorld:  # type: ignore[override]
        return world.learn(revoked=True)
