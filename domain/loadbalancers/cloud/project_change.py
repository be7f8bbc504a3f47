"""What happens if a person changes the project of a LoadBalancer, whose OpenStack objects cannot be moved."""

from __future__ import annotations

from collections.abc import Iterable

from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.resources import Infrastructure, LoadBalancer, LoadBalancerSet
from domain.writes import JsonPatch, difference


def project_problem(balancer: LoadBalancer, sets: Iterable[LoadBalancerSet], cloud: LoadBalancerCloud) -> str:
    status, former = balancer.status, _former(balancer, sets)
    found = (
        any(each.id == status.port_id for each in cloud.ports)
        or any(each.id == status.group_id for each in cloud.security_groups)
        or any(each.id == status.floating_id for each in cloud.floating_ips)
    )
    if former is None or cloud.groups_only or found:
        return ""
    named = former.auth_secret_ref
    return (
        f"port {status.port_id} is not in the project of spec.infrastructure, and nothing can be moved to another "
        f"project: set projectID to {former.project_id or 'null'} and authSecretRef to {named.namespace}/{named.name} "
        "again, or delete the LoadBalancer"
    )


def project_restored(balancer: LoadBalancer, sets: Iterable[LoadBalancerSet]) -> JsonPatch:
    today, former = balancer.spec.infrastructure, _former(balancer, sets)
    if former is None:
        return {}
    place = {"project_id": former.project_id, "auth_secret_ref": former.auth_secret_ref}
    return {"spec": {"infrastructure": difference(today, today.model_copy(update=place))}}


def _former(balancer: LoadBalancer, sets: Iterable[LoadBalancerSet]) -> Infrastructure | None:
    port, today = balancer.status.port_id, _place(balancer.spec.infrastructure)
    # The sets' machines use the recorded port, so their templates name the project of the LoadBalancer's objects.
    templates = [each.spec.template.spec for each in sets if port and each.spec.template.spec.port_id == port]
    if any(_place(each.infrastructure) == today for each in templates):
        return None
    return templates[0].infrastructure if templates else None


def _place(infrastructure: Infrastructure) -> tuple[str, str, str]:
    named = infrastructure.auth_secret_ref
    return named.namespace, named.name, infrastructure.project_id or ""
