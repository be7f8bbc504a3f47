"""The steps towards a LoadBalancer's cloud objects, and its status.

    security group --> rules of the group
    security group --> port --> floating IP (only if external)
    server group (only with a policy)

Each plan has the steps that are possible now. Drift that cannot be repaired, such as a port with the virtual address in
the wrong network, is reported as a problem, and the machines continue to run. Machines are created only after the plan
is settled and the status is written, because the template hash contains names and ids from the status.
"""

from __future__ import annotations

from datetime import datetime

from domain.loadbalancers.cloud.floating_ip import plan_floating_ip
from domain.loadbalancers.cloud.objects import CloudPort, LoadBalancerCloud, SecurityGroup, ServerGroup
from domain.loadbalancers.cloud.ownership import Selection, mark_of, marked_for, select
from domain.loadbalancers.cloud.parts import Part, address_of, contested, owner_of
from domain.loadbalancers.cloud.security_group_rules import changed_rules, wanted_rules
from domain.loadbalancers.cloud.steps import (
    CreatePort,
    CreateSecurityGroup,
    CreateServerGroup,
    DeletePort,
    DeleteSecurityGroup,
    DeleteServerGroup,
    Step,
    UpdatePort,
)
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerStatus
from domain.loadbalancers.template_hash import cloud_hash
from domain.model import Model
from domain.notices import Notice, warning
from domain.resource import timestamp
from domain.writes import JsonPatch, difference

_IDENTIFIERS = (
    "floating_id",
    "floating_name",
    "external_ip",
    "port_id",
    "port_name",
    "port_ip",
    "server_group_id",
    "server_group_name",
    "group_id",
    "group_name",
)


class CloudPlan(Model):
    steps: tuple[Step, ...] = ()  # empty when done or blocked
    status: JsonPatch = {}  # the merge patch of the LoadBalancer's status; empty if up to date
    notices: tuple[Notice, ...] = ()
    problem: str = ""  # what a person has to correct
    settled: bool = False  # everything exists, so that machines can be created


def plan_cloud(balancer: LoadBalancer, cloud: LoadBalancerCloud, now: datetime) -> CloudPlan:
    """The LoadBalancer must have current field names only (`former_fields.py`)."""
    groups = security_groups_of(balancer, cloud)
    ports = ports_of(balancer, cloud)
    parts: tuple[Part, ...] = (_security_group(balancer, groups),)
    if not cloud.groups_only:
        parts += (
            _port(balancer, groups.selected, ports),
            plan_floating_ip(balancer, cloud, ports.selected),
            _server_group(balancer, cloud),
        )
    steps = tuple(step for part in parts for step in part.steps)
    problem = "; ".join(part.problem for part in parts if part.problem)
    facts: dict[str, object] = {}
    for part in parts:
        facts.update(part.status)
    settled = not steps and not problem
    known, found = balancer.status, cloud_hash(balancer)
    if settled and (known.openstack_reconcile_hash != found or not known.last_openstack_reconcile):
        facts.update(openstack_reconcile_hash=found, last_openstack_reconcile=timestamp(now))
    status = difference(balancer.status, balancer.status.model_copy(update=facts))
    notices = tuple(notice for part in parts for notice in part.notices)
    problems = tuple(warning("Failed", part.problem) for part in parts if part.problem)
    return CloudPlan(
        steps=steps,
        status={"status": status} if status else {},
        notices=(*notices, *problems),
        problem=problem,
        settled=settled,
    )


def security_groups_of(balancer: LoadBalancer, cloud: LoadBalancerCloud) -> Selection[SecurityGroup]:
    status = balancer.status
    owner = owner_of(balancer, status.group_id, status.group_name)
    return select(cloud.security_groups, owner, lambda each: marked_for(each.description))


def ports_of(balancer: LoadBalancer, cloud: LoadBalancerCloud) -> Selection[CloudPort]:
    owner = owner_of(balancer, balancer.status.port_id, balancer.status.port_name)
    return select(cloud.ports, owner, lambda each: marked_for(each.description))


