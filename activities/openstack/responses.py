"""Converts OpenStack's answers to the domain's objects; null becomes empty.

Neutron writes null for "any protocol". Nova reports a `fault` only for servers in ERROR, returns only the id of a new
server, and may show a deleted server as DELETED for a moment.
"""

from __future__ import annotations

from typing import Final

from activities.openstack.errors import shortened
from domain.loadbalancers.cloud.objects import (
    CloudPort,
    FixedIp,
    FloatingIp,
    SecurityGroup,
    SecurityGroupRule,
    Server,
    ServerGroup,
)
from domain.resource import parse_timestamp
from engine.kube.json import at, sequence, text

# The key of the machine's uid in a server's metadata. Nova allows no slash in a key.
MACHINE_UID: Final = "perdure-machine"


def security_group(found: object) -> SecurityGroup:
    return SecurityGroup(
        id=text(found, "id"),
        name=text(found, "name"),
        description=text(found, "description"),
        rules=tuple(rule(each) for each in sequence(found, "security_group_rules")),
        created_at=parse_timestamp(text(found, "created_at")),
    )


def rule(found: object) -> SecurityGroupRule:
    return SecurityGroupRule(
        id=text(found, "id"),
        direction=text(found, "direction"),
        ethertype=text(found, "ethertype"),
        protocol=_written(at(found, "protocol")),
        port_range_min=_number(at(found, "port_range_min")),
        port_range_max=_number(at(found, "port_range_max")),
        remote_ip_prefix=text(found, "remote_ip_prefix"),
        remote_group_id=text(found, "remote_group_id"),
        description=text(found, "description"),
    )


def port(found: object) -> CloudPort:
    return CloudPort(
        id=text(found, "id"),
        name=text(found, "name"),
        description=text(found, "description"),
        network_id=text(found, "network_id"),
        fixed_ips=tuple(
            FixedIp(address=text(each, "ip_address"), subnet_id=text(each, "subnet_id"))
            for each in sequence(found, "fixed_ips")
        ),
        security_groups=tuple(str(each) for each in sequence(found, "security_groups")),
        allowed_addresses=tuple(text(each, "ip_address") for each in sequence(found, "allowed_address_pairs")),
        device_id=text(found, "device_id"),
        created_at=parse_timestamp(text(found, "created_at")),
    )


def floating_ip(found: object) -> FloatingIp:
    return FloatingIp(
        id=text(found, "id"),
        address=text(found, "floating_ip_address"),
        description=text(found, "description"),
        port_id=text(found, "port_id"),
        created_at=parse_timestamp(text(found, "created_at")),
    )


def server_group(found: object) -> ServerGroup:
    """Up to microversion 2.63, a server group's policy is in a list."""
    policies = [str(each) for each in sequence(found, "policies")]
    return ServerGroup(
        id=text(found, "id"),
        name=text(found, "name"),
        policy=text(found, "policy") or next(iter(policies), ""),
        members=tuple(str(each) for each in sequence(found, "members")),
    )


def server(found: object) -> Server:
    return Server(
        id=text(found, "id"),
        name=text(found, "name"),
        status=text(found, "status"),
        fault=shortened(text(found, "fault", "message")),
        uid=text(found, "metadata", MACHINE_UID),
        deleting=text(found, "OS-EXT-STS:task_state") == "deleting" or text(found, "status") == "DELETED",
        created_at=parse_timestamp(text(found, "created")),
    )


def _written(value: object) -> str:
    return "" if value is None else str(value)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
