"""Deletion of a LoadBalancer's or a machine's cloud objects, in an order that leaves nothing behind.

LoadBalancer: server group and floating IP, then port, then security group. Machine: server, then ports. If a plan has
no steps, nothing is left to delete.
"""

from __future__ import annotations

from domain.loadbalancers.cloud.floating_ip import deleted_floating_ips, floating_ips_of
from domain.loadbalancers.cloud.load_balancer import ports_of, security_groups_of, server_groups_of
from domain.loadbalancers.cloud.machine import machine_ports, machine_servers
from domain.loadbalancers.cloud.objects import CloudPort, LoadBalancerCloud, MachineCloud, SecurityGroup
from domain.loadbalancers.cloud.parts import keeps
from domain.loadbalancers.cloud.steps import (
    DeleteFloatingIp,
    DeletePort,
    DeleteSecurityGroup,
    DeleteServer,
    DeleteServerGroup,
    Step,
    UpdatePort,
)
from domain.loadbalancers.constants import (
    KEEP_FLOATING_IP_ANNOTATION,
    KEEP_PORT_ANNOTATION,
    KEEP_SECURITY_GROUP_ANNOTATION,
)
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.model import Model


class Removal(Model):
    """The next deletions. `retained` describes objects that stay: those that a person wants to keep, and foreign
    objects that have the LoadBalancer's name.
    """

    steps: tuple[Step, ...] = ()
    retained: tuple[str, ...] = ()


def remove_load_balancer(balancer: LoadBalancer, cloud: LoadBalancerCloud) -> Removal:
    ports = ports_of(balancer, cloud)
    keeps_port = keeps(balancer, KEEP_PORT_ANNOTATION)
    keeps_floating = keeps(balancer, KEEP_FLOATING_IP_ANNOTATION)
    groups = security_groups_of(balancer, cloud)
    keeps_group = keeps(balancer, KEEP_SECURITY_GROUP_ANNOTATION)

    outer: list[Step] = [DeleteServerGroup(id=each.id) for each in server_groups_of(balancer, cloud).ours]
    floating = floating_ips_of(balancer, cloud, ports.selected)
    if not keeps_floating:
        outer.extend(deleted_floating_ips(balancer, cloud, ports.selected))
    stages: tuple[tuple[Step, ...], ...] = (
        tuple(outer),
        () if keeps_port else tuple(DeletePort(id=each.id) for each in ports.ours),
        () if keeps_group else _freeing(groups.ours, cloud, ports.ours if keeps_port else ()),
        () if keeps_group else tuple(DeleteSecurityGroup(id=each.id) for each in groups.ours),
    )
    going = {step.id for step in outer if isinstance(step, DeleteFloatingIp)}
    retained = [f"floating IP {each.address}" for each in floating.ours if each.id not in going]
    retained += [f"port {each.id}" for each in ports.ours if keeps_port]
    retained += [f"security group {each.id}" for each in groups.ours if keeps_group]
    retained += [f"port {each.id} (same name, maybe another owner)" for each in ports.strangers]
    retained += [f"security group {each.id} (same name, maybe another owner)" for each in groups.strangers]
    retained += [f"floating IP {each.address} (same description, maybe another owner)" for each in floating.strangers]
    return Removal(steps=next((stage for stage in stages if stage), ()), retained=tuple(retained))


def _freeing(
    groups: tuple[SecurityGroup, ...], cloud: LoadBalancerCloud, retained: tuple[CloudPort, ...]
) -> tuple[Step, ...]:
    """The steps that remove the security groups from all ports, because Neutron deletes no group in use."""
    ids = {group.id for group in groups}
    users = {port.id: port for port in (*cloud.group_users, *retained) if ids & set(port.security_groups)}
    return tuple(
        UpdatePort(port_id=port.id, security_groups=tuple(each for each in port.security_groups if each not in ids))
        for port in users.values()
    )


def remove_machine(machine: LoadBalancerMachine, cloud: MachineCloud) -> Removal:
    servers = machine_servers(machine, cloud).ours
    if servers:
        return Removal(steps=tuple(DeleteServer(id=each.id, asked=each.deleting) for each in servers))
    ours = {each.id for each in machine_ports(machine, cloud).ours}
    # A machine of an older yawol release may have recorded another port in the former field.
    former = {each.id for each in cloud.ports if each.id == machine.status.port_id}
    return Removal(steps=tuple(DeletePort(id=each) for each in sorted(ours | former)))
