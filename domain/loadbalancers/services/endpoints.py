"""The endpoints of a Service: its nodes and their addresses.

Ready nodes with an address of the Service's IP families are endpoints. If no node is ready, all nodes that are not
terminating are endpoints, because probably the kubelets cannot report. A node without an address is left out: it would
make yawol's agents refuse the whole configuration.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.loadbalancers.ip_addresses import ip_version
from domain.loadbalancers.resources import Endpoint
from domain.loadbalancers.services.objects import Node, Service

_AUTOSCALER_TAINT = "ToBeDeletedByClusterAutoscaler"
_INTERNAL = "InternalIP"
_FAMILIES = {"IPv4": 4, "IPv6": 6}


def endpoints_of(service: Service, nodes: Iterable[Node]) -> tuple[Endpoint, ...]:
    staying = ((node, _addresses(service, node)) for node in nodes if not _terminating(node))
    suitable = [(node, addresses) for node, addresses in staying if addresses]
    answering = [(node, addresses) for node, addresses in suitable if _ready(node)] or suitable
    found = (Endpoint(name=node.metadata.name, addresses=addresses) for node, addresses in answering)
    return tuple(sorted(found, key=lambda each: each.name))


def what_matters(node: Node) -> tuple[object, ...]:
    """The parts of a node that endpoints depend on, without heartbeats."""
    addresses = tuple((each.type, each.address) for each in node.status.addresses)
    return (node.metadata.name, _ready(node), _terminating(node), addresses)


def _ready(node: Node) -> bool:
    return not node.metadata.deleting and _condition(node, "Ready")


def _terminating(node: Node) -> bool:
    return any(taint.key == _AUTOSCALER_TAINT for taint in node.spec.taints) or _condition(node, "Terminating")


def _condition(node: Node, type_: str) -> bool:
    return any(each.type == type_ and each.status == "True" for each in node.status.conditions)


def _addresses(service: Service, node: Node) -> tuple[str, ...]:
    families = {_FAMILIES[family] for family in service.spec.ip_families if family in _FAMILIES} or {4, 6}
    internal = (each.address for each in node.status.addresses if each.type == _INTERNAL)
    return tuple(address for address in internal if ip_version(address) in families)
