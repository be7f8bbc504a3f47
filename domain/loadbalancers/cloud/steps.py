"""Actions on the cloud: observations, and the steps that change it.

Steps of one plan may run in parallel. A step contains everything needed to find its own earlier effect (name,
description, mark).

OpenStack's refusals and outages are returned to the lifecycle at once. Temporal retries an action only while OpenStack
is still working on an earlier call, such as the deletion of a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from domain.decision import Action, Queue, WhenUnwanted
from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.cloud.world import IN_OPENSTACK, CloudWorld
from domain.loadbalancers.machine.api_access import SECRET_GONE
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.refused_calls import with_pause
from domain.loadbalancers.resources import Flavor, Image, LoadBalancerReference
from domain.model import Model
from domain.passes import Observation
from domain.refusal import ErrorType, Refusal

W = TypeVar("W", bound=CloudWorld)

# A call may last until its timeout, and some steps make several calls.
LONGEST_STEP = timedelta(minutes=5)
HEARTBEAT = timedelta(seconds=10)
# Answers with status 503 of Nova, Neutron and a proxy: they have not begun the call.
_NOT_BEGUN = frozenset({"serviceUnavailable", "ServiceUnavailable", "HTTP 503"})


class Observe(Observation):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    seen: dict[str, str] = {}
    outdated: bool = False


class CloudAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    start_to_close: ClassVar[timedelta] = LONGEST_STEP
    heartbeat: ClassVar[timedelta] = HEARTBEAT
    reaches_decision: ClassVar[tuple[ErrorType, ...]] = (ErrorType.THROTTLED, ErrorType.UNAVAILABLE)

    project: ProjectReference | None = None  # set by `in_project`

    def refuse(self, world: W, refusal: Refusal) -> W:  # type: ignore[override]
        return super().refuse(world, with_pause(refusal))


class Step(CloudAction):
    result: ClassVar[type[Model] | None] = Brought
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    def fold(self, world: W, result: Model | None) -> W:  # type: ignore[override]
        assert isinstance(result, Brought)  # noqa: S101 - the activity's type
        return world.brought(result)

    def cancelled(self, world: W) -> W:  # type: ignore[override]
        return world.model_copy(update={"stale": True})

    def refuse(self, world: W, refusal: Refusal) -> W:  # type: ignore[override]
        lost = refusal.type is ErrorType.UNAVAILABLE and refusal.code not in _NOT_BEGUN
        if lost and self.activity.startswith(f"{IN_OPENSTACK}create_"):
            world = world.learn(unanswered_at=refusal.at)
        return super().refuse(world.model_copy(update={"stale": True}), refusal)


class Look(CloudAction):
    reads: ClassVar[bool] = True

    changes: int = 0  # `CloudWorld.changes` when the observation was requested

    def fold(self, world: W, result: Model | None) -> W:  # type: ignore[override]
        assert isinstance(result, Seen)  # noqa: S101 - the activity's type
        return world.with_cloud(result.cloud, result.at) if world.changes == self.changes else world


class Seen(Model):
    cloud: Any
    at: datetime


class _Deletion(Step):
    slot_by: ClassVar[str] = "id"

    id: str


def in_project(steps: Iterable[Step], project: ProjectReference) -> tuple[Step, ...]:
    return tuple(step.model_copy(update={"project": project}) for step in steps)


class CreateSecurityGroup(Step):
    """Create a security group, which starts with Neutron's two rules that allow all egress."""

    activity: ClassVar[str] = "openstack.create_security_group"
    title: ClassVar[str] = "create security group {name}"

    name: str
    description: str


class ChangeRules(Step):
    """Change a group's rules. New rules are created first, so that permitted traffic is not interrupted. If the quota
    does not allow this, old rules are deleted first.
    """

    activity: ClassVar[str] = "openstack.change_rules"

    security_group_id: str
    create: tuple[SecurityGroupRule, ...] = ()
    delete: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        return f"change security group rules: create {len(self.create)}, delete {len(self.delete)}"


class CreatePort(Step):
    """Create a port with all its fields at once, so that it never has the project's default security group."""

    activity: ClassVar[str] = "openstack.create_port"
    title: ClassVar[str] = "create port {name}"

    name: str
    description: str
    network_id: str
    subnet_id: str = ""
    security_groups: tuple[str, ...]
    allowed_addresses: tuple[str, ...] = ()


class UpdatePort(Step):
    activity: ClassVar[str] = "openstack.update_port"
    title: ClassVar[str] = "update port {port_id}"
    slot_by: ClassVar[str] = "port_id"

    port_id: str
    security_groups: tuple[str, ...] | None = None
    allowed_addresses: tuple[str, ...] | None = None


class CreateFloatingIp(Step):
    """Create a floating IP that is attached to its port. A later attempt finds it by the port."""

    activity: ClassVar[str] = "openstack.create_floating_ip"
    title: ClassVar[str] = "create floating IP"

    description: str
    network_id: str
    port_id: str


class UpdateFloatingIp(Step):
    """A field that is None stays unchanged. An empty `port_id` detaches the floating IP."""

    activity: ClassVar[str] = "openstack.update_floating_ip"
    title: ClassVar[str] = "update floating IP {floating_ip_id}"

    floating_ip_id: str
    port_id: str | None = None
    description: str | None = None


class CreateServerGroup(Step):
    """Create a server group; soft policies need Nova API 2.15 or later."""

    activity: ClassVar[str] = "openstack.create_server_group"
    title: ClassVar[str] = "create server group {name} ({policy})"

    name: str
    policy: str


class CreateServer(Step):
    """Create a server. The activity generates the user data, so that no history contains the token in it."""

    activity: ClassVar[str] = "openstack.create_server"
    title: ClassVar[str] = "create server {name}"

    name: str
    namespace: str
    load_balancer: LoadBalancerReference
    virtual_address: str
    uid: str
    flavor: Flavor
    image: Image
    availability_zone: str = ""
    port_id: str
    network_id: str
    additional_networks: tuple[str, ...] = ()
    key_name: str = ""
    server_group_id: str = ""

    def refuse(self, world: W, refusal: Refusal) -> W:  # type: ignore[override]
        lost = world.learn(granted=SECRET_GONE) if refusal.code == SECRET_GONE else world
        return super().refuse(lost, refusal)


class DeleteSecurityGroup(_Deletion):
    """Delete a security group. Neutron refuses this while a port uses the group."""

    activity: ClassVar[str] = "openstack.delete_security_group"
    title: ClassVar[str] = "delete security group {id}"


class DeletePort(_Deletion):
    """Delete a port; Neutron then detaches its floating IP."""

    activity: ClassVar[str] = "openstack.delete_port"
    title: ClassVar[str] = "delete port {id}"


class DeleteFloatingIp(_Deletion):
    activity: ClassVar[str] = "openstack.delete_floating_ip"
    title: ClassVar[str] = "delete floating IP {id}"


class DeleteServerGroup(_Deletion):
    activity: ClassVar[str] = "openstack.delete_server_group"
    title: ClassVar[str] = "delete server group {id}"


class DeleteServer(_Deletion):
    """If `asked`, the deletion was requested before, and the step first checks whether Nova is
    deleting it.
    """

    activity: ClassVar[str] = "openstack.delete_server"
    title: ClassVar[str] = "delete server {id}"

    asked: bool = False
