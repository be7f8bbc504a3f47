"""What is observed in an OpenStack project: the objects of Neutron and Nova, as far as load balancers depend on them.

Lists are read in bulk; an object's candidates are those of its name (for floating IPs: description) or of the id that
the custom resource has recorded. Nothing here holds a secret.
"""

from __future__ import annotations

from datetime import datetime

from domain.model import Model


class SecurityGroupRule(Model):
    """One rule; what is None or empty is any. `id` is empty for a rule that is only wanted."""

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
    """A security group with its rules."""

    id: str
    name: str = ""
    description: str = ""
    rules: tuple[SecurityGroupRule, ...] = ()
    created_at: datetime | None = None


class FixedIp(Model):
    """An address of a port."""

    address: str
    subnet_id: str = ""


class CloudPort(Model):
    """A port. `device_id` is the server that it is plugged into, empty if none."""

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
        """Its first address, empty if it has none yet."""
        return self.fixed_ips[0].address if self.fixed_ips else ""


class FloatingIp(Model):
    """A floating IP; it has no name, so its description stands for one. `port_id` is empty while it leads nowhere."""

    id: str
    address: str
    description: str = ""
    network_id: str = ""
    port_id: str = ""
    status: str = ""
    created_at: datetime | None = None


class ServerGroup(Model):
    """A server group; `policy` is the only one that Nova allows it, and Nova tells no date."""

    id: str
    name: str = ""
    policy: str = ""
    members: tuple[str, ...] = ()
    created_at: datetime | None = None


class Server(Model):
    """A server. `uid` is the machine it was made for, empty if it does not say so; `fault` is Nova's own words."""

    id: str
    name: str = ""
    status: str = ""
    fault: str = ""
    uid: str = ""
    deleting: bool = False  # it has been asked to go
    created_at: datetime | None = None


class LoadBalancerCloud(Model):
    """The candidates of one LoadBalancer; `group_users` are all ports that have its security group."""

    security_groups: tuple[SecurityGroup, ...] = ()
    ports: tuple[CloudPort, ...] = ()
    floating_ips: tuple[FloatingIp, ...] = ()
    server_groups: tuple[ServerGroup, ...] = ()
    group_users: tuple[CloudPort, ...] = ()
    groups_only: bool = False  # nothing but the security groups was looked at: the rest is as it should be


class MachineCloud(Model):
    """The candidates of one machine, and the port with its LoadBalancer's virtual address.

    Lists may lag behind: a recorded server or port that a list lacks was asked for by its id.
    """

    ports: tuple[CloudPort, ...] = ()
    servers: tuple[Server, ...] = ()
    virtual_port: CloudPort | None = None
