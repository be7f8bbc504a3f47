"""What can be done in the cloud for load balancers, as actions: one call each, or one bulk call.

Steps of one plan do not depend on one another and may run at the same time. Everything that a repeated step must find
again (name, description, mark) is in the step itself: in its first attempt the plan's observation is the look-up, in
every later one the step looks for what it was about to make.

What OpenStack refuses or does not answer reaches the decision at once; only what ends by itself (a server that is on
its way out, a token that is not there yet) is asked for again by Temporal's server.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from domain.decision import Action, Queue
from domain.identity import Key
from domain.loadbalancers.cloud.changes import Brought
from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.cloud.world import CloudWorld
from domain.loadbalancers.hindrances import with_pause
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import Flavor, Image, LoadBalancerReference
from domain.model import Model
from domain.refusal import ErrorType, Refusal

W = TypeVar("W", bound=CloudWorld)

# A call may take its whole time-out, and some steps make several.
LONGEST_STEP = timedelta(minutes=5)
HEARTBEAT = timedelta(seconds=10)


class Observe(Action):
    """Read an object and its relatives in Kubernetes; the cloud is looked at by `Look`."""

    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    key: Key
    seen: dict[str, str] = {}
    outdated: bool = False
    dry_run: bool = False


class CloudAction(Action):
    """Something that is asked of OpenStack, in the project that the object names."""

    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    start_to_close: ClassVar[timedelta] = LONGEST_STEP
    heartbeat: ClassVar[timedelta] = HEARTBEAT
    reaches_decision: ClassVar[tuple[ErrorType, ...]] = (ErrorType.THROTTLED, ErrorType.UNAVAILABLE)

    project: ProjectReference | None = None  # a plan leaves it to who carries it out

    def refuse(self, world: W, refusal: Refusal) -> W:  # type: ignore[override]
        """Refused for as long as its kind of hindrance is given."""
        return super().refuse(world, with_pause(refusal))


class Step(CloudAction):
    """One effect."""

    result: ClassVar[type[Model] | None] = Brought
    awaited_when_cancelled: ClassVar[bool] = True

    def fold(self, world: W, result: Model | None) -> W:  # type: ignore[override]
        """What it has brought."""
        assert isinstance(result, Brought)  # noqa: S101 - the activity's type
        return world.brought(result)

    def refuse(self, world: W, refusal: Refusal) -> W:  # type: ignore[override]
        """It may have had its effect all the same."""
        return super().refuse(world.model_copy(update={"stale": True}), refusal)


class Look(CloudAction):
    """Find what an object has in the cloud: by name, by mark, and by the ids in its status."""

    reads: ClassVar[bool] = True

    changes: int = 0  # of the world that asks

    def fold(self, world: W, result: Model | None) -> W:  # type: ignore[override]
        """A step that has ended meanwhile may have changed what was seen: then it is looked at again."""
        assert isinstance(result, Seen)  # noqa: S101 - the activity's type
        return world.looked(result.cloud, result.at) if world.changes == self.changes else world


class Seen(Model):
    """What an object has in the cloud, and when that was seen."""

    cloud: Any
    at: datetime


class _Deletion(Step):
    slot_by: ClassVar[str] = "id"

    id: str


def in_project(steps: Iterable[Step], project: ProjectReference) -> tuple[Step, ...]:
    """The steps of a plan, to be carried out in this project."""
    return tuple(step.model_copy(update={"project": project}) for step in steps)


class CreateSecurityGroup(Step):
    """Neutron gives it two rules of its own: everything may go out."""

    activity: ClassVar[str] = "openstack.create_security_group"
    title: ClassVar[str] = "create security group {name}"

    name: str
    description: str


class ChangeRules(Step):
    """All new rules in one call, then the deletions: nothing that stays allowed is refused in between."""

    activity: ClassVar[str] = "openstack.change_rules"

    security_group_id: str
    create: tuple[SecurityGroupRule, ...] = ()
    delete: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"security group rules: {len(self.create)} new, {len(self.delete)} gone"


class CreatePort(Step):
    """With all that it needs, so that it is never open to the project's default group."""

    activity: ClassVar[str] = "openstack.create_port"
    title: ClassVar[str] = "create port {name}"

    name: str
    description: str
    network_id: str
    subnet_id: str = ""
    security_groups: tuple[str, ...]
    allowed_addresses: tuple[str, ...] = ()


class UpdatePort(Step):
    """What is None stays as it is."""

    activity: ClassVar[str] = "openstack.update_port"
    title: ClassVar[str] = "update port {port_id}"
    slot_by: ClassVar[str] = "port_id"

    port_id: str
    security_groups: tuple[str, ...] | None = None
    allowed_addresses: tuple[str, ...] | None = None


class CreateFloatingIp(Step):
    """Leads to its port from birth: that is also how it is found again."""

    activity: ClassVar[str] = "openstack.create_floating_ip"
    title: ClassVar[str] = "create floating IP"

    description: str
    network_id: str
    port_id: str


class UpdateFloatingIp(Step):
    """What is None stays as it is; an empty port leads nowhere."""

    activity: ClassVar[str] = "openstack.update_floating_ip"
    title: ClassVar[str] = "update floating IP {floating_ip_id}"

    floating_ip_id: str
    port_id: str | None = None
    description: str | None = None


class CreateServerGroup(Step):
    """Soft policies need Nova's API from 2.15 on."""

    activity: ClassVar[str] = "openstack.create_server_group"
    title: ClassVar[str] = "create server group {name} ({policy})"

    name: str
    policy: str


class CreateServer(Step):
    """A machine of a LoadBalancer. The user data is made where the step is carried out: it holds a token."""

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


class DeleteSecurityGroup(_Deletion):
    """Refused by Neutron while a port has it."""

    activity: ClassVar[str] = "openstack.delete_security_group"
    title: ClassVar[str] = "delete security group {id}"


class DeletePort(_Deletion):
    """Its floating IP leads nowhere afterwards."""

    activity: ClassVar[str] = "openstack.delete_port"
    title: ClassVar[str] = "delete port {id}"


class DeleteFloatingIp(_Deletion):
    """The address is given back for good."""

    activity: ClassVar[str] = "openstack.delete_floating_ip"
    title: ClassVar[str] = "delete floating IP {id}"


class DeleteServerGroup(_Deletion):
    """Servers in it stay."""

    activity: ClassVar[str] = "openstack.delete_server_group"
    title: ClassVar[str] = "delete server group {id}"


class DeleteServer(_Deletion):
    """Accepted at once, done later: it ends when the server is gone.

    Attributes:
        asked: it has been asked for, and is only waited for.
    """

    activity: ClassVar[str] = "openstack.delete_server"
    title: ClassVar[str] = "delete server {id}"

    asked: bool = False
