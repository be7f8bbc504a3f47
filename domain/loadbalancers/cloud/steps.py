"""What can be done in the cloud for load balancers: one call each, or one bulk call.

Steps of one plan do not depend on one another and may run at the same time. Everything that a repeated step must find
again (name, description, mark) is in the step itself: in its first attempt the plan's observation is the look-up, in
every later one the step looks for what it was about to make.
"""

from __future__ import annotations

from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.resources import Flavor, Image
from domain.model import Model


class Step(Model):
    """One effect."""

    @property
    def summary(self) -> str:
        """A line for the timeline and for `plan`."""
        return type(self).__name__


class CreateSecurityGroup(Step):
    """Neutron gives it two rules of its own: everything may go out."""

    name: str
    description: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create security group {self.name}"


class ChangeRules(Step):
    """All new rules in one call, then the deletions: nothing that stays allowed is refused in between."""

    security_group_id: str
    create: tuple[SecurityGroupRule, ...] = ()
    delete: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"security group rules: {len(self.create)} new, {len(self.delete)} gone"


class CreatePort(Step):
    """With all that it needs, so that it is never open to the project's default group."""

    name: str
    description: str
    network_id: str
    subnet_id: str = ""
    security_groups: tuple[str, ...]
    allowed_addresses: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create port {self.name}"


class UpdatePort(Step):
    """What is None stays as it is."""

    port_id: str
    security_groups: tuple[str, ...] | None = None
    allowed_addresses: tuple[str, ...] | None = None

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"update port {self.port_id}"


class CreateFloatingIp(Step):
    """Leads to its port from birth: that is also how it is found again."""

    description: str
    network_id: str
    port_id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "create floating IP"


class UpdateFloatingIp(Step):
    """What is None stays as it is; an empty port leads nowhere."""

    floating_ip_id: str
    port_id: str | None = None
    description: str | None = None

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"update floating IP {self.floating_ip_id}"


class CreateServerGroup(Step):
    """Soft policies need Nova's API from 2.15 on."""

    name: str
    policy: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create server group {self.name} ({self.policy})"


class CreateServer(Step):
    """A machine. The user data is made where the step is carried out: it holds a token."""

    name: str
    uid: str
    flavor: Flavor
    image: Image
    availability_zone: str = ""
    port_id: str
    network_id: str
    additional_networks: tuple[str, ...] = ()
    key_name: str = ""
    server_group_id: str = ""

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create server {self.name}"


class DeleteSecurityGroup(Step):
    """Refused by Neutron while a port has it."""

    id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete security group {self.id}"


class DeletePort(Step):
    """Its floating IP leads nowhere afterwards."""

    id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete port {self.id}"


class DeleteFloatingIp(Step):
    """The address is given back for good."""

    id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete floating IP {self.id}"


class DeleteServerGroup(Step):
    """Servers in it stay."""

    id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete server group {self.id}"


class DeleteServer(Step):
    """Accepted at once, done later."""

    id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete server {self.id}"
