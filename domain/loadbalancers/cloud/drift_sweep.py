"""The comparison of a whole project, which finds objects that differ from the desired state, and orphans.

It changes nothing: objects that differ are corrected by their lifecycles, which are woken. Only cloud objects with
Perdure's mark (`ownership.py`) count as orphans, because an object without the mark may have another owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import datetime, timedelta

from domain.loadbalancers.cloud.load_balancer import CloudPlan, plan_cloud
from domain.loadbalancers.cloud.machine import MachinePlan, ServedBalancer, plan_machine
from domain.loadbalancers.cloud.objects import CloudPort, LoadBalancerCloud, MachineCloud, SecurityGroup, Server
from domain.loadbalancers.cloud.ownership import marked_for
from domain.loadbalancers.constants import DRIFT_ANNOTATION
from domain.loadbalancers.former_fields import migrated
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.model import Model

SWEEP_INTERVAL = timedelta(minutes=5)


class Orphan(Model):
    kind: str
    id: str
    name: str
    owner: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.name}), made for {self.owner}"


def to_be_compared(found: LoadBalancer | LoadBalancerMachine) -> bool:
    meta = found.metadata
    if meta.deleting or DRIFT_ANNOTATION in meta.annotations:
        return False
    if isinstance(found, LoadBalancer):
        return bool(found.status.last_openstack_reconcile)
    return bool(found.status.server_id)


def difference_of_balancer(balancer: LoadBalancer, cloud: LoadBalancerCloud, now: datetime) -> str:
    if balancer.metadata.deleting:
        return ""
    return _difference(plan_cloud(migrated(balancer), cloud, now))


def difference_of_machine(machine: LoadBalancerMachine, cloud: MachineCloud, balancer: LoadBalancer) -> str:
    if machine.metadata.deleting:
        return ""
    plan = plan_machine(machine, cloud, ServedBalancer.of(balancer))
    if plan.given_up:
        return f"its server is {plan.server}"
    return _difference(plan)


def _difference(plan: CloudPlan | MachinePlan) -> str:
    planned = "; ".join(step.summary for step in plan.steps)
    return plan.problem or planned or ("its status is not up to date" if plan.status else "")


def owned_by(owners: Iterable[LoadBalancer | LoadBalancerMachine]) -> set[str]:
    # By uid or by the ids in its status: an owner that was restored from a backup has a new uid.
    return {name for each in owners for name in (each.metadata.uid, *each.outside)}


def orphans(
    security_groups: Iterable[SecurityGroup],
    ports: Iterable[CloudPort],
    servers: Iterable[Server],
    owned: Set[str],
) -> tuple[Orphan, ...]:
    """Marked objects that are not `owned`. If other clusters use the project, their objects are included."""
    found = [
        *(("security group", each.id, each.name, marked_for(each.description)) for each in security_groups),
        *(("port", each.id, each.name, marked_for(each.description)) for each in ports),
        *(("server", each.id, each.name, each.uid) for each in servers),
    ]
    return tuple(
        Orphan(kind=kind, id=id_, name=name, owner=owner)
        for kind, id_, name, owner in found
        if owner and owned.isdisjoint({owner, f"{kind} {id_}"})
    )
