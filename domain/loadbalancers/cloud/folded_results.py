"""Results of steps, folded into the observation, so that nothing is observed twice in a pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from domain.loadbalancers.cloud.objects import (
    CloudPort,
    FloatingIp,
    LoadBalancerCloud,
    MachineCloud,
    SecurityGroup,
    SecurityGroupRule,
    Server,
    ServerGroup,
)
from domain.model import Model


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


F = TypeVar("F", bound=_Identified)


class RuleChange(Model):
    security_group_id: str
    made: tuple[SecurityGroupRule, ...] = ()
    gone: tuple[str, ...] = ()


class Brought(Model):
    """The result of a step: the object after the step, or in `gone` the id of the deleted object."""

    security_group: SecurityGroup | None = None
    rules: RuleChange | None = None
    port: CloudPort | None = None
    floating_ip: FloatingIp | None = None
    server_group: ServerGroup | None = None
    server: Server | None = None
    gone: str = ""


def changed(cloud: LoadBalancerCloud, brought: Brought) -> LoadBalancerCloud:
    groups = _put(cloud.security_groups, brought.security_group, brought.gone)
    if brought.rules is not None:
        groups = tuple(_with_rules(each, brought.rules) for each in groups)
    floating = _put(cloud.floating_ips, brought.floating_ip, brought.gone)
    port_id = brought.port.id if brought.port else ""
    user = port_id in {each.id for each in cloud.group_users}
    own = not user or port_id in {each.id for each in cloud.ports}
    return cloud.model_copy(
        update={
            "security_groups": groups,
            "ports": _put(cloud.ports, brought.port if own else None, brought.gone),
            "floating_ips": tuple(_led_away(each, brought.gone) for each in floating),
            "server_groups": _put(cloud.server_groups, brought.server_group, brought.gone),
            "group_users": _put(cloud.group_users, brought.port if user else None, brought.gone),
        }
    )


def machine_changed(cloud: MachineCloud, brought: Brought) -> MachineCloud:
    return cloud.model_copy(
        update={
            "ports": _put(cloud.ports, brought.port, brought.gone),
            "servers": _put(cloud.servers, brought.server, brought.gone),
        }
    )


def _put(found: Iterable[F], new: F | None, gone: str) -> tuple[F, ...]:
    remaining = {each.id: each for each in found if each.id != gone}
    if new is not None:
        remaining[new.id] = new
    return tuple(remaining.values())


def _with_rules(group: SecurityGroup, change: RuleChange) -> SecurityGroup:
    if group.id != change.security_group_id:
        return group
    replaced = {*change.gone, *(rule.id for rule in change.made)}
    remaining = tuple(rule for rule in group.rules if rule.id not in replaced)
    return group.model_copy(update={"rules": (*remaining, *change.made)})


def _led_away(floating: FloatingIp, gone: str) -> FloatingIp:
    return floating.model_copy(update={"port_id": ""}) if gone and floating.port_id == gone else floating
