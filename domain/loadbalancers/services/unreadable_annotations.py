"""An unreadable annotation changes nothing: the load balancer keeps the last readable value.

yawol treats an unreadable annotation as absent: `replicas: "three"` then reduces three machines to one, and a misspelt
port list enables PROXY protocol for all backends.
"""

from __future__ import annotations

from typing import TypeVar

from domain.loadbalancers.resources import LoadBalancerOptions, LoadBalancerSpec
from domain.loadbalancers.services.service_annotations import ServiceAnnotations
from domain.model import Model

M = TypeVar("M", bound=Model)

_PORTS_FILTER = "tcpProxyProtocolPortsFilter"
# The path of the value that an annotation sets, which is the same in `ServiceAnnotations` and in the LoadBalancer's
# spec.
_PATHS = {
    "replicas": ("replicas",),
    "debug": ("debug_settings",),
    "skipCloudControllerDefaultNetworkID": ("infrastructure", "additional_networks"),
    "logForward": ("options", "log_forward"),
    "internalLB": ("options", "internal_lb"),
    "tcpProxyProtocol": ("options", "tcp_proxy_protocol"),
    _PORTS_FILTER: ("options", "tcp_proxy_protocol_port_filter"),
    "tcpIdleTimeout": ("options", "tcp_idle_timeout"),
    "udpIdleTimeout": ("options", "udp_idle_timeout"),
    "serverGroupPolicy": ("options", "server_group_policy"),
}


def keeping(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    for name in annotations.unreadable & _PATHS.keys():
        annotations = _with_stored(annotations, stored, *_PATHS[name])
    return limited(annotations, stored.options)


def limited(annotations: ServiceAnnotations, stored: LoadBalancerOptions) -> ServiceAnnotations:
    options = annotations.options
    if _PORTS_FILTER not in annotations.unreadable or options.tcp_proxy_protocol_port_filter:
        return annotations
    # An empty filter means all ports, for which PROXY protocol was not requested.
    enabled = options.tcp_proxy_protocol and stored.tcp_proxy_protocol
    return annotations.model_copy(update={"options": options.model_copy(update={"tcp_proxy_protocol": enabled})})


def _with_stored(requested: M, stored: Model, field: str, *below: str) -> M:
    value = getattr(stored, field)
    kept = _with_stored(getattr(requested, field), value, *below) if below else value
    return requested.model_copy(update={field: kept})
