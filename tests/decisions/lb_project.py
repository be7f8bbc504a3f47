"""An OpenStack project on paper: what plans come to when their steps are carried out one after another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.folded_results import Brought, RuleChange
from domain.loadbalancers.cloud.objects import (
    CloudPort,
    FixedIp,
    FloatingIp,
    LoadBalancerCloud,
    MachineCloud,
    SecurityGroup,
    SecurityGroupRule,
    Server,
    ServerGroup,
)


class Project:
    """Holds objects by kind and id; counts what was made and deleted."""

    def __init__(self) -> None:
        self.groups: dict[str, SecurityGroup] = {}
        self.ports: dict[str, CloudPort] = {}
        self.floating: dict[str, FloatingIp] = {}
        self.server_groups: dict[str, ServerGroup] = {}
        self.servers: dict[str, Server] = {}
        self.calls: list[str] = []
        self._numbers = count(100)

    def id(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"

    @property
    def left(self) -> list[str]:
        """The ids of all that is there."""
        return [*self.groups, *self.ports, *self.floating, *self.server_groups, *self.servers]

    def of_balancer(self, name: str = "lbs/web--shop") -> LoadBalancerCloud:
        return LoadBalancerCloud(
            security_groups=tuple(self.groups.values()),
            ports=tuple(port for port in self.ports.values() if port.name == name),
            floating_ips=tuple(self.floating.values()),
            server_groups=tuple(self.server_groups.values()),
            group_users=tuple(self.ports.values()),
        )

    def of_machine(self, name: str, virtual_port: str) -> MachineCloud:
        return MachineCloud(
            ports=tuple(port for port in self.ports.values() if port.name == name),
            servers=tuple(self.servers.values()),
            virtual_port=self.ports.get(virtual_port),
        )

    def carry_out(self, wanted: Iterable[steps.Step]) -> None:
        for step in wanted:
            self.take(step)

    def take(self, step: steps.Step) -> Brought:
        """Carry out one step; what it has brought."""
        self.calls.append(type(step).__name__)
        match step:
            case steps.CreateSecurityGroup():
                return Brought(security_group=self._create_group(step))
            case steps.ChangeRules():
                group = self.groups[step.security_group_id]
                remaining = tuple(rule for rule in group.rules if rule.id not in step.delete)
                made = tuple(rule.model_copy(update={"id": self.id("rule")}) for rule in step.create)
                self.groups[group.id] = group.model_copy(update={"rules": (*remaining, *made)})
                return Brought(rules=RuleChange(security_group_id=group.id, made=made, gone=step.delete))
            case steps.CreatePort():
                id_ = self.id("port")
                self.ports[id_] = CloudPort(
                    id=id_,
                    name=step.name,
                    description=step.description,
                    network_id=step.network_id,
                    fixed_ips=(FixedIp(address=f"10.1.0.{len(self.ports) + 5}", subnet_id=step.subnet_id or "sub"),),
                    security_groups=step.security_groups,
                    allowed_addresses=step.allowed_addresses,
                )
                return Brought(port=self.ports[id_])
            case steps.UpdatePort():
                changed = step.model_dump(include={"security_groups", "allowed_addresses"}, exclude_none=True)
                self.ports[step.port_id] = self.ports[step.port_id].model_copy(update=changed)
                return Brought(port=self.ports[step.port_id])
            case steps.CreateFloatingIp():
                id_ = self.id("fip")
                address = f"203.0.113.{len(self.floating) + 7}"
                self.floating[id_] = FloatingIp(
                    id=id_, address=address, description=step.description, port_id=step.port_id
                )
                return Brought(floating_ip=self.floating[id_])
            case steps.UpdateFloatingIp():
                changed = step.model_dump(include={"port_id", "description"}, exclude_none=True)
                self.floating[step.floating_ip_id] = self.floating[step.floating_ip_id].model_copy(update=changed)
                return Brought(floating_ip=self.floating[step.floating_ip_id])
            case steps.CreateServerGroup():
                id_ = self.id("server-group")
                self.server_groups[id_] = ServerGroup(id=id_, name=step.name, policy=step.policy)
                return Brought(server_group=self.server_groups[id_])
            case steps.CreateServer():
                id_ = self.id("server")
                self.servers[id_] = Server(id=id_, name=step.name, status="BUILD", uid=step.uid)
                return Brought(server=self.servers[id_])
            case _:
                return Brought(gone=self._delete(step))

    def _create_group(self, step: steps.CreateSecurityGroup) -> SecurityGroup:
        id_ = self.id("sg")
        rules = tuple(
            SecurityGroupRule(id=self.id("rule"), direction="egress", ethertype=ether) for ether in ("IPv4", "IPv6")
        )
        self.groups[id_] = SecurityGroup(id=id_, name=step.name, description=step.description, rules=rules)
        return self.groups[id_]

    def _delete(self, step: steps.Step) -> str:
        match step:
            case steps.DeleteSecurityGroup():
                assert not [port for port in self.ports.values() if step.id in port.security_groups], "409 in use"
                del self.groups[step.id]
            case steps.DeletePort():
                del self.ports[step.id]
                for each in self.floating.values():
                    if each.port_id == step.id:
                        self.floating[each.id] = each.model_copy(update={"port_id": ""})
            case steps.DeleteFloatingIp():
                del self.floating[step.id]
            case steps.DeleteServerGroup():
                del self.server_groups[step.id]
            case steps.DeleteServer():
                self.servers.pop(step.id, None)
            case _:
                raise AssertionError(step)
        return step.id
