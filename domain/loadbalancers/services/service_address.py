"""The Service's address: written once a machine is ready, and compared by IP only.

Kubernetes adds fields to an ingress (`ipMode: VIP` since 1.30), so a comparison of all fields would write the same
status endlessly. The address is never removed while the LoadBalancer exists.
"""

from __future__ import annotations

from domain.loadbalancers.ip_addresses import same_address
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Service
from domain.model import Model
from domain.notices import Notice, normal
from domain.writes import JsonPatch

CLEARED: JsonPatch = {"status": {"loadBalancer": {"ingress": None}}}


class WriteBack(Model):
    patch: JsonPatch = {}
    notices: tuple[Notice, ...] = ()


def write_back(service: Service, balancer: LoadBalancer) -> WriteBack:
    """The address to write, if any. With zero replicas it is written at once, because no machine will become ready."""
    address = balancer.status.external_ip
    answering = balancer.spec.replicas == 0 or bool(balancer.status.ready_replicas)
    if not address or not answering or service.metadata.deleting or balancer.metadata.deleting:
        return WriteBack()
    if _shows(service, address):
        return WriteBack()
    notice = normal("creation", f"LoadBalancer is successfully created with IP {address}", each_time=True)
    return WriteBack(patch={"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}, notices=(notice,))


def _shows(service: Service, address: str) -> bool:
    if len(service.ingress) != 1:
        return False
    (ingress,) = service.ingress
    return bool(ingress.ip) and same_address(ingress.ip, address)