def server_groups_of(balancer: LoadBalancer, cloud: LoadBalancerCloud) -> Selection[ServerGroup]:
    """The LoadBalancer's server groups. A group whose id is not recorded counts in two cases: it has no members,
    or the status records the name but no id.
    """
    status = balancer.status
    owner = owner_of(balancer, status.server_group_id, status.server_group_name)
    return select(cloud.server_groups, owner, lambda each: balancer.metadata.uid if not each.members else "")


def _security_group(balancer: LoadBalancer, found: Selection[SecurityGroup]) -> Part:
    name = cloud_name(balancer.metadata)
    group = found.selected
    if group is None:
        if found.strangers:
            return contested("security group", name)
        return Part(steps=(CreateSecurityGroup(name=name, description=mark_of(balancer.metadata.uid)),))
    wanted = wanted_rules(balancer, group.id)
    change = changed_rules(group.id, wanted.rules, group.rules)
    doubles = tuple(DeleteSecurityGroup(id=each.id) for each in found.doubles)
    return Part(
        steps=((change,) if change else ()) + doubles,
        status={"group_id": group.id, "group_name": name},
        notices=wanted.notices,
    )


def _port(balancer: LoadBalancer, group: SecurityGroup | None, found: Selection[CloudPort]) -> Part:
    name, infrastructure = cloud_name(balancer.metadata), balancer.spec.infrastructure
    port = found.selected
    if port is None and found.strangers:
        return contested("port", name)
    if group is None:
        return Part()
    if port is None:
        create = CreatePort(
            name=name,
            description=mark_of(balancer.metadata.uid),
            network_id=infrastructure.network,
            subnet_id=infrastructure.subnet,
            security_groups=(group.id,),
        )
        return Part(steps=(create,))
    steps: list[Step] = [DeletePort(id=each.id) for each in found.doubles]
    if port.security_groups != (group.id,):
        steps.append(UpdatePort(port_id=port.id, security_groups=(group.id,)))
    return Part(
        steps=tuple(steps),
        status={"port_id": port.id, "port_name": name, "port_ip": address_of(balancer, port)},
        problem=_moved(balancer, port),
    )


def _moved(balancer: LoadBalancer, port: CloudPort) -> str:
    """The problem if the port is in a wrong network or subnet, where machines cannot serve its address; else empty."""
    network, subnet = balancer.spec.infrastructure.network, balancer.spec.infrastructure.subnet
    subnets = [each.subnet_id for each in port.fixed_ips]
    # Neutron's usual database ignores the case of ids.
    if port.network_id and port.network_id.lower() != network.lower():
        was, wanted = f"network {port.network_id}", f"network {network}"
    elif subnet and subnets and subnet.lower() not in map(str.lower, subnets):
        was, wanted = f"subnet {subnets[0]}", f"subnet {subnet}"
    else:
        return ""
    return f"the virtual address is in {was} and cannot be moved to {wanted}: create another LoadBalancer there"


def _server_group(balancer: LoadBalancer, cloud: LoadBalancerCloud) -> Part:
    policy, name = balancer.spec.options.server_group_policy, cloud_name(balancer.metadata)
    found = server_groups_of(balancer, cloud)
    wrong = tuple(DeleteServerGroup(id=each.id) for each in found.ours if each.policy != policy)
    if not policy:
        gone: dict[str, object] = {} if wrong else {"server_group_id": None, "server_group_name": None}
        return Part(steps=wrong, status=gone)
    fitting = next((each for each in found.ours if each.policy == policy), None)
    if fitting is None:
        # The group's name is part of the template hash and stays recorded while the group is recreated.
        return Part(steps=wrong or (CreateServerGroup(name=name, policy=policy),))
    return Part(steps=wrong, status={"server_group_id": fitting.id, "server_group_name": name})


def released_status(status: LoadBalancerStatus) -> JsonPatch:
    change = difference(status, status.model_copy(update=dict.fromkeys(_IDENTIFIERS)))
    return {"status": change} if change else {}
