from __future__ import annotations

from domain.loadbalancers.cloud.objects import CloudPort
from domain.loadbalancers.cloud.ownership import Owner
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.go_formats import parse_bool
from domain.loadbalancers.resources import LoadBalancer
from domain.model import Model
from domain.notices import Notice


class Part(Model):
    steps: tuple[Step, ...] = ()
    status: dict[str, object] = {}
    notices: tuple[Notice, ...] = ()
    problem: str = ""


def owner_of(balancer: LoadBalancer, recorded: str | None, name: str | None) -> Owner:
    return Owner(uid=balancer.metadata.uid, recorded=recorded or "", inherited=bool(name) and not recorded)


def keeps(balancer: LoadBalancer, annotation: str) -> bool:
    return bool(parse_bool(balancer.metadata.annotations.get(annotation, "")))


def address_of(balancer: LoadBalancer, port: CloudPort | None) -> str | None:
    # Neutron may list a port's addresses in another order later; clients use the recorded one.
    recorded = balancer.status.port_ip
    if port is None or any(each.address == recorded for each in port.fixed_ips):
        return recorded or None
    return port.address or None


def contested(what: str, name: str) -> Part:
    return Part(
        problem=f"a {what} named {name} exists that does not belong to this LoadBalancer: rename or delete it, "
        "or record its id in the status"
    )
