"""Moves values from field names of older yawol releases to the current names, unless the current field is set."""

from __future__ import annotations

from domain.loadbalancers.resources import Flavor, Image, LoadBalancer, LoadBalancerMachine
from domain.schema import Document
from domain.writes import JsonPatch, merge


def spec_migration(balancer: LoadBalancer) -> JsonPatch:
    infrastructure = balancer.spec.infrastructure
    moved = {
        **_part("flavor", infrastructure.flavor),
        **_part("image", infrastructure.image),
    }
    return {"spec": {"infrastructure": moved}} if moved else {}


def status_migration(balancer: LoadBalancer) -> JsonPatch:
    status = balancer.status
    moved = {
        **_moved("security_group_id", status.former_group_id, "securityGroupID", status.group_id),
        **_moved("security_group_name", status.former_group_name, "securityGroupName", status.group_name),
    }
    return {"status": moved} if moved else {}


def machine_migration(machine: LoadBalancerMachine) -> JsonPatch:
    """The patch that moves the port's id to its current field. If the two fields name different ports, both stay
    recorded.
    """
    status = machine.status
    if status.default_port_id not in (None, status.port_id):
        return {}
    moved = _moved("portID", status.port_id, "defaultPortID", status.default_port_id)
    return {"status": moved} if moved else {}


def migrated(balancer: LoadBalancer) -> LoadBalancer:
    body: object = balancer.model_dump(mode="json", exclude_unset=True)
    for patch in (spec_migration(balancer), status_migration(balancer)):
        body = merge(body, patch)
    return LoadBalancer.model_validate(body)


def _part(what: str, choice: Flavor | Image) -> Document:
    moved = {
        **_moved(f"{what}_id", choice.former_id, f"{what}ID", choice.id),
        **_moved(f"{what}_name", choice.former_name, f"{what}Name", choice.name),
        **_moved(f"{what}_search", choice.former_search, f"{what}Search", choice.search),
    }
    return {what: moved} if moved else {}


def _moved(former: str, value: str | None, present: str, known: str | None) -> Document:
    if value is None:
        return {}
    return {former: None, **({present: value} if known is None else {})}
