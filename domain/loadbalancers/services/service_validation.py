"""Services that cannot be served: without node ports, or with a protocol other than TCP and UDP."""

from __future__ import annotations

from domain.loadbalancers.services.objects import Service

_PROTOCOLS = ("TCP", "UDP")
_HIGHEST_PORT = 65535


def fault_of(service: Service) -> str:
    if service.spec.allocate_load_balancer_node_ports is False:
        return "unsupported service option is used: allocateLoadBalancerNodePorts is false, and node ports are needed"
    for port in service.spec.ports:
        if port.protocol not in _PROTOCOLS:
            return f"unsupported protocol used: port {port.port} uses {port.protocol}, only TCP and UDP are supported"
        if not 1 <= port.node_port <= _HIGHEST_PORT:
            return f"port {port.port} has node port {port.node_port}, which is not within 1 to {_HIGHEST_PORT}"
    return ""
