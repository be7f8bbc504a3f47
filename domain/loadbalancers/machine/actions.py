from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue, WhenUnwanted
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.step_results import Brought
from domain.loadbalancers.cloud.steps import CloudAction, Look, Seen
from domain.loadbalancers.machine.world import MachineWorld
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model
from domain.schema import Document


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


class _Access(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)
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
