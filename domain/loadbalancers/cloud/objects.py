"""The parts of Neutron and Nova objects that load balancers depend on.

Cloud objects may belong to a custom resource if they have its name, or an id that its status records. A floating IP
has the name in its description. No field contains a secret.
"""

from __future__ import annotations

from datetime import datetime

from domain.model import Model


class SecurityGroupRule(Model):
    """A field that is None or empty means any value. `id` is empty for a desired rule."""

    id: str = ""
    direction: str
    ethertype: str
    protocol: str = ""
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_ip_prefix: str = ""
    remote_group_id: str = ""
    description: str = ""


class SecurityGroup(Model):
    id: str
    name: str = ""
    description: str = ""
    rules: tuple[SecurityGroupRule, ...] = ()
    created_at: datetime | None = None


class FixedIp(Model):
    address: str
    subnet_id: str = ""


class CloudPort(Model):
    id: str
    name: str = ""
    description: str = ""
    network_id: str = ""
    fixed_ips: tuple[FixedIp, ...] = ()
    security_groups: tuple[str, ...] = ()
    allowed_addresses: tuple[str, ...] = ()
    device_id: str = ""
    created_at: datetime | None = None

    @property
    def address(self) -> str:
        return self.fixed_ips[0].address if self.fixed_ips else ""


class FloatingIp(Model):
    """A floating IP has no name and is identified by its description. `port_id` is empty while it is detached."""

    id: str
    address: str
    description: str = ""
    port_id: str = ""
    created_at: datetime | None = None


class ServerGroup(Model):
    """Nova allows exactly one policy for a server group, and reports no creation time."""

    id: str
    name: str = ""
    policy: str = ""
    members: tuple[str, ...] = ()
    created_at: datetime | None = None


class Server(Model):
    """`uid` is the machine's uid in the server's metadata, empty if there is none. `fault` is Nova's message."""

    id: str
    name: str = ""
    status: str = ""
    fault: str = ""
    uid: str = ""
    deleting: bool = False  # its deletion was requested
    created_at: datetime | None = None


class LoadBalancerCloud(Model):
    """The cloud objects that may belong to one LoadBalancer. `group_users` are the ports with its security group,
    read just before the group's deletion.
    """

    security_groups: tuple[SecurityGroup, ...] = ()
    ports: tuple[CloudPort, ...] = ()
    floating_ips: tuple[FloatingIp, ...] = ()
    server_groups: tuple[ServerGroup, ...] = ()
    group_users: tuple[CloudPort, ...] = ()
    groups_only: bool = False  # only security groups were observed, because the other objects are up to date


class MachineCloud(Model):
    """The cloud objects that may belong to one machine, and the port with its LoadBalancer's virtual address."""

    ports: tuple[CloudPort, ...] = ()
    servers: tuple[Server, ...] = ()
    virtual_port: CloudPort | None = None
