"""The area's effects on OpenStack: what each activity is asked, what it answers, and what the world learns from it.

Each step of a plan is one action, in a slot of its own: steps of one plan do not depend on one another. An action's
first attempt rests on the plan's observation, every later one looks first for what it was about to make. What passes by
itself is tried again by the server a few times and then told, so that an outage and a quota (code OverQuota) show, and
the plan is made anew from another look before the step is tried again.

What is being made is awaited when it is no longer wanted: what it leaves behind must be seen. An answer may be lost at
that very moment, so a last look has to prove the absence before a finalizer goes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue, World
from domain.identity import Key
from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.changes import Brought
from domain.loadbalancers.resources import Infrastructure
from domain.model import Model

# After how long an action is tried again elsewhere when its worker was killed.
KILLED_NOTICED = timedelta(seconds=20)
_TOLD_AFTER = 4


class ProjectReference(Model):
    """An OpenStack project by the Secret with its credentials; `project_id` where the Secret's own is not meant."""

    namespace: str
    secret: str
    project_id: str = ""

    @classmethod
    def of(cls, infrastructure: Infrastructure, namespace: str) -> ProjectReference:
        """The project of an infrastructure; a Secret without a namespace is one of the object's own namespace."""
        named = infrastructure.auth_secret_ref
        return cls(
            namespace=named.namespace or namespace, secret=named.name, project_id=infrastructure.project_id or ""
        )

    @property
    def where(self) -> str:
        """The Secret as people find it."""
        return f"Secret {self.namespace}/{self.secret}"


class CloudWorld(World):
    """A world that holds what was observed in a project."""

    def brought(self, brought: Brought) -> CloudWorld:
        """This world after a step. Worlds of the area say with `cloud.changes` what it changes."""
        raise NotImplementedError(f"{type(self).__name__} holds nothing of a project")


class CloudAction(Action):
    """An effect in a project."""

    queue: ClassVar[Queue] = Queue.OPENSTACK
    result: ClassVar[type[Model] | None] = Brought
    start_to_close: ClassVar[timedelta] = timedelta(minutes=3)
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    project: ProjectReference

    def fold(self, world: CloudWorld, result: Model | None) -> CloudWorld:  # type: ignore[override]
        """The object as it is now."""
        assert isinstance(result, Brought)  # noqa: S101 - the activity's type
        return world.brought(result)


class StepAction(CloudAction):
    """One step of a plan."""

    step: steps.Step

    @property
    def slot(self) -> str:
        """One per object: what is to be made goes by its name, what is there by its id."""
        return f"{self.activity}/{self.about}"

    @property
    def about(self) -> str:
        """The object."""
        raise NotImplementedError(type(self).__name__)

    @property
    def summary(self) -> str:
        """For the timeline."""
        return self.step.summary


class Creation(StepAction):
    """Something new."""

    awaited_when_cancelled: ClassVar[bool] = True

    @property
    def most_attempts(self) -> int:
        """A few: a quota is told."""
        return _TOLD_AFTER


class Change(StepAction):
    """Something that is there becomes another."""

    @property
    def most_attempts(self) -> int:
        """A few: what it rests on may have changed."""
        return _TOLD_AFTER


class Deletion(StepAction):
    """Something goes; tried until it is gone, or cannot go."""

    longest_retry: ClassVar[timedelta] = timedelta(seconds=30)
    what: ClassVar[str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete {self.what} {self.about}"


class CreateSecurityGroup(Creation):
    """A security group."""

    activity: ClassVar[str] = "openstack.create_security_group"

    step: steps.CreateSecurityGroup

    @property
    def about(self) -> str:
        """The object."""
        return self.step.name


class ChangeRules(Change):
    """Rules of a security group."""

    activity: ClassVar[str] = "openstack.change_rules"

    step: steps.ChangeRules

    @property
    def about(self) -> str:
        """The object."""
        return self.step.security_group_id


class CreatePort(Creation):
    """A port."""

    activity: ClassVar[str] = "openstack.create_port"

    step: steps.CreatePort

    @property
    def about(self) -> str:
        """The object."""
        return self.step.name


class UpdatePort(Change):
    """What a port may."""

    activity: ClassVar[str] = "openstack.update_port"

    step: steps.UpdatePort

    @property
    def about(self) -> str:
        """The object."""
        return self.step.port_id


class CreateFloatingIp(Creation):
    """A floating IP, by the port that it leads to."""

    activity: ClassVar[str] = "openstack.create_floating_ip"

    step: steps.CreateFloatingIp

    @property
    def about(self) -> str:
        """The object."""
        return self.step.port_id


class UpdateFloatingIp(Change):
    """Where a floating IP leads."""

    activity: ClassVar[str] = "openstack.update_floating_ip"

    step: steps.UpdateFloatingIp

    @property
    def about(self) -> str:
        """The object."""
        return self.step.floating_ip_id


class CreateServerGroup(Creation):
    """A server group."""

    activity: ClassVar[str] = "openstack.create_server_group"

    step: steps.CreateServerGroup

    @property
    def about(self) -> str:
        """The object."""
        return self.step.name


class CreateServer(Creation):
    """A machine's server. Its user data is made by the activity, and goes to Nova alone.

    Raises Pending while the machine's token is not there, Absent if the machine or its LoadBalancer is gone.
    """

    activity: ClassVar[str] = "openstack.create_server"

    step: steps.CreateServer
    machine: Key
    balancer: Key
    virtual_address: str

    @property
    def about(self) -> str:
        """The object."""
        return self.step.name


class DeleteSecurityGroup(Deletion):
    """A security group goes; Conflict while a port has it."""

    activity: ClassVar[str] = "openstack.delete_security_group"
    what: ClassVar[str] = "security group"

    step: steps.DeleteSecurityGroup

    @property
    def about(self) -> str:
        """The object."""
        return self.step.id


class DeletePort(Deletion):
    """A port goes; Conflict or Denied if something holds it for long."""

    activity: ClassVar[str] = "openstack.delete_port"
    what: ClassVar[str] = "port"

    step: steps.DeletePort

    @property
    def about(self) -> str:
        """The object."""
        return self.step.id


class DeleteFloatingIp(Deletion):
    """A floating IP goes."""

    activity: ClassVar[str] = "openstack.delete_floating_ip"
    what: ClassVar[str] = "floating IP"

    step: steps.DeleteFloatingIp

    @property
    def about(self) -> str:
        """The object."""
        return self.step.id


class DeleteServerGroup(Deletion):
    """A server group goes."""

    activity: ClassVar[str] = "openstack.delete_server_group"
    what: ClassVar[str] = "server group"

    step: steps.DeleteServerGroup

    @property
    def about(self) -> str:
        """The object."""
        return self.step.id


class DeleteServer(Deletion):
    """A server goes: done when it is gone, Conflict (NotDeleted) if Nova cannot delete it."""

    activity: ClassVar[str] = "openstack.delete_server"
    what: ClassVar[str] = "server"

    step: steps.DeleteServer

    @property
    def about(self) -> str:
        """The object."""
        return self.step.id


class AwaitServer(CloudAction):
    """Look at a server until it is not being built any more; a look every few seconds, by the server's retries.

    Raises Absent if it is gone.
    """

    activity: ClassVar[str] = "openstack.await_server"
    longest_retry: ClassVar[timedelta] = timedelta(seconds=30)

    server_id: str

    @property
    def slot(self) -> str:
        """One per server."""
        return f"{self.activity}/{self.server_id}"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"wait until server {self.server_id} is built"
